// Package chaos tries to make the service tell a wrong number.
//
// Writers fill the input and note what was acknowledged; readers ask every
// replica and note what was answered ([History]); meanwhile a schedule that is a
// pure function of a seed ([Plan]) kills, freezes and cuts off replicas and
// brokers. Afterwards [Check] judges every single answer by the reference model
// at the answer's own position. Since silence must not pass, it also says how
// much was answered, and the tests demand it.
//
// The tests have the build tag chaos. `make chaos` runs a mixed
// schedule, `make soak` a long one, and neither is part of CI. Not promised: that
// a short schedule meets every fault, and a minimum of answers under each.
//
// What happens inside one process at each step of an epoch is shown elsewhere
// (processors/exactlyonce): here the binary is a black box.
package chaos
