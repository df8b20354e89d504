// Command embed shows windrow as a library: a Go function works the rows of an
// SQLite file. Load some rows first, then run it:
//
//	go run ./cmd/windrow load examples/airports.csv
//	go run ./examples/embed windrow.db
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

// airport is what a row's data looks like.
type airport struct {
	IATA     string `json:"iata"`
	Latitude string `json:"latitude"`
}

// hemisphere is the handler: it is given a row and returns its result. It may be
// called from many goroutines at once.
func hemisphere(_ context.Context, row model.Dataset) (any, error) {
	var a airport
	if err := json.Unmarshal(row.Data, &a); err != nil {
		return nil, processor.Permanent(err) // no further try would help
	}
	latitude, err := strconv.ParseFloat(a.Latitude, 64)
	if err != nil {
		return nil, processor.Permanent(fmt.Errorf("latitude of %s: %w", a.IATA, err))
	}
	return map[string]any{"iata": a.IATA, "north": latitude >= 0}, nil
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: embed DATABASE-FILE")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	store, err := checkout.OpenSQLite(ctx, os.Args[1], false, checkout.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	worker := processor.New(store, processor.HandlerFunc(hemisphere), processor.Options{UntilEmpty: true, Version: "1"})
	if err := worker.Run(ctx); err != nil {
		log.Fatal(err)
	}
	stats := worker.Stats()
	fmt.Printf("%d done, %d failed\n", stats.Done, stats.Failed)
}
