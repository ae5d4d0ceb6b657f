package codecs

// Attribute names one of the attributes that events carry and rows keep.
type Attribute uint8

// The attributes of the native event.
const (
	OrderID Attribute = iota
	StoreID
	Region
	Service
	NumAttributes
)

// String returns the name of a as the native event, the API and the dimensions
// spell it: "order_id", "store_id", "region", "service".
func (a Attribute) String() string {
	switch a {
	case OrderID:
		return "order_id"
	case StoreID:
		return "store_id"
	case Region:
		return "region"
	case Service:
		return "service"
	case NumAttributes:
	}
	return ""
}

// ParseAttribute finds the attribute that is spelled name.
func ParseAttribute(name string) (Attribute, bool) {
	switch name {
	case "order_id":
		return OrderID, true
	case "store_id":
		return StoreID, true
	case "region":
		return Region, true
	case "service":
		return Service, true
	}
	return 0, false
}
