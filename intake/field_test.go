package intake_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/windrow-go/windrow/intake"
)

func TestFieldGivesTheTextOfAKey(t *testing.T) {
	for _, tt := range []struct{ name, data, field, want, fault string }{
		{"a string", `{"a":"x","b":"y"}`, "b", "y", ""},
		{"white space", " { \"a\" : { \"b\" : 1 } , \"b\" :\n\"y\" } ", "b", "y", ""},
		{"escapes in it", `{"a":"x\"\u00e9\\"}`, "a", `x"é\`, ""},
		{"escapes in the name", `{"\u0061\"":"x"}`, `a"`, "x", ""},
		{"a number as written", `{"a":1.50e+3}`, "a", "1.50e+3", ""},
		{"a boolean", `{"z":[1,{"a":2}],"a":false}`, "a", "false", ""},
		{"the last of two", `{"a":1,"b":2,"a":3}`, "a", "3", ""},
		{"not one further in", `{"b":{"a":1},"c":["a",{"a":2}]}`, "a", "", `field "a": the row has no such field`},
		{"not a value that looks like it", `{"b":"a\",\"a\":1"}`, "a", "", `field "a": the row has no such field`},
		{"an empty object", `{}`, "a", "", `field "a": the row has no such field`},
		{"null", `{"a":null}`, "a", "", `field "a": it is null, which can't be a key`},
		{"empty", `{"a":""}`, "a", "", `field "a": it is empty, which can't be a key`},
		{"an object", `{"a":{}}`, "a", "", `field "a": it is an object or an array, which can't be a key`},
		{"an array", `{"a":[1]}`, "a", "", `field "a": it is an object or an array, which can't be a key`},
		{"no object", `"a"`, "a", "", `field "a": the row is not a JSON object`},
		{"an array of objects", `[{"a":1}]`, "a", "", `field "a": the row is not a JSON object`},
	} {
		got, err := intake.Field(json.RawMessage(tt.data), tt.field)
		fault := ""
		if err != nil {
			fault = err.Error()
		}
		if got != tt.want || fault != tt.fault {
			t.Errorf("%s: got %q, %q", tt.name, got, fault)
		}
	}
}

func TestDigestFollowsTheRecords(t *testing.T) {
	a, b := intake.NewDigest(), intake.NewDigest()
	var at []string
	for _, data := range []string{`1`, `{"a":2}`, `"x"`} {
		a.Add(json.RawMessage(data))
		at = append(at, a.Sum())
	}
	if at[2] != "5030a75838491ee256764384092addf47d0d27ada26844579e8214ce17eb4a17" {
		t.Errorf("not what sha256sum says of the lines: %s", at[2])
	}
	b.Add(json.RawMessage(`1`))
	if b.Sum() != at[0] || b.Count() != 1 {
		t.Error("the same first record gives another digest")
	}
	b.Add(json.RawMessage(`{"a":2}`))
	if b.Sum() != at[1] || a.Count() != 3 {
		t.Error("going on after Sum gives another digest")
	}
	b.Add(json.RawMessage(`"y"`))
	if b.Sum() == at[2] {
		t.Error("another record gives the same digest")
	}
}

func TestDigestKeepsRecordsApart(t *testing.T) {
	a, b := intake.NewDigest(), intake.NewDigest()
	a.Add(json.RawMessage(`12`))
	b.Add(json.RawMessage(`1`))
	b.Add(json.RawMessage(`2`))
	if a.Sum() == b.Sum() || strings.ToLower(a.Sum()) != a.Sum() {
		t.Error("12 and 1, 2 are the same")
	}
}

func TestFieldTimeReadsTextAndSeconds(t *testing.T) {
	at := func(text string) time.Time {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	for data, want := range map[string]time.Time{
		`{"a": 1}`:                               {},
		`{"due": null}`:                          {},
		`{"due": ""}`:                            {},
		`{"due": "2026-12-24T18:00:00+01:00"}`:   at("2026-12-24T17:00:00Z"),
		`{"due": "2026-12-24T18:00:00.000001Z"}`: at("2026-12-24T18:00:00.000001Z"),
		`{"due": 1, "due": 1798135200}`:          at("2026-12-24T18:00:00Z"),
		`{"due": 1798135200.25}`:                 at("2026-12-24T18:00:00.25Z"),
		`{"due": "1798135200"}`:                  at("2026-12-24T18:00:00Z"),
		`{"due": -1}`:                            at("1969-12-31T23:59:59Z"),
	} {
		if got, err := intake.FieldTime([]byte(data), "due"); err != nil || !got.Equal(want) {
			t.Errorf("%s: got %v, %v, want %v", data, got, err, want)
		}
	}
	for _, data := range []string{
		`7`, `{"due": true}`, `{"due": {}}`, `{"due": []}`, `{"due": "soon"}`, `{"due": "2026-12-24"}`, `{"due": "2026-12-24T18:00:00"}`,
		`{"due": 1e15}`, `{"due": 1e400}`, `{"due": "0x10"}`, `{"due": "inf"}`, `{"due": 253402300800}`,
	} {
		if got, err := intake.FieldTime([]byte(data), "due"); err == nil {
			t.Errorf("%s: got %v, want an error", data, got)
		}
	}
}
