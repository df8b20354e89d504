package main

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/windrow-go/windrow/handler"
)

// httpFlags are about a service.
type httpFlags struct {
	url         string
	batch       int
	wait        time.Duration
	headers     []string
	headerFiles []string
	ca          string
}

// httpTimeout is how long a request may take where nothing was said.
const httpTimeout = time.Minute

func (h *httpFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&h.url, "http", "", "work each row with a POST to this `url`: data in the body, the response is the result")
	flags.IntVar(&h.batch, "http-batch", 0, "send up to `N` rows in one request, as a JSON array (default: one by one)")
	flags.DurationVar(&h.wait, "batch-wait", 0, "how long to wait for more rows before a smaller request is sent (default 50ms)")
	flags.StringArrayVar(&h.headers, "header", nil, "send this header with every request: `'Name: value'`; secrets belong into --header-file")
	flags.StringArrayVar(&h.headerFiles, "header-file", nil, "send the headers in this `file`, one a line")
	flags.StringVar(&h.ca, "http-ca", "", "trust the certificates in this PEM `file` instead of the system's")
}

func (h *httpFlags) isSet() bool {
	return h.batch != 0 || h.wait != 0 || len(h.headers) > 0 || len(h.headerFiles) > 0 || h.ca != ""
}

func (h *httpFlags) build(slots int, timeout time.Duration) (*madeHandler, error) {
	if h.batch < 0 || h.wait < 0 {
		return nil, usagef("--http-batch and --batch-wait must not be negative")
	}
	if h.wait != 0 && h.batch < 2 {
		return nil, usagef("--batch-wait is for --http-batch of 2 or more")
	}
	if timeout == 0 {
		timeout = httpTimeout
	}
	made, err := handler.NewHTTP(handler.HTTPOptions{
		URL:            h.url,
		Headers:        h.headers,
		HeaderFiles:    h.headerFiles,
		CAFile:         h.ca,
		Timeout:        timeout,
		MaxConnections: slots,
	})
	if err != nil {
		return nil, usagef("--http: %w", err)
	}
	return &madeHandler{fingerprinted: made, timeout: later(timeout), batchRows: h.batch, batchWait: h.wait}, nil
}
