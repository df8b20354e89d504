package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/windrow-go/windrow/internal/metrics"
)

// metricsFlags say where a worker can be watched.
type metricsFlags struct {
	address string
}

func (m *metricsFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&m.address, "metrics-addr", "",
		"serve /metrics for Prometheus, /livez and /readyz on this `address`; without a host, as in 9090, on 127.0.0.1 (default: don't)")
}

// serve makes the app measure what it does, and serves that until stop is called, if
// it is wanted.
func (m *metricsFlags) serve(ctx context.Context, a *app) (stop func(), err error) {
	if m.address == "" {
		return func() {}, nil
	}
	address, err := metrics.Address(m.address)
	if err != nil {
		return nil, usagef("--metrics-addr: %w", err)
	}
	listener, err := metrics.Listen(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("--metrics-addr: %w", err)
	}
	a.say("metrics: http://%s/metrics", listener.Addr())
	a.metrics = metrics.New()
	return metrics.Serve(listener, a.metrics, a.log).Close, nil
}
