// Package proxy stands between the service and one broker, and does to their
// connections what networks do: it cuts them, slows them, or loses an answer
// whose request has been carried out.
//
// It understands the frames of Kafka's protocol as far as to tell which request
// is which, and changes none. The broker has to advertise the proxy's address.
package proxy
