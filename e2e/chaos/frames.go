package chaos

import "deliverystat/e2e/proxy"

// Frames are the points of a transaction at which a replica can be killed: each
// request before the broker has it, and the outcome before the replica has it.
var Frames = []proxy.Frame{
	{API: proxy.AddPartitions},
	{API: proxy.Produce},
	{API: proxy.AddOffsets},
	{API: proxy.TxnOffsetCommit},
	{API: proxy.EndTxn},
	{API: proxy.EndTxn, Answer: true},
}
