package intake_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/lz4"
	"github.com/parquet-go/parquet-go/deprecated"

	"github.com/windrow-go/windrow/intake"
)

// parquetOf returns a file of one column named v, with these values.
func parquetOf(t testing.TB, node parquet.Node, values ...parquet.Value) string {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewWriter(&b, parquet.NewSchema("rows", parquet.Group{"v": node}))
	for _, v := range values {
		level := 0
		if node.Optional() && !v.IsNull() {
			level = 1
		}
		if _, err := w.WriteRows([]parquet.Row{{v.Level(0, level, 0)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// parquetRows returns a file of these rows.
func parquetRows[T any](t testing.TB, rows []T, options ...parquet.WriterOption) string {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, options...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestParquetWritesEveryTypeAsJSON(t *testing.T) {
	fixed := func(b ...byte) parquet.Value { return parquet.FixedLenByteArrayValue(b) }
	text := func(s string) parquet.Value { return parquet.ByteArrayValue([]byte(s)) }
	i32, i64 := parquet.Int32Value, parquet.Int64Value
	interval := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 14), 3), 4005)
	for _, tt := range []struct {
		name  string
		node  parquet.Node
		value parquet.Value
		want  string
	}{
		{"boolean", parquet.Leaf(parquet.BooleanType), parquet.BooleanValue(true), `true`},
		{"int32", parquet.Leaf(parquet.Int32Type), i32(math.MinInt32), `-2147483648`},
		{"int64 beyond 2^53", parquet.Leaf(parquet.Int64Type), i64(9007199254740993), `9007199254740993`},
		{"int8", parquet.Int(8), i32(-128), `-128`},
		{"unsigned 32", parquet.Uint(32), i32(-1), `4294967295`},
		{"unsigned 64", parquet.Uint(64), i64(-1), `18446744073709551615`},
		{"float", parquet.Leaf(parquet.FloatType), parquet.FloatValue(0.1), `0.1`},
		{"double", parquet.Leaf(parquet.DoubleType), parquet.DoubleValue(0.1), `0.1`},
		{"a large double", parquet.Leaf(parquet.DoubleType), parquet.DoubleValue(1e300), `1e+300`},
		{"a tiny double", parquet.Leaf(parquet.DoubleType), parquet.DoubleValue(5e-324), `5e-324`},
		{"a whole double", parquet.Leaf(parquet.DoubleType), parquet.DoubleValue(123456789), `123456789`},
		{"text", parquet.String(), text("é\"\n"), `"é\"\n"`},
		{"enum", parquet.Enum(), text("RED"), `"RED"`},
		{"embedded JSON", parquet.JSON(), text(` { "a": [1.50] } `), `{"a":[1.50]}`},
		{"bytes", parquet.Leaf(parquet.ByteArrayType), text("abcd"), `"YWJjZA=="`},
		{"fixed bytes", parquet.Leaf(parquet.FixedLenByteArrayType(2)), fixed(0xff, 0), `"/wA="`},
		{"UUID", parquet.UUID(), fixed(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255), `"00010203-0405-0607-0809-0a0b0c0d0eff"`},
		{"date", parquet.Date(), i32(-1), `"1969-12-31"`},
		{"time in ms", parquet.Time(parquet.Millisecond), i32(3723004), `"01:02:03.004"`},
		{"time in ns", parquet.Time(parquet.Nanosecond), i64(1), `"00:00:00.000000001"`},
		{"instant in ms", parquet.Timestamp(parquet.Millisecond), i64(1000), `"1970-01-01T00:00:01Z"`},
		{"instant in us, before 1970", parquet.Timestamp(parquet.Microsecond), i64(-1), `"1969-12-31T23:59:59.999999Z"`},
		{"instant in ns", parquet.Timestamp(parquet.Nanosecond), i64(1), `"1970-01-01T00:00:00.000000001Z"`},
		{"instant without a zone", parquet.TimestampAdjusted(parquet.Microsecond, false), i64(0), `"1970-01-01T00:00:00Z"`},
		{"int96", parquet.Leaf(parquet.Int96Type), parquet.Int96Value(deprecated.Int96{1_000_000_000, 0, 2440589}), `"1970-01-02T00:00:01Z"`},
		{"decimal in 32 bits", parquet.Decimal(2, 9, parquet.Int32Type), i32(-5), `-0.05`},
		{"decimal in 64 bits", parquet.Decimal(3, 18, parquet.Int64Type), i64(123456789012345678), `123456789012345.678`},
		{"decimal with no scale", parquet.Decimal(0, 9, parquet.Int32Type), i32(7), `7`},
		{"decimal as long as its scale", parquet.Decimal(2, 9, parquet.Int32Type), i32(12), `0.12`},
		{"decimal in bytes", parquet.Decimal(2, 38, parquet.ByteArrayType), text("\xff\x38"), `-2.00`},
		{"decimal in 16 bytes", parquet.Decimal(10, 38, parquet.FixedLenByteArrayType(16)),
			fixed(0x4b, 0x3b, 0x4c, 0xa8, 0x5a, 0x86, 0xc4, 0x7a, 0x09, 0x8a, 0x22, 0x3f, 0xff, 0xff, 0xff, 0xff), `9999999999999999999999999999.9999999999`},
		{"interval", parquet.IntervalNode(), parquet.FixedLenByteArrayValue(interval), `"P14M3DT4.005S"`},
		{"null", parquet.Optional(parquet.String()), parquet.NullValue(), `null`},
		{"not null", parquet.Optional(parquet.String()), text(""), `""`},
	} {
		read(t, "in.parquet", parquetOf(t, tt.node, tt.value), intake.Options{}).want(t, tt.name, `1 {"v":`+tt.want+`}`)
	}
}

func TestParquetGoesOnAfterABadRow(t *testing.T) {
	text := func(s string) parquet.Value { return parquet.ByteArrayValue([]byte(s)) }
	const year = 365 * 86400
	for _, tt := range []struct {
		name      string
		node      parquet.Node
		bad, good parquet.Value
		reason    string
		want      string
	}{
		{"NaN", parquet.Leaf(parquet.DoubleType), parquet.DoubleValue(math.NaN()), parquet.DoubleValue(1), `column "v": NaN or an infinity, which JSON has no number for`, `1`},
		{"infinity", parquet.Leaf(parquet.FloatType), parquet.FloatValue(float32(math.Inf(-1))), parquet.FloatValue(1), `column "v": NaN or an infinity, which JSON has no number for`, `1`},
		{"invalid text", parquet.String(), text("\xff"), text("a"), `column "v": the text is not valid UTF-8`, `"a"`},
		{"NUL", parquet.String(), text("a\x00"), text("a"), `\u0000 at byte 8: PostgreSQL's jsonb can't hold the NUL character`, `"a"`},
		{"broken JSON", parquet.JSON(), text(`1,"w":2`), text("1"), `column "v": not JSON at byte 2: there is more after the value: ",\"w\":2"`, `1`},
		{"far in the future", parquet.Timestamp(parquet.Millisecond), parquet.Int64Value(10_000 * year * 1000), parquet.Int64Value(0), `column "v": a time in the year 11963, which RFC 3339 can't say`, `"1970-01-01T00:00:00Z"`},
		{"a date far in the past", parquet.Date(), parquet.Int32Value(-800_000), parquet.Int32Value(0), `column "v": a date in the year -221, which RFC 3339 can't say`, `"1970-01-01"`},
		{"a time beyond the day", parquet.Time(parquet.Millisecond), parquet.Int32Value(86_400_000), parquet.Int32Value(0), `column "v": a time of day outside of the day`, `"00:00:00"`},
	} {
		g := read(t, "in.parquet", parquetOf(t, tt.node, tt.bad, tt.good), intake.Options{})
		g.want(t, tt.name, `! 1 `+tt.reason, `2 {"v":`+tt.want+`}`)
		if len(g.bad) == 1 && !strings.Contains(g.bad[0].Error(), "in.parquet, row 1: ") {
			t.Errorf("%s: %v", tt.name, g.bad[0])
		}
	}
}

type inner struct {
	A int32   `parquet:"a"`
	B *string `parquet:"b,optional"`
}

type outer struct {
	ID     int64            `parquet:"id"`
	In     inner            `parquet:"in"`
	Maybe  *inner           `parquet:"maybe,optional"`
	List   []int32          `parquet:"list,list"`
	Groups []inner          `parquet:"groups,list"`
	Bare   []string         `parquet:"bare"`
	Deep   []inner          `parquet:"deep"`
	Map    map[string]int64 `parquet:"map"`
}

func TestParquetKeepsNesting(t *testing.T) {
	b := "x"
	file := parquetRows(t, []outer{
		{ID: 1},
		{ID: 2, In: inner{A: 1, B: &b}, Maybe: &inner{A: 2}, List: []int32{1, 2}, Groups: []inner{{A: 1}, {A: 2, B: &b}},
			Bare: []string{"p", "q"}, Deep: []inner{{B: &b}}, Map: map[string]int64{"k": 1}},
		{ID: 3, List: []int32{0}},
	})
	read(t, "in.parquet", file, intake.Options{}).want(t, "nesting",
		`1 {"id":1,"in":{"a":0,"b":null},"maybe":null,"list":[],"groups":[],"bare":[],"deep":[],"map":{}}`,
		`2 {"id":2,"in":{"a":1,"b":"x"},"maybe":{"a":2,"b":null},"list":[1,2],"groups":[{"a":1,"b":null},{"a":2,"b":"x"}],"bare":["p","q"],"deep":[{"a":0,"b":"x"}],"map":{"k":1}}`,
		`3 {"id":3,"in":{"a":0,"b":null},"maybe":null,"list":[0],"groups":[],"bare":[],"deep":[],"map":{}}`)
}

// TestParquetReadsAnotherWritersNesting reads lists and maps of one another, with
// nulls at every level, as Impala wrote them.
func TestParquetReadsAnotherWritersNesting(t *testing.T) {
	readFiles(t, intake.Options{}, "testdata/nullable.impala.parquet").want(t, "nesting",
		`1 {"id":1,"int_array":[1,2,3],"int_array_Array":[[1,2],[3,4]],"int_map":{"k1":1,"k2":100},"int_Map_Array":[{"k1":1}],"nested_struct":{"A":1,"b":[1],"C":{"d":[[{"E":10,"F":"aaa"},{"E":-10,"F":"bbb"}],[{"E":11,"F":"c"}]]},"g":{"foo":{"H":{"i":[1.1]}}}}}`,
		`2 {"id":2,"int_array":[null,1,2,null,3,null],"int_array_Array":[[null,1,2,null],[3,null,4],[],null],"int_map":{"k1":2,"k2":null},"int_Map_Array":[{"k3":null,"k1":1},null,{}],"nested_struct":{"A":null,"b":[null],"C":{"d":[[{"E":null,"F":null},{"E":10,"F":"aaa"},{"E":null,"F":null},{"E":-10,"F":"bbb"},{"E":null,"F":null}],[{"E":11,"F":"c"},null],[],null]},"g":{"g1":{"H":{"i":[2.2,null]}},"g2":{"H":{"i":[]}},"g3":null,"g4":{"H":{"i":null}},"g5":{"H":null}}}}`,
		`3 {"id":3,"int_array":[],"int_array_Array":[null],"int_map":{},"int_Map_Array":[null,null],"nested_struct":{"A":null,"b":null,"C":{"d":[]},"g":{}}}`,
		`4 {"id":4,"int_array":null,"int_array_Array":[],"int_map":{},"int_Map_Array":[],"nested_struct":{"A":null,"b":null,"C":{"d":null},"g":null}}`,
		`5 {"id":5,"int_array":null,"int_array_Array":null,"int_map":{},"int_Map_Array":null,"nested_struct":{"A":null,"b":null,"C":null,"g":{"foo":{"H":{"i":[2.2,3.3]}}}}}`,
		`6 {"id":6,"int_array":null,"int_array_Array":null,"int_map":null,"int_Map_Array":null,"nested_struct":null}`,
		`7 {"id":7,"int_array":null,"int_array_Array":[null,[5,6]],"int_map":{"k1":null,"k3":null},"int_Map_Array":null,"nested_struct":{"A":7,"b":[2,3,null],"C":{"d":[[],[null],null]},"g":null}}`)
}

// TestParquetKeepsWhatCrossesPages has rows longer than the buffers, on pages
// smaller than a row, in several row groups.
func TestParquetKeepsWhatCrossesPages(t *testing.T) {
	type row struct {
		N    int64    `parquet:"n"`
		List []string `parquet:"list,list"`
	}
	var rows []row
	for i := range 700 {
		r := row{N: int64(i)}
		for j := range i % 600 {
			r.List = append(r.List, fmt.Sprint(i, "-", j))
		}
		rows = append(rows, r)
	}
	file := parquetRows(t, rows, parquet.PageBufferSize(1024), parquet.MaxRowsPerRowGroup(128))
	g := read(t, "in.parquet", file, intake.Options{})
	if len(g.rows) != len(rows) || g.err != nil {
		t.Fatalf("%d rows, %v", len(g.rows), g.err)
	}
	for i, r := range rows {
		items := "[]"
		if len(r.List) > 0 {
			items = `["` + strings.Join(r.List, `","`) + `"]`
		}
		if want := fmt.Sprintf(`%d {"n":%d,"list":%s}`, i+1, i, items); g.rows[i] != want {
			t.Fatalf("row %d: %.200s", i+1, g.rows[i])
		}
	}
}

func TestParquetMapKeysBecomeStrings(t *testing.T) {
	file := parquetRows(t, []struct {
		M map[int32]bool `parquet:"m"`
	}{{M: map[int32]bool{-7: true}}})
	read(t, "in.parquet", file, intake.Options{}).want(t, "map", `1 {"m":{"-7":true}}`)
}

func TestParquetFromStandardInputLeavesNoFile(t *testing.T) {
	file := parquetOf(t, parquet.String(), parquet.ByteArrayValue([]byte("a")))
	dir := t.TempDir()
	readStdin(t, file, intake.Options{TempDir: dir}).want(t, "by content", `1 {"v":"a"}`)
	readStdin(t, gzipped(t, file), intake.Options{TempDir: dir, Format: intake.Parquet}).want(t, "compressed", `1 {"v":"a"}`)
	read(t, "in.parquet.zst", zstded(t, file), intake.Options{TempDir: dir}).want(t, "compressed by name", `1 {"v":"a"}`)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if g := readStdin(t, file, intake.Options{TempDir: filepath.Join(dir, "none")}); g.err == nil {
		t.Error("a missing folder for temporary files is no error")
	}
}

func TestParquetThatIsDamagedIsAnError(t *testing.T) {
	file := parquetRows(t, []outer{{ID: 1}, {ID: 2}})
	for name, content := range map[string]string{
		"empty": "", "text": "a,b\n1,2\n", "cut off": file[:len(file)/2], "magic alone": "PAR1PAR1",
		"footer longer than the file": "PAR1\xff\xff\xff\x7fPAR1", "end gone": file[:len(file)-1],
		"data gone": "PAR1" + strings.Repeat("\x00", len(file)/2) + file[len(file)/2+4:],
	} {
		g := read(t, "in.parquet", content, intake.Options{})
		if g.err == nil || !strings.Contains(g.err.Error(), "in.parquet: ") {
			t.Errorf("%s: got %v and %v", name, g.err, g.rows)
		}
	}
}

func TestParquetRefusesLZ4(t *testing.T) {
	file := parquetRows(t, []outer{{ID: 1}}, parquet.Compression(&lz4.Codec{}))
	if g := read(t, "in.parquet", file, intake.Options{}); g.err == nil || !strings.Contains(g.err.Error(), `column "id" is compressed by LZ4_RAW`) {
		t.Errorf("got %v", g.err)
	}
}

func TestParquetProgressIsByRows(t *testing.T) {
	values := make([]parquet.Value, 4096)
	for i := range values {
		values[i] = parquet.Int64Value(int64(i))
	}
	path := writeFile(t, "in.parquet", parquetOf(t, parquet.Leaf(parquet.Int64Type), values...))
	s, err := intake.Open([]string{path}, nil, intake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2048 {
		if _, err := s.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if read, total := s.Progress(); read != total/2 {
		t.Errorf("half way: %d of %d", read, total)
	}
	drain(t, s)
	if read, total := s.Progress(); read != total || total == 0 {
		t.Errorf("at the end: %d of %d", read, total)
	}
}
