package handler_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/windrow-go/windrow/handler"
	"github.com/windrow-go/windrow/model"
)

// rows are n rows with the ids 1 to n.
func rows(n int) []model.Dataset {
	rows := make([]model.Dataset, n)
	for i := range rows {
		rows[i] = model.Dataset{ID: int64(i + 1), Attempts: 1, Job: "job", Data: json.RawMessage(fmt.Sprint(10 * i))}
	}
	return rows
}

// postBatch handles n rows by a server that always responds the same.
func postBatch(t *testing.T, n int, server http.HandlerFunc) ([]model.Reply, error) {
	t.Helper()
	return newHTTP(t, handler.HTTPOptions{URL: serve(t, server)}).HandleBatch(t.Context(), rows(n))
}

func TestHTTPBatchIsOneArray(t *testing.T) {
	var header http.Header
	var body string
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		header, body = r.Header, string(data)
		io.WriteString(w, `[{"id":2,"result":null},{"id":1,"result":{"a": 1e400}}]`)
	})
	h := newHTTP(t, handler.HTTPOptions{URL: address, Headers: []string{"X-Key: abc"}})
	batch := rows(2)
	key := `é<"`
	batch[0].Key, batch[0].Attempts, batch[0].Data = &key, 3, json.RawMessage("{\"a\":\n \"<\"}")
	batch[1].Data = json.RawMessage{}
	replies, err := h.HandleBatch(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	want := []model.Reply{{Result: json.RawMessage(`{"a": 1e400}`)}, {Result: json.RawMessage("null")}}
	if !reflect.DeepEqual(replies, want) {
		t.Errorf("got %v", replies)
	}
	wantBody := `[{"id":1,"key":"é<\"","attempt":3,"idempotency_key":"job/1/0","data":{"a":"<"}}` + "\n" +
		`,{"id":2,"key":null,"attempt":1,"idempotency_key":"job/2/0","data":null}` + "\n]"
	if body != wantBody {
		t.Errorf("got  %s\nwant %s", body, wantBody)
	}
	if header.Get("Windrow-Attempt") != "3" || header.Get("X-Key") != "abc" || header.Get("Content-Type") != "application/json" ||
		header["Windrow-Row-Id"] != nil {
		t.Errorf("got %v", header)
	}
	first := header.Get("Idempotency-Key")
	if !strings.HasPrefix(first, "batch/") || len(first) != len("batch/")+32 {
		t.Errorf("got the key %q", first)
	}
	batch[0], batch[1] = batch[1], batch[0]
	batch[0].Attempts++
	if h.HandleBatch(t.Context(), batch); header.Get("Idempotency-Key") != first {
		t.Errorf("the same rows have the keys %q and %q", first, header.Get("Idempotency-Key"))
	}
	batch[0].Round++
	if h.HandleBatch(t.Context(), batch); header.Get("Idempotency-Key") == first {
		t.Error("the next round has the same key")
	}
}

func TestHTTPBatchOfNoRowsSendsNothing(t *testing.T) {
	replies, err := postBatch(t, 0, func(http.ResponseWriter, *http.Request) { t.Error("a request came") })
	if len(replies) != 0 || err != nil {
		t.Errorf("got %v, %v", replies, err)
	}
}

func TestHTTPBatchAnswersAreTheReplies(t *testing.T) {
	replies, err := postBatch(t, 4, respond(200, `[{"id":2,"error":"no\n good"},{"id":"1","result":[1]},{"id":4,"cost":0.5},{"id":3,"result":3}]`))
	if err != nil || len(replies) != 4 {
		t.Fatal(replies, err)
	}
	wants := []string{"[1]", "retry: no good", "3", `0.5 retry: the answer has neither "result" nor "error"`}
	for i, want := range wants {
		if got := outcome(replies[i].Result, replies[i].Err); !strings.HasPrefix(got, want) {
			t.Errorf("row %d: got %s, want %s", i+1, got, want)
		}
	}
}

func TestHTTPBatchRowWithoutAnswerIsTriedAgain(t *testing.T) {
	replies, err := postBatch(t, 3, respond(200, `[{"id":3,"result":3},{"id":1,"result":1}]`))
	if err != nil || replies[0].Err != nil || replies[2].Err != nil {
		t.Fatal(replies, err)
	}
	if err := replies[1].Err; err == nil || verdict(err) != "retry" || err.Error() != "the response to the batch has no answer to this row" {
		t.Errorf("got %v", err)
	}
}

func TestHTTPBatchCostIsSharedOut(t *testing.T) {
	body := `[{"id":1,"result":1},{"id":2,"error":"no","cost":1}]`
	replies, err := postBatch(t, 4, respond(200, body, "Windrow-Cost", "2"))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{0.5, 1.5, 0.5, 0.5} {
		if answer, ok := replies[i].Result.(model.Answer); !ok || answer.Cost != want {
			t.Errorf("row %d: got %v, want %v", i+1, replies[i].Result, want)
		}
	}
}

