package handler

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/windrow-go/windrow/model"
)

// The tests in this file are of this package to reach the parser, through which
// a fuzzer gets further than through a process.

func TestLineIsAnAnswerIfItHasAnID(t *testing.T) {
	tests := []struct {
		line string
		id   int64
		ok   bool
	}{
		{`{"id":7,"result":1}`, 7, true},
		{` {"result" : {"id":8} , "id" : 7 } ` + "\r", 7, true},
		{`{"id":"7","result":1}`, 7, true},
		{`{"id":-9223372036854775808}`, -9223372036854775808, true},
		{`{"\u0069d":7}`, 7, true},
		{`{"id":1,"id":7}`, 7, true},
		{`{"id":7,"result":NaN}`, 7, true},
		{`{"a":"}\"{","id":7}`, 7, true},
		{`{"id":7,"result":"cut o`, 7, true},
		{`{"id":7`, 0, false},
		{`{"id":7.0}`, 0, false},
		{`{"id":7e0}`, 0, false},
		{`{"id":07}`, 0, false},
		{`{"id":"+7"}`, 0, false},
		{`{"id":" 7"}`, 0, false},
		{`{"id":9223372036854775808}`, 0, false},
		{`{"id":null}`, 0, false},
		{`{"id":}`, 0, false},
		{`{"id":""}`, 0, false},
		{`{"id":"}`, 0, false},
		{`{"ID":7}`, 0, false},
		{`{"data":{"id":7}}`, 0, false},
		{`[{"id":7}]`, 0, false},
		{`{'id': 7}`, 0, false},
		{`7`, 0, false},
		{`{`, 0, false},
		{``, 0, false},
	}
	for _, tt := range tests {
		a, ok := parseAnswer([]byte(tt.line))
		if ok != tt.ok || ok && a.id != tt.id {
			t.Errorf("%s: got %d, %v", tt.line, a.id, ok)
		}
	}
}

func TestAnswerIsTheResult(t *testing.T) {
	tests := []struct {
		members, want string
		cost          float64
	}{
		{`"result":null`, `null`, 0},
		{`"result":"a"`, `"a"`, 0},
		{`"result": {"n": 9007199254740993, "x": [1e400, -0] } `, `{"n": 9007199254740993, "x": [1e400, -0] }`, 0},
		{`"result":1,"error":null,"cost":null,"retry_after":null`, `1`, 0},
		{`"result":1,"cost":0.25`, `1`, 0.25},
		{`"cost":2,"result":[]`, `[]`, 2},
		{`"result":1,"cost":0,"anything":"else","permanent":7`, `1`, 0},
	}
	for _, tt := range tests {
		line := []byte(`{"id":7,` + tt.members + `}`)
		a, _ := parseAnswer(line)
		got, err := a.reply(false)
		clear(line) // the result must not change with the buffer
		if answer, ok := got.(model.Answer); ok && tt.cost > 0 {
			if answer.Cost != tt.cost {
				t.Errorf("%s: got a cost of %v", tt.members, answer.Cost)
			}
			got = answer.Result
		}
		if raw, _ := got.(json.RawMessage); err != nil || string(raw) != tt.want {
			t.Errorf("%s: got %q, %v", tt.members, got, err)
		}
	}
}

