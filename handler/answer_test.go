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

// The tests in this file are of this package to reach the decoder, through which
// a fuzzer gets further than through a process or a service.

func TestObjectIsAnAnswerIfItHasAnID(t *testing.T) {
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
		a, ok := parseAnswer([]byte(tt.line), asItIs)
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
		{`"result":1,"error":""`, `1`, 0},
		{`"error":"","result":null`, `null`, 0},
		{`"result":1,"cost":0.25`, `1`, 0.25},
		{`"cost":2,"result":[]`, `[]`, 2},
		{`"result":1,"cost":0,"anything":"else"`, `1`, 0},
		{`"result":1,"permanent":7,"unavailable":7,"retry_after":"soon"`, `1`, 0}, // they are of no account here
		{`"result":1,"Error":"a","RESULT":2`, `1`, 0},                             // names are taken exactly
	}
	for _, tt := range tests {
		a, _ := parseAnswer([]byte(`{"id":7,`+tt.members+`}`), asItIs)
		if result, cost, err := a.decode(); err != nil || string(result) != tt.want || cost != tt.cost {
			t.Errorf("%s: got %q, %v, %v", tt.members, result, cost, err)
		}
	}
}

// marks are what an error of an answer asks for.
type marks struct {
	permanent, unavailable bool
	after                  time.Duration
	hasAfter               bool
	cost                   float64
}

func after(delay time.Duration) marks { return marks{after: delay, hasAfter: true} }

// failure decodes an answer with these members behind its id.
func failure(t *testing.T, members string) (got marks, err error) {
	t.Helper()
	a, ok := parseAnswer([]byte(`{"id":7,`+members+`}`), asItIs)
	if !ok {
		t.Fatalf("%.80s: no answer", members)
	}
	result, cost, err := a.decode()
	if err == nil || result != nil {
		t.Fatalf("%.80s: got the result %q, %v", members, result, err)
	}
	got = marks{permanent: model.IsPermanent(err), unavailable: model.IsUnavailable(err), cost: cost}
	got.after, got.hasAfter = model.RetryDelay(err)
	return got, err
}

func TestAnswerIsAnError(t *testing.T) {
	tests := []struct {
		members, want string
		marks         marks
	}{
		{`"error":"no such city"`, "no such city", marks{}},
		{`"error":"\u00e9\ud800\u0000"`, "é\uFFFD\x00", marks{}},
		{`"error":""`, "an error without a text", marks{}},
		{`"error":" \n","permanent":true`, "an error without a text", marks{permanent: true}},
		{`"error":"a","result":null`, "a", marks{}},
		{`"error":{"code": 5, "why": "a"}`, `{"code": 5, "why": "a"}`, marks{}},
		{`"error":{},"permanent":true`, `{}`, marks{permanent: true}},
		{`"error":["a",{}]`, `["a",{}]`, marks{}},
		{`"error":1e400`, `1e400`, marks{}},
		{`"error":false`, `false`, marks{}},
		{`"error":["` + strings.Repeat("é", 5000) + `"]`, `["` + strings.Repeat("é", errorJSONBytes/2-1) + "…", marks{}},
		{`"error":"a","permanent":true`, "a", marks{permanent: true}},
		{`"error":"a","permanent":false,"unavailable":null,"retry_after":null`, "a", marks{}},
		{`"error":"a","permanent":true,"cost":3`, "a", marks{permanent: true, cost: 3}},
		{`"error":"a","unavailable":true,"retry_after":0.5`, "a", marks{unavailable: true, after: time.Second / 2, hasAfter: true}},
		{`"error":"a","retry_after":90`, "a", after(90 * time.Second)},
		{`"error":"a","retry_after":1.5e1`, "a", after(15 * time.Second)},
		{`"error":"a","retry_after":0`, "a", after(0)},
		{`"error":"a","retry_after":-0`, "a", after(0)},
		{`"error":"a","retry_after":86401`, "a", after(24 * time.Hour)},
		{`"error":"a","retry_after":1e300`, "a", after(24 * time.Hour)},
		{`"error":"a","retry_after":1e999`, "a", after(24 * time.Hour)},
		{`"error":"a","retry_after":"1h30m"`, "a", after(90 * time.Minute)},
		{`"error":"a","retry_after":"1000h"`, "a", after(24 * time.Hour)},
	}
	for _, tt := range tests {
		if got, err := failure(t, tt.members); err.Error() != tt.want || got != tt.marks {
			t.Errorf("%.80s: got %.200v, %+v", tt.members, err, got)
		}
	}
}

