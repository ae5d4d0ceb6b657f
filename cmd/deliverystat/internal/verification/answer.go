package verification

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"deliverystat/cmd/deliverystat/internal/config"
	"deliverystat/codecs"
	"deliverystat/processors/audit"
)

// API is a running replica.
type API struct {
	URL   string        // its root
	Token config.Secret // zero for none
}

// Answer is what a replica says at one position.
type Answer struct {
	Counts   audit.Counts
	Position codecs.Position
}

// body is an answer of /v1/counts, as far as it is compared.
type body struct {
	counted
	Groups []map[string]json.RawMessage `json:"groups"`
	AsOf   struct {
		Position string `json:"position"`
	} `json:"as_of"`
}

type counted struct {
	Counts map[string]int64 `json:"counts"`
	Closed map[string]int64 `json:"closed"`
}

// Counts asks for the counts of all deliveries, or by a dimension if by is not
// "". It asks again while the replica is not ready.
func (a *API) Counts(ctx context.Context, by string) (*Answer, error) {
	address, err := url.JoinPath(a.URL, "v1", "counts")
	if err != nil {
		return nil, fmt.Errorf("reading --url: %w", err)
	}
	if by != "" {
		address += "?by=" + url.QueryEscape(by)
	}
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for {
		b, retry, err := a.get(ctx, address)
		if err == nil {
			return b.answer(by)
		}
		if !retry {
			return nil, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}

// get asks once. retry says that it is worth asking again.
func (a *API) get(ctx context.Context, address string) (b *body, retry bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, false, fmt.Errorf("asking %s: %w", address, err)
	}
	if a.Token != (config.Secret{}) {
		request.Header.Set("Authorization", "Bearer "+a.Token.Reveal())
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, false, fmt.Errorf("asking %s: %w", address, err)
	}
	defer func() { _ = response.Body.Close() }() // only read from
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, false, fmt.Errorf("asking %s: %w", address, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, response.StatusCode == http.StatusServiceUnavailable, fmt.Errorf("asking %s: %s", address, response.Status)
	}
	b = &body{}
	if err := json.Unmarshal(content, b); err != nil {
		return nil, false, fmt.Errorf("reading the answer of %s: %w", address, err)
	}
	return b, false, nil
}

func (b *body) answer(by string) (*Answer, error) {
	position, err := codecs.ParsePosition(b.AsOf.Position, 0)
	if err != nil {
		return nil, fmt.Errorf("reading as_of: %w", err)
	}
	a := &Answer{Counts: audit.Counts{}, Position: position}
	if by == "" {
		b.addTo(a.Counts, "")
		return a, nil
	}
	for _, raw := range b.Groups {
		var value string
		var group counted
		content, err := json.Marshal(raw)
		if err == nil {
			err = errors.Join(json.Unmarshal(raw[by], &value), json.Unmarshal(content, &group))
		}
		if err != nil {
			return nil, fmt.Errorf("reading groups by %s: %w", by, err)
		}
		group.addTo(a.Counts, by+"="+value)
	}
	return a, nil
}

func (c *counted) addTo(counts audit.Counts, scope string) {
	for status, n := range c.Counts {
		counts.Add(scope, status, audit.Count{Live: n})
	}
	for status, n := range c.Closed {
		counts.Add(scope, status, audit.Count{Closed: n})
	}
}
