package api

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// headerStaleness carries as_of.staleness_seconds, also on a 304, which has no
// body. It is absent while nothing is proved.
const headerStaleness = "Deliverystat-Staleness-Seconds"

// gzipFrom is the size in bytes from which a body is compressed: below, it fits
// into one packet anyway.
const gzipFrom = 1400

// etagOf makes an entity tag of what determines a representation. All tags are
// weak: staleness is news of the moment and may differ between two answers with
// one tag, and so may the content coding.
func etagOf(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return `W/"` + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12]) + `"`
}

// notModified reports whether the client has the representation etag already
// (RFC 9110, section 13.1.2).
func notModified(r *http.Request, etag string) bool {
	opaque := strings.TrimPrefix(etag, "W/")
	for _, field := range r.Header.Values("If-None-Match") {
		for tag := range strings.SplitSeq(field, ",") {
			tag = strings.TrimSpace(tag)
			if tag == "*" || strings.TrimPrefix(tag, "W/") == opaque {
				return true
			}
		}
	}
	return false
}

// acceptsGzip reports whether the client wants gzip (RFC 9110, section 12.5.3).
func acceptsGzip(r *http.Request) bool {
	accepted := false
	for _, field := range r.Header.Values("Accept-Encoding") {
		for item := range strings.SplitSeq(field, ",") {
			coding, parameters, _ := strings.Cut(item, ";")
			name, value, _ := strings.Cut(parameters, "=")
			q := 1.0
			if strings.EqualFold(strings.TrimSpace(name), "q") {
				var err error
				if q, err = strconv.ParseFloat(strings.TrimSpace(value), 64); err != nil {
					q = 0
				}
			}
			switch strings.ToLower(strings.TrimSpace(coding)) {
			case "gzip":
				return q > 0
			case "*":
				accepted = q > 0
			}
		}
	}
	return accepted
}

var (
	buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}
	gzips   = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}
)

// maxPooled is the size in bytes beyond which a buffer is not kept: one huge
// answer must not hold its memory for ever.
const maxPooled = 1 << 20

func putBuffer(b *bytes.Buffer) {
	if b.Cap() <= maxPooled {
		b.Reset()
		buffers.Put(b)
	}
}

// respond sends a representation, or 304 if the client has it, or only the
// headers for HEAD.
func respond(w http.ResponseWriter, r *http.Request, contentType, etag string, body []byte) {
	h := w.Header()
	h.Set("ETag", etag)
	h.Add("Vary", "Accept-Encoding")
	if notModified(r, etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", contentType)
	if len(body) >= gzipFrom && acceptsGzip(r) {
		packed := buffers.Get().(*bytes.Buffer)
		defer putBuffer(packed)
		z := gzips.Get().(*gzip.Writer)
		defer gzips.Put(z)
		z.Reset(packed)
		_, _ = z.Write(body) // a buffer takes everything
		_ = z.Close()
		body = packed.Bytes()
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client went away: nobody to tell
	}
}

// setStaleness sets the staleness header.
func setStaleness(w http.ResponseWriter, f freshness) {
	if f.known {
		w.Header().Set(headerStaleness, string(f.appendSeconds(nil)))
	}
}
