package processor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

// openJob makes a job of the rows for the examples.
func openJob(rows ...string) (store *checkout.SQLite, remove func()) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "windrow")
	if err != nil {
		log.Fatal(err)
	}
	store, err = checkout.OpenSQLite(ctx, filepath.Join(dir, "job.db"), true, checkout.Options{})
	if err != nil {
		log.Fatal(err)
	}
	load, err := store.BeginLoad(ctx, "example", 0)
	if err != nil {
		log.Fatal(err)
	}
	chunk := checkout.Chunk{Records: int64(len(rows)), Last: true}
	for _, row := range rows {
		chunk.Rows = append(chunk.Rows, checkout.NewRow{Data: json.RawMessage(row)})
	}
	if err := store.Append(ctx, &load, chunk); err != nil {
		log.Fatal(err)
	}
	return store, func() {
		store.Close()
		os.RemoveAll(dir)
	}
}

// A Go function works every row of a table.
func ExampleProcessor_Run() {
	store, remove := openJob(`{"name": "Ada"}`, `{"name": "Grace"}`)
	defer remove()
	greet := func(_ context.Context, row model.Dataset) (any, error) {
		var data struct{ Name string }
		if err := json.Unmarshal(row.Data, &data); err != nil {
			return nil, processor.Permanent(err)
		}
		return map[string]string{"greeting": "Hello, " + data.Name}, nil
	}
	ctx := context.Background()
	err := processor.New(store, processor.HandlerFunc(greet), processor.Options{UntilEmpty: true}).Run(ctx)
	if err != nil {
		log.Fatal(err)
	}
	err = store.Export(ctx, checkout.ExportOptions{}, func(row checkout.Finished) error {
		fmt.Println(row.ID, string(row.Result))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// 1 {"greeting":"Hello, Ada"}
	// 2 {"greeting":"Hello, Grace"}
}

// A plain error is tried again; a permanent one fails its row at once.
func ExamplePermanent() {
	store, remove := openJob(`"fine"`, `"broken"`)
	defer remove()
	handle := func(_ context.Context, row model.Dataset) (any, error) {
		switch {
		case string(row.Data) == `"broken"`:
			return nil, processor.Permanent(errors.New("no such customer"))
		case row.Attempts == 1:
			return nil, processor.RetryAfter(0, errors.New("the service is busy"))
		}
		return fmt.Sprintf("done at try %d", row.Attempts), nil
	}
	ctx := context.Background()
	err := processor.New(store, processor.HandlerFunc(handle), processor.Options{UntilEmpty: true}).Run(ctx)
	if err != nil {
		log.Fatal(err)
	}
	err = store.Export(ctx, checkout.ExportOptions{}, func(row checkout.Finished) error {
		if row.Error != nil {
			fmt.Println(row.ID, "failed:", *row.Error)
			return nil
		}
		fmt.Println(row.ID, string(row.Result))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// 1 "done at try 2"
	// 2 failed: no such customer
}
