package codecs

// LiveQuery asks for live deliveries. Its zero value asks for all of them, in
// key order.
type LiveQuery struct {
	Status *Status // nil: any
	// Dimension and Value name one value of a counted dimension; "" = any.
	Dimension, Value string
	OrderID          string // "" = any
	// OldestFirst orders by the time since when a delivery is in its status, and
	// leaves out those that are in it since Before or later.
	OldestFirst bool
	Before      int64 // Unix nanoseconds

	After *LiveKey // nil: from the beginning
	Limit int
}

// LiveKey is the place of a delivery in a list.
type LiveKey struct {
	Since     int64 // matters with OldestFirst only
	ID        string
	Partition int32
}

// LivePage is a part of a list, and what it reflects.
type LivePage struct {
	Deliveries []Delivery
	Total      int64    // of all that match, on whatever page
	Next       *LiveKey // nil: nothing follows
	At         Reflected
}
