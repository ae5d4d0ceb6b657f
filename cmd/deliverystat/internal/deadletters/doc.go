// Package deadletters reads what the processors refused, and sends chosen
// records back to the input.
//
// A dead letter is the refused record with a few headers more (see
// [deliverystat/processors]). Sending one back takes those off again, and the key
// decides anew which partition it goes to. The dead letter stays where it is: one
// sent back twice is an event that came twice, and counts once.
package deadletters
