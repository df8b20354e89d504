package handler_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/windrow-go/windrow/handler"
	"github.com/windrow-go/windrow/model"
)

// outcome is what a handler returned: the cost, if there is one, and the result or
// the error.
func outcome(result any, err error) string {
	cost := ""
	if answer, ok := result.(model.Answer); ok {
		cost, result = fmt.Sprint(answer.Cost, " "), answer.Result
	}
	if err != nil {
		return cost + verdict(err) + ": " + err.Error()
	}
	raw, ok := result.(json.RawMessage)
	if !ok {
		return cost + fmt.Sprintf("no JSON: %v", result)
	}
	return cost + string(raw)
}

// A service's answer in a batch and a child's line mean the same.
func TestAnswersMeanTheSameInBatchesAndStreams(t *testing.T) {
	tests := []struct{ members, want string }{
		{`"result":[1]`, "[1]"},
		{`"result":1,"error":null,"other":{}`, "1"},
		{`"result":1,"error":""`, "1"},
		{`"result":null,"error":""`, "null"},
		{`"result":1,"cost":0.5`, "0.5 1"},
		{`"result":1,"retry_after":"soon","permanent":1`, "1"},
		{`"error":"no good"`, "retry: no good"},
		{`"error":""`, "retry: an error without a text"},
		{`"error":{"code":5},"result":null`, `retry: {"code":5}`},
		{`"error":[true]`, `retry: [true]`},
		{`"error":404,"permanent":true`, `permanent: 404`},
		{`"error":"no","cost":0.5`, "0.5 retry: no"},
		{`"error":"no","permanent":true`, "permanent: no"},
		{`"error":"no","unavailable":true,"permanent":false`, "unavailable: no"},
		{`"error":"no","retry_after":1.5`, "retry after 1.5s: no"},
		{`"error":"no","retry_after":"90s"`, "retry after 1m30s: no"},
		{`"error":"no","retry_after":1e300`, "retry after 24h0m0s: no"},
		{`"error":"no","retry_after":null`, "retry: no"},
		{`"error":"no","retry_after":30,"unavailable":true`, "unavailable after 30s: no"},
		{`"error":"no","retry_after":-1e300`, `retry: the answer has the "retry_after" -1e300, which`},
		{`"error":"no","retry_after":"soon","cost":0.5`, `0.5 retry: the answer has the "retry_after" "soon", which`},
		{`"error":"no","result":1`, `retry: the answer has both "result" and "error"`},
		{`"error":null`, `retry: the answer has neither "result" nor "error"`},
		{`"error":"no","permanent":"yes"`, `retry: the answer has the "permanent" "yes", which`},
		{`"error":"no","permanent":true,"unavailable":true`, `retry: the answer is both "permanent" and "unavailable"`},
		{`"result":1,"cost":-1`, `permanent: the answer has the "cost" -1, which`},
	}
	// The child and the service answer with the members of the row's data.
	stream := newStream(t, handler.StreamOptions{Shell: each(`rest=${line#*'"data":{'}; printf '{"id":%s,%s\n' "$id" "${rest%?}"`)})
	for _, tt := range tests {
		t.Run(tt.members, func(t *testing.T) {
			data := "{" + tt.members + "}"
			line := outcome(stream.Handle(t.Context(), row(data)))
			service := newHTTP(t, handler.HTTPOptions{URL: serve(t, respond(200, `[{"id":7,`+tt.members+`}]`))})
			replies, err := service.HandleBatch(t.Context(), []model.Dataset{row(data)})
			if err != nil {
				t.Fatal(err)
			}
			batch := outcome(replies[0].Result, replies[0].Err)
			if !strings.HasPrefix(line, tt.want) || batch != line {
				t.Errorf("got  %s\nand  %s\nwant %s", line, batch, tt.want)
			}
		})
	}
}

func TestStreamResultOutlivesTheNextAnswer(t *testing.T) {
	stream := newStream(t, handler.StreamOptions{Shell: each(say(`"result":'$id'`))})
	var results []any
	for id := range int64(10) {
		result, err := stream.Handle(t.Context(), numbered(id, "1"))
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, result)
	}
	for id, result := range results {
		if got := outcome(result, nil); got != fmt.Sprint(id) {
			t.Errorf("the result of row %d has become %s", id, got)
		}
	}
}
