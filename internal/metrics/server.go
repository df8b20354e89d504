package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
)

// Address completes an address to listen on: a bare port, and one without a host
// before it, mean loopback. To be reached from elsewhere, 0.0.0.0 or [::] has to be
// typed. Port 0 is any that is free.
func Address(text string) (string, error) {
	whole := text
	if !strings.Contains(text, ":") {
		whole = ":" + text
	}
	host, port, err := net.SplitHostPort(whole)
	if err != nil {
		return "", fmt.Errorf("%q is no address: use PORT, HOST:PORT or [IPV6]:PORT", text)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("%q has no port from 0 to 65535: use PORT, HOST:PORT or [IPV6]:PORT", text)
	}
	switch host {
	case "":
		host = "127.0.0.1"
	case "*":
		return "", fmt.Errorf("%q: for all interfaces use 0.0.0.0:%s, or [::]:%s with IPv6", text, port, port)
	}
	return net.JoinHostPort(host, port), nil
}

// Listen opens the address, which [Address] has completed.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is in use by another process: take another port, or 0 for any that is free", address)
	}
	if err != nil {
		return nil, fmt.Errorf("can't listen on %s: %w", address, err)
	}
	return listener, nil
}

// Server serves a [Worker]'s metrics and probes.
type Server struct {
	http  *http.Server
	ended chan struct{}
}

// Serve begins to serve on the listener, which it takes over.
func Serve(listener net.Listener, w *Worker, log *zap.Logger) *Server {
	errorLog, _ := zap.NewStdLogAt(log, zap.WarnLevel) // fails only for an unknown level
	s := &Server{
		http: &http.Server{
			Handler:           w.pages(errorLog),
			ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout:       10 * time.Second,
			WriteTimeout:      30 * time.Second,
			IdleTimeout:       3 * time.Minute, // longer than the usual time between scrapes
			MaxHeaderBytes:    16 << 10,
			ErrorLog:          errorLog,
		},
		ended: make(chan struct{}),
	}
	go func() {
		defer close(s.ended)
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Warn("metrics are no longer served", zap.Error(err))
		}
	}()
	return s
}

// Close ends the server: answers that are under way get a second.
func (s *Server) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close() // it is gone, whatever it says
	}
	<-s.ended
}

const index = `windrow: a worker
/metrics   for Prometheus
/livez     200 while the process is worth keeping
/readyz    200 while rows are worked and the database answers
`

func (w *Worker) pages(errorLog promhttp.Logger) http.Handler {
	pages := http.NewServeMux()
	pages.Handle("GET /metrics", promhttp.HandlerFor(w.registry, promhttp.HandlerOpts{
		ErrorLog:            errorLog,
		ErrorHandling:       promhttp.ContinueOnError,
		Registry:            w.registry,
		MaxRequestsInFlight: 8,
	}))
	pages.HandleFunc("GET /livez", probe(w.health.alive))
	pages.HandleFunc("GET /readyz", probe(w.health.ready))
	pages.HandleFunc("GET /{$}", func(out http.ResponseWriter, _ *http.Request) { say(out, http.StatusOK, index) })
	return pages
}

func probe(ask func() (reason string, ok bool)) http.HandlerFunc {
	return func(out http.ResponseWriter, _ *http.Request) {
		reason, ok := ask()
		status := http.StatusOK
		if !ok {
			status = http.StatusServiceUnavailable
		}
		say(out, status, reason+"\n")
	}
}

func say(out http.ResponseWriter, status int, text string) {
	header := out.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	out.WriteHeader(status)
	_, _ = io.WriteString(out, text) // whoever asked may have gone
}