func TestMalformedAnswerSaysWhatIsWrong(t *testing.T) {
	const duration, seconds = `, which is not a duration such as "90s" or "1h30m", and not a number;`, ", which is not a number of seconds of zero or more;"
	tests := []struct {
		members, want string
		marks         marks
	}{
		{`"result":NaN`, "is not JSON: invalid character 'N'", marks{}},
		{`"result":1}`, "is not JSON: invalid character '}'", marks{}},
		{`"result":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), "is not JSON: ", marks{}},
		{`"message":"a"`, `has neither "result" nor "error"; it begins "{\"id\":7,\"message\":\"a\"}"`, marks{}},
		{`"error":null,"permanent":true`, `has neither "result" nor "error"`, marks{}},
		{`"error":"a","result":1,"permanent":true`, `has both "result" and "error"`, marks{}},
		{`"error":false,"result":1,"cost":2`, `has both "result" and "error"`, marks{cost: 2}},
		{`"error":{},"result":false`, `has both "result" and "error"`, marks{}},
		{`"error":"a","permanent":"yes"`, `has the "permanent" "yes", which is neither true nor false`, marks{}},
		{`"error":"a","unavailable":1,"cost":2`, `has the "unavailable" 1, which is neither true nor false`, marks{cost: 2}},
		{`"error":"a","unavailable":true,"permanent":true`, `is both "permanent" and "unavailable"`, marks{}},
		{`"error":"a","retry_after":-1,"permanent":true`, `has the "retry_after" -1` + seconds, marks{}},
		{`"error":"a","retry_after":-1e999`, `has the "retry_after" -1e999` + seconds, marks{}},
		{`"error":"a","retry_after":[1]`, `has the "retry_after" [1]` + seconds, marks{}},
		{`"error":"a","retry_after":true`, `has the "retry_after" true` + seconds, marks{}},
		{`"error":"a","retry_after":"90"`, `has the "retry_after" "90"` + duration, marks{}},
		{`"error":"a","retry_after":"-1s"`, `has the "retry_after" "-1s"` + duration, marks{}},
		{`"error":"a","retry_after":""`, `has the "retry_after" ""` + duration, marks{}},
		{`"error":"a","retry_after":"` + strings.Repeat("é", 99) + `"`, `has the "retry_after" "` + strings.Repeat("é", 19) + "…" + duration, marks{}},
		{`"result":1,"cost":-1`, `has the "cost" -1, which is not a number of zero or more`, marks{permanent: true}},
		{`"result":1,"cost":"1"`, `has the "cost" "1", which is not a number`, marks{permanent: true}},
		{`"error":"a","unavailable":true,"cost":1e999`, `has the "cost" 1e999, which is not a number`, marks{permanent: true}},
	}
	for _, tt := range tests {
		got, err := failure(t, tt.members)
		if !strings.HasPrefix(err.Error(), "the answer "+tt.want) || !strings.Contains(err.Error(), `; it begins "{\"id\":7,`) || got != tt.marks {
			t.Errorf("%.80s: got %v, %+v", tt.members, err, got)
		}
		if len(err.Error()) > 400 {
			t.Errorf("%.80s: the error has %d bytes", tt.members, len(err.Error()))
		}
	}
}

// A text is cut only when it has been made fit to be shown: half of a secret would
// not be recognised.
func TestSecretIsHiddenInWhateverIsShownOfAnAnswer(t *testing.T) {
	const secret = "0123456789abcdef"
	hide := strings.NewReplacer(secret, "***").Replace
	for shift := range 100 {
		padded := strings.Repeat("x", shift) + secret
		for _, members := range []string{
			`"error":"` + padded + `"`, `"error":["` + padded + `"]`, `"error":"a","retry_after":"` + padded + `"`,
			`"error":"a","permanent":"` + padded + `"`, `"result":1,"error":"` + padded + `"`, `"cost":"` + padded + `"`,
		} {
			a, _ := parseAnswer([]byte(`{"id":7,`+members+`}`), hide)
			if _, _, err := a.decode(); err == nil || strings.Contains(err.Error(), secret[:4]) {
				t.Fatalf("%s: got %v", members, err)
			}
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
		`{"id":7,"error":""}`, `{"id":7,"result":1,"error":""}`, `{"id":7,"error":{"a":1},"retry_after":1e999}`,
		`{"id":7,"error":"a","retry_after":-1,"unavailable":true}`, `{"id":7,"error":"a","retry_after":"9999h"}`,
		`{`, `{}`, `{"`, `{"a`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":"\`, `{"id":"`, `[]`, `}`, `{]}`, `{"id":1]`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		a, ok := parseAnswer(line, asItIs)
		var members map[string]json.RawMessage
		if !utf8.Valid(line) || json.Unmarshal(line, &members) != nil {
			if ok {
				if _, _, err := a.decode(); err == nil && utf8.Valid(line) {
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
		result, cost, err := a.decode()
		if err == nil && !bytes.Equal(result, members["result"]) {
			t.Errorf("%q: got the result %q", line, result)
		}
		if delay, _ := model.RetryDelay(err); delay < 0 || delay > maxRetryAfter || !isCost(cost) {
			t.Errorf("%q: got the delay %v and the cost %v", line, delay, cost)
		}
		if err != nil && result != nil {
			t.Errorf("%q: got the result %q beside %v", line, result, err)
		}
	})
}