func TestHTTPBatchFailsAsAWhole(t *testing.T) {
	tests := []struct {
		status              int
		body, headers, text string
		several, alone      string // verdicts
	}{
		{200, "", "", `it begins ""`, "retry", "retry"},
		{200, `{"id":1,"result":1}`, "", `must be a JSON array of answers; it begins "{\"id\":1`, "retry", "retry"},
		{200, `[{"id":1,"result":1}`, "", "unexpected end of JSON input", "retry", "retry"},
		{200, `[{"id":1,"result":1}] []`, "", "after top-level value", "retry", "retry"},
		{200, `[1]`, "", "answer 1 of the batch has no id", "retry", "retry"},
		{200, `[[{"id":1,"result":1}]]`, "", "answer 1 of the batch has no id", "retry", "retry"},
		{200, `[{"id":null,"result":1}]`, "", "answer 1 of the batch has no id", "retry", "retry"},
		{200, `[{"id":"+1","result":1}]`, "", `has the id "+1", which no row`, "retry", "retry"},
		{200, `[{"id":9223372036854775808,"result":1}]`, "", "has the id 9223372036854775808, which no row", "retry", "retry"},
		{200, `[null]`, "", "answer 1 of the batch has no id", "retry", "retry"},
		{200, `[{"id":1,"result":1},{"result":1}]`, "", "answer 2 of the batch has no id", "retry", "retry"},
		{200, `[{"id":9,"result":1}]`, "", "answer 1 of the batch has the id 9, which no row of the batch has", "retry", "retry"},
		{200, `[{"id":1.0,"result":1}]`, "", "has the id 1.0, which no row", "retry", "retry"},
		{200, `[{"id":1,"result":1},{"id":1,"result":1}]`, "", "answer 2 of the batch has the id 1, which an answer before it has", "retry", "retry"},
		{200, `[]`, "Windrow-Cost: much", `Windrow-Cost is "much"`, "retry", "permanent"},
		{307, "", "", "without a valid Location", "retry", "permanent"},
		{400, "no", "", "400 Bad Request: no", "retry", "permanent"},
		{413, "no", "", "413 Request Entity Too Large: no", "retry", "permanent"},
		{500, "no", "Retry-After: 3", "500 Internal Server Error: no", "retry after 3s", "retry after 3s"},
		{503, "no", "Retry-After: 3", "503 Service Unavailable: no", "unavailable after 3s", "unavailable after 3s"},
	}
	for _, tt := range tests {
		t.Run(tt.body+tt.text, func(t *testing.T) {
			var headers []string
			if name, value, ok := strings.Cut(tt.headers, ": "); ok {
				headers = []string{name, value}
			}
			for n, want := range map[int]string{1: tt.alone, 2: tt.several} {
				replies, err := postBatch(t, n, respond(tt.status, tt.body, headers...))
				if replies != nil || err == nil || !strings.Contains(err.Error(), tt.text) || verdict(err) != want {
					t.Errorf("%d rows: got %v, %v (%s), want %s: %q", n, replies, err, verdict(err), want, tt.text)
				}
			}
		})
	}
}

func TestHTTPBatchTooLargeIsNobodysFaultYet(t *testing.T) {
	address := serve(t, respond(200, "[1, 2, 3, 4]"))
	h := newHTTP(t, handler.HTTPOptions{URL: address, MaxResponse: 8})
	for n, want := range map[int]string{1: "permanent", 2: "retry"} {
		if _, err := h.HandleBatch(t.Context(), rows(n)); err == nil || verdict(err) != want || !strings.Contains(err.Error(), "larger than 8 bytes") {
			t.Errorf("%d rows: got %v (%s)", n, err, verdict(err))
		}
	}
}

func TestHTTPBatchOfManyRowsInAnyOrder(t *testing.T) {
	const n = 2000
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var got []struct {
			ID   int64 `json:"id"`
			Data int64 `json:"data"`
		}
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		rand.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		answers := make([]map[string]any, len(got))
		for i, row := range got {
			answers[i] = map[string]any{"id": row.ID, "result": row.Data + 1}
		}
		json.NewEncoder(w).Encode(answers)
	})
	replies, err := newHTTP(t, handler.HTTPOptions{URL: address}).HandleBatch(t.Context(), rows(n))
	if err != nil || len(replies) != n {
		t.Fatal(len(replies), err)
	}
	for i, reply := range replies {
		if want := fmt.Sprint(10*i + 1); reply.Err != nil || string(reply.Result.(json.RawMessage)) != want {
			t.Fatalf("row %d: got %v, want %s", i+1, reply, want)
		}
	}
}
