// Package topics says which topics a deployment needs, and how each must be
// made so that no count is lost.
//
// [Specs] is the list; [Inspect] compares it with what a cluster has, in pure
// code; [Describe] and [Create] talk to the cluster. A [Finding] has one of
// three weights: a broken one makes the service wrong or impossible and is
// never accepted; an unsafe one can lose data in an accident and is accepted
// only on request; a warning is only shown.
//
// Nothing here changes or deletes a topic that exists.
package topics
