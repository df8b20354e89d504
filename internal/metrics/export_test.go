package metrics

import (
	"io"
	"log"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
)

// Pages is what a Server answers, without one.
func (w *Worker) Pages() http.Handler { return w.pages(log.New(io.Discard, "", 0)) }

// Registry is what the documents are held to.
func (w *Worker) Registry() *prometheus.Registry { return w.registry }
