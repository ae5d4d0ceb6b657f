package replica

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Answer is the answer to one request.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Get asks the API for path, which may have a query. An error means that there
// was no answer at all.
func (r *Replica) Get(ctx context.Context, path string) (Answer, error) {
	return r.get(ctx, r.HTTP, path)
}

// GetAdmin asks the admin server for path.
func (r *Replica) GetAdmin(ctx context.Context, path string) (Answer, error) {
	return r.get(ctx, r.Admin, path)
}

func (r *Replica) get(ctx context.Context, host, path string) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+path, nil)
	if err != nil {
		return Answer{}, fmt.Errorf("asking replica %s for %s: %w", r.Name, path, err)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return Answer{}, fmt.Errorf("asking replica %s for %s: %w", r.Name, path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return Answer{}, fmt.Errorf("asking replica %s for %s: %w", r.Name, path, err)
	}
	return Answer{Status: resp.StatusCode, Header: resp.Header, Body: body}, nil
}

// Counts is the body of GET /v1/counts.
type Counts struct {
	Counts map[string]int64 `json:"counts"`
	Live   int64            `json:"live"`
	Closed map[string]int64 `json:"closed"`
	AsOf   AsOf             `json:"as_of"`

	Groups []map[string]any `json:"groups"` // of a query ?by=
}

// AsOf says what an answer reflects.
type AsOf struct {
	Position         string  `json:"position"`
	EventTime        string  `json:"event_time"`
	LagRecords       int64   `json:"lag_records"`
	StalenessSeconds float64 `json:"staleness_seconds"`
	Stale            bool    `json:"stale"`
	Replica          string  `json:"replica"`
}

// Positions reads the position "0:1042,1:998" for an input of n partitions. A
// partition that is not named stands at 0.
func (a AsOf) Positions(n int) ([]int64, error) {
	out := make([]int64, n)
	if a.Position == "" {
		return out, nil
	}
	for part := range strings.SplitSeq(a.Position, ",") {
		p, o, ok := strings.Cut(part, ":")
		partition, err := strconv.Atoi(p)
		if !ok || err != nil || partition < 0 || partition >= n {
			return nil, fmt.Errorf("reading position %q: partition %q", a.Position, p)
		}
		if out[partition], err = strconv.ParseInt(o, 10, 64); err != nil {
			return nil, fmt.Errorf("reading position %q: %w", a.Position, err)
		}
	}
	return out, nil
}

// Counts asks for /v1/counts with query ("" for none). Any status but 200 is
// an error that shows the answer.
func (r *Replica) Counts(ctx context.Context, query string) (Counts, error) {
	var c Counts
	err := r.getJSON(ctx, "/v1/counts", query, &c)
	return c, err
}

func (r *Replica) getJSON(ctx context.Context, path, query string, into any) error {
	if query != "" {
		path += "?" + query
	}
	a, err := r.Get(ctx, path)
	if err != nil {
		return err
	}
	if a.Status != http.StatusOK {
		return fmt.Errorf("asking replica %s for %s: %d %s", r.Name, path, a.Status, a.Body)
	}
	if err := json.Unmarshal(a.Body, into); err != nil {
		return fmt.Errorf("reading what replica %s said to %s: %w: %s", r.Name, path, err, a.Body)
	}
	return nil
}

// Delivery is the body of GET /v1/deliveries/{id}. Times are in RFC 3339.
type Delivery struct {
	DeliveryID string            `json:"delivery_id"`
	Status     string            `json:"status"`
	RawStatus  string            `json:"raw_status"`
	OccurredAt string            `json:"occurred_at"`
	Since      string            `json:"since"`
	Timeline   []StatusTimes     `json:"timeline"`
	OrderID    string            `json:"order_id"`
	StoreID    string            `json:"store_id"`
	Dimensions map[string]string `json:"dimensions"`
	Closed     bool              `json:"closed"`
	ClosedAt   *string           `json:"closed_at"` // nil while live
}

// StatusTimes says when a delivery was first and last said to have a status.
type StatusTimes struct {
	Status string `json:"status"`
	First  string `json:"first"`
	Last   string `json:"last"`
}

// Delivery asks for one delivery by its escaped ID.
func (r *Replica) Delivery(ctx context.Context, escapedID string) (Delivery, error) {
	var d Delivery
	err := r.getJSON(ctx, "/v1/deliveries/"+escapedID, "", &d)
	return d, err
}

// Ready reports whether /readyz says so.
func (r *Replica) Ready(ctx context.Context) (bool, string) {
	a, err := r.GetAdmin(ctx, "/readyz")
	if err != nil {
		return false, err.Error()
	}
	return a.Status == http.StatusOK, fmt.Sprintf("%d %s", a.Status, a.Body)
}

// Metrics are the series of one scrape by their text, as in
// `deliverystat_deliveries{status="CREATED"}`.
type Metrics map[string]float64

// Metrics scrapes /metrics.
func (r *Replica) Metrics(ctx context.Context) (Metrics, error) {
	a, err := r.GetAdmin(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	if a.Status != http.StatusOK {
		return nil, fmt.Errorf("scraping replica %s: %d %s", r.Name, a.Status, a.Body)
	}
	m := Metrics{}
	lines := bufio.NewScanner(strings.NewReader(string(a.Body)))
	for lines.Scan() {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("reading the metrics of replica %s: %q: %w", r.Name, line, err)
		}
		m[line[:at]] = v
	}
	return m, nil
}

// By returns the series of a metric that has one label, by the label's value.
func (m Metrics) By(metric, label string) map[string]int64 {
	out := map[string]int64{}
	for series, v := range m {
		rest, ok := strings.CutPrefix(series, metric+"{"+label+`="`)
		if !ok {
			continue
		}
		if value, ok := strings.CutSuffix(rest, `"}`); ok {
			out[value] = int64(v)
		}
	}
	return out
}

// Owned returns how many partitions of a group the replica owns and has
// recovered.
func (r *Replica) Owned(ctx context.Context, group string) (int, error) {
	return r.countPartitions(ctx, func(p partition) bool { return p.Group == group && p.State == "running" })
}

// Standing returns how many partitions of a group the replica keeps for others,
// up to date.
func (r *Replica) Standing(ctx context.Context, group string) (int, error) {
	return r.countPartitions(ctx, func(p partition) bool { return p.Group == group && p.State == "standby" && p.Remaining == 0 })
}

// partition is one line of /partitions.
type partition struct {
	Group     string `json:"group"`
	State     string `json:"state"`
	Remaining int64  `json:"remaining"`
}

func (r *Replica) countPartitions(ctx context.Context, match func(partition) bool) (int, error) {
	a, err := r.GetAdmin(ctx, "/partitions")
	if err != nil {
		return 0, err
	}
	var body struct {
		Partitions []partition `json:"partitions"`
	}
	if err := json.Unmarshal(a.Body, &body); err != nil {
		return 0, fmt.Errorf("reading the partitions of replica %s: %w: %s", r.Name, err, a.Body)
	}
	n := 0
	for _, p := range body.Partitions {
		if match(p) {
			n++
		}
	}
	return n, nil
}
