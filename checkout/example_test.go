package checkout_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/model"
)

// Check rows out, process them with no transaction open, check them in.
func ExampleSQLite() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "windrow")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := checkout.OpenSQLite(ctx, filepath.Join(dir, "job.db"), true, checkout.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	load, err := store.BeginLoad(ctx, "example", 0)
	if err != nil {
		log.Fatal(err)
	}
	rows := []checkout.NewRow{{Data: json.RawMessage(`{"n": 20}`)}, {Data: json.RawMessage(`{"n": 21}`)}}
	if err := store.Append(ctx, &load, checkout.Chunk{Rows: rows, Records: 2, Last: true}); err != nil {
		log.Fatal(err)
	}

	const holder, lease = "worker 1", time.Minute
	for {
		claims, err := store.CheckOut(ctx, holder, lease, 10)
		if err != nil {
			log.Fatal(err)
		}
		if len(claims) == 0 {
			break
		}
		var batch []model.CheckIn
		for _, claim := range claims {
			var data struct{ N int }
			if err := json.Unmarshal(claim.Data, &data); err != nil {
				log.Fatal(err)
			}
			result := json.RawMessage(fmt.Sprint(2 * data.N))
			batch = append(batch, model.CheckIn{
				Ticket:  claim.Ticket(),
				Outcome: model.Outcome{Verdict: model.VerdictDone, Result: result},
			})
		}
		if _, err := store.CheckIn(ctx, batch); err != nil {
			log.Fatal(err)
		}
	}
	err = store.Export(ctx, checkout.ExportOptions{}, func(row checkout.Finished) error {
		fmt.Println(row.ID, string(row.Result))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// 1 40
	// 2 42
}