func TestAnswerIsAnError(t *testing.T) {
	type marks struct {
		permanent, unavailable bool
		after                  time.Duration
		cost                   float64
	}
	tests := []struct {
		members, want string
		marks         marks
	}{
		{`"error":"no such city"`, "no such city", marks{}},
		{`"error":"\u00e9\ud800\u0000"`, "é\uFFFD\x00", marks{}},
		{`"error":""`, "an error without a text", marks{}},
		{`"error":"a","result":null`, "a", marks{}},
		{`"error":"a","permanent":true`, "a", marks{permanent: true}},
		{`"error":"a","permanent":false,"unavailable":null`, "a", marks{}},
		{`"error":"a","unavailable":true,"retry_after":0.5`, "a", marks{unavailable: true, after: 500 * time.Millisecond}},
		{`"error":"a","retry_after":90`, "a", marks{after: 90 * time.Second}},
		{`"error":"a","retry_after":"1h30m"`, "a", marks{after: 90 * time.Minute}},
		{`"error":"a","permanent":true,"cost":3`, "a", marks{permanent: true, cost: 3}},

		{`"result":NaN`, "is not JSON: invalid character 'N'", marks{}},
		{`"result":1`, "is not JSON", marks{}}, // see below
		{`"result":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), "is not JSON: ", marks{}},
		{`"message":"a"`, `has neither "result" nor "error"`, marks{}},
		{`"error":null`, `has neither "result" nor "error"`, marks{}},
		{`"error":"a","result":1`, `has both "result" and "error"`, marks{}},
		{`"error":{"code":1}`, `has an "error" that is not a string`, marks{}},
		{`"error":"a","permanent":"yes"`, `has a member "permanent" that is neither true nor false`, marks{}},
		{`"error":"a","unavailable":1`, `has a member "unavailable" that is neither`, marks{}},
		{`"error":"a","unavailable":true,"permanent":true`, `both "permanent" and "unavailable"`, marks{}},
		{`"error":"a","retry_after":-1`, `"retry_after" that is no number of seconds`, marks{}},
		{`"error":"a","retry_after":1e300`, `"retry_after" that is no number of seconds`, marks{}},
		{`"error":"a","retry_after":"90"`, `"retry_after" that is no duration`, marks{}},
		{`"error":"a","retry_after":"-1s"`, `"retry_after" that is no duration`, marks{}},
		{`"error":"a","retry_after":[]`, `"retry_after" that is no number of seconds`, marks{}},
		{`"result":1,"cost":-1`, `"cost" that is no number`, marks{}},
		{`"result":1,"cost":"1"`, `"cost" that is no number`, marks{}},
		{`"result":1,"cost":1e999`, `"cost" that is no number`, marks{}},
	}
	for _, tt := range tests {
		line := `{"id":7,` + tt.members + `}`
		if tt.members == `"result":1` {
			line += "}"
		}
		a, ok := parseAnswer([]byte(line))
		if !ok {
			t.Errorf("%.80s: no answer", line)
			continue
		}
		result, err := a.reply(true)
		got := marks{permanent: model.IsPermanent(err), unavailable: model.IsUnavailable(err)}
		got.after, _ = model.RetryDelay(err)
		if answer, ok := result.(model.Answer); ok {
			got.cost = answer.Cost
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || got != tt.marks {
			t.Errorf("%.80s: got %v, %+v", line, err, got)
		}
		if len(err.Error()) > 400 {
			t.Errorf("%.80s: the error has %d bytes", line, len(err.Error()))
		}
	}
}

// FuzzAnswer compares with encoding/json: an answer that is JSON has the id and
// the result that are found there.
func FuzzAnswer(f *testing.F) {
	for _, line := range []string{
		`{"id":7,"result":1}`, `{"id":"7","result":{"id":8,"a":[1,{}]}}`, `{"id":7,"error":"a\"b","retry_after":"90s"}`,
		`{"\u0069d":7,"result":null}`, `{"id":1,"id":7,"result":1,"result":[2]}`, `{"id":7,"result":NaN}`,
		`{"id":7,"error":"a","permanent":true,"cost":1e-3}`, `{"id":7,"res`, `{"id":7,"result":"\\"}`, "{\"id\":7,\t\"result\" : 1 }\r",
		`{`, `{}`, `{"`, `{"a`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":"\`, `{"id":"`, `[]`, `}`, `{]}`, `{"id":1]`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		a, ok := parseAnswer(line)
		var members map[string]json.RawMessage
		if !utf8.Valid(line) || json.Unmarshal(line, &members) != nil {
			if ok {
				if _, err := a.reply(false); err == nil && utf8.Valid(line) {
					t.Errorf("%q is no JSON object, but an answer", line)
				}
			}
			return
		}
		var id json.Number
		isID := json.Unmarshal(members["id"], &id) == nil && id != ""
		number, err := id.Int64()
		isID = isID && err == nil && id.String() == strings.TrimPrefix(id.String(), "+")
		if ok && (!isID || number != a.id) {
			t.Errorf("%q: got the id %d", line, a.id)
		}
		if !ok {
			return
		}
		result, err := a.reply(false)
		if answer, ok := result.(model.Answer); ok {
			result = answer.Result
		}
		if raw, _ := result.(json.RawMessage); err == nil && !bytes.Equal(raw, members["result"]) {
			t.Errorf("%q: got the result %q", line, raw)
		}
	})
}
