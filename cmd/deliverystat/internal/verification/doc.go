// Package verification reads what an audit compares: the two tables, the
// answer of a running replica, and the input. What is compared, and why at
// these positions, is said in package audit.
//
// It reads committed records only, joins no group, writes to no topic, and
// needs a directory for copies of the tables, which its caller removes. The
// service may run meanwhile.
package verification
