package handler_test

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/windrow-go/windrow/handler"
)

// BenchmarkHTTP is about the whole exchange, the server's side included: it runs
// in this process.
func BenchmarkHTTP(b *testing.B) {
	address := serve(b, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.Copy(w, r.Body)
	})
	dataset := row(`{"iata":"00M","name":"Thigpen","latitude":"31.95376472","longitude":"-89.23450472"}`)
	const slots = 16
	h := newHTTP(b, handler.HTTPOptions{URL: address, MaxConnections: slots})
	b.ReportAllocs()
	b.SetParallelism(slots / 2)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := h.Handle(b.Context(), dataset); err != nil {
				b.Error(err)
			}
		}
	})
}

func BenchmarkHTTPBatch(b *testing.B) {
	batch := rows(100)
	answers := make([]map[string]any, len(batch))
	for i, row := range batch {
		answers[i] = map[string]any{"id": row.ID, "result": map[string]any{"label": "fine", "score": 0.5}}
	}
	response, err := json.Marshal(answers)
	if err != nil {
		b.Fatal(err)
	}
	address := serve(b, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Write(response)
	})
	h := newHTTP(b, handler.HTTPOptions{URL: address})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.HandleBatch(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(batch)*b.N)/b.Elapsed().Seconds(), "rows/s")
}
