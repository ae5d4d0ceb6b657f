// Package access says what the user of a deployment must be allowed to do, on a
// cluster that allows nothing by itself, and finds out what is missing.
//
// [Required] is the list, and no more than that: every entry is used by a
// request of the service. [Commands] writes it as lines for kafka-acls.sh.
// [Check] asks the cluster, before anything is begun, and names all that is
// missing at once. Kafka does not tell what is allowed on transactional IDs, so
// these are not among what Check finds; the service names them when it is
// refused.
//
// It grants nothing.
package access
