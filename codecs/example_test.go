package codecs_test

import (
	"fmt"
	"time"

	"deliverystat/codecs"
)

func ExampleDecoder_Decode() {
	lifecycle := codecs.BuiltinLifecycle()
	decoder, err := codecs.NewDecoder(codecs.FormatAuto, lifecycle)
	if err != nil {
		panic(err)
	}
	var out codecs.Decoded
	for _, value := range []string{
		`{"delivery_id":"D-42","status":"IN_TRANSIT","occurred_at":"2026-11-30T10:00:00.123456+09:00"}`,
		`{"payload":"{\"deliveryId\":\"D-42\",\"status\":\"DELIVERED\"}","occurredAt":1796000460000000}`,
		`{"delivery_id":"D-42","status":"CREATED","occurred_at":"yesterday"}`,
		`null`,
	} {
		decoder.Decode(&codecs.Record{Key: "D-42", Value: []byte(value)}, &out)
		switch out.Outcome {
		case codecs.IsEvent:
			e := out.Event
			fmt.Println(e.DeliveryID, lifecycle.Name(e.Status), e.RawStatus, time.Unix(0, e.OccurredAt).UTC().Format(time.RFC3339Nano))
		case codecs.IsIgnored:
			fmt.Println("ignored")
		case codecs.IsRefused:
			fmt.Printf("%s: %s\n", out.Reason, out.Detail)
		}
	}
	// Output:
	// D-42 DELIVERING IN_TRANSIT 2026-11-30T01:00:00.123456Z
	// D-42 DELIVERED  2026-11-30T01:01:00Z
	// invalid_time: occurred_at "yesterday" is not a time with zone (RFC 3339) or integer Unix time
	// ignored
}

func ExampleParsePosition() {
	reflected := codecs.Position{Next: []int64{1042, 998}}
	wanted, err := codecs.ParsePosition("1:998", 2)
	fmt.Println(reflected, reflected.Reaches(wanted), err)
	// Output: 0:1042,1:998 true <nil>
}
