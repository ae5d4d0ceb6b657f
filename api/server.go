package api

import (
	"log/slog"
	"net/http"
	"time"
)

// NewServer returns the server of the public address. Its limits fit requests
// that carry no body and one delivery ID, and answers that may be waited for
// during MaxWait. The stream sets its own.
func NewServer(address string, handler http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Addr:              address,
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      MaxWait + 15*time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
}

// NewAdminServer returns the server of the admin address: as NewServer, with
// time for a profile of some minutes.
func NewAdminServer(address string, handler http.Handler, logger *slog.Logger) *http.Server {
	server := NewServer(address, handler, logger)
	server.WriteTimeout = 5 * time.Minute
	return server
}
