package intake

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/windrow-go/windrow/internal/jsonb"
)

// encoder appends a value that isn't null as JSON, or appends nothing and returns
// the reason why it can't be.
type encoder func(dst []byte, v *parquet.Value) ([]byte, string)

// encoderFor chooses by the logical type of a column, as far as it fits the
// physical one, which an element of the schema tells.
func encoderFor(logical *format.LogicalType, element *format.SchemaElement) encoder {
	var annotation format.LogicalTypeValue
	if logical != nil {
		annotation = logical.Value
	}
	if annotation == nil { // some the library has no type of its own for
		annotation = element.LogicalType.Value
	}
	if _, null := annotation.(*format.NullType); null {
		return encodeNull
	}
	switch parquet.Kind(element.Type.V) {
	case parquet.Boolean:
		return encodeBool
	case parquet.Int32:
		return int32Encoder(annotation)
	case parquet.Int64:
		return int64Encoder(annotation)
	case parquet.Int96:
		return encodeInt96
	case parquet.Float:
		return encodeFloat
	case parquet.Double:
		return encodeDouble
	case parquet.FixedLenByteArray:
		return fixedEncoder(annotation, element)
	default:
		return bytesEncoder(annotation)
	}
}

func int32Encoder(annotation format.LogicalTypeValue) encoder {
	switch a := annotation.(type) {
	case *format.DateType:
		return encodeDate
	case *format.TimeType:
		return func(dst []byte, v *parquet.Value) ([]byte, string) {
			return appendClock(dst, int64(v.Int32()), unitOf(a.Unit))
		}
	case *format.DecimalType:
		return func(dst []byte, v *parquet.Value) ([]byte, string) {
			return appendDecimal(dst, int64(v.Int32()), int(a.Scale))
		}
	case *format.IntType:
		if !a.IsSigned {
			return func(dst []byte, v *parquet.Value) ([]byte, string) {
				return strconv.AppendUint(dst, uint64(v.Uint32()), 10), ""
			}
		}
	}
	return func(dst []byte, v *parquet.Value) ([]byte, string) {
		return strconv.AppendInt(dst, int64(v.Int32()), 10), ""
	}
}

func int64Encoder(annotation format.LogicalTypeValue) encoder {
	switch a := annotation.(type) {
	case *format.TimestampType:
		return timestampEncoder(unitOf(a.Unit))
	case *format.TimeType:
		return func(dst []byte, v *parquet.Value) ([]byte, string) {
			return appendClock(dst, v.Int64(), unitOf(a.Unit))
		}
	case *format.DecimalType:
		return func(dst []byte, v *parquet.Value) ([]byte, string) {
			return appendDecimal(dst, v.Int64(), int(a.Scale))
		}
	case *format.IntType:
		if !a.IsSigned {
			return func(dst []byte, v *parquet.Value) ([]byte, string) {
				return strconv.AppendUint(dst, v.Uint64(), 10), ""
			}
		}
	}
	return func(dst []byte, v *parquet.Value) ([]byte, string) {
		return strconv.AppendInt(dst, v.Int64(), 10), ""
	}
}

func bytesEncoder(annotation format.LogicalTypeValue) encoder {
	switch a := annotation.(type) {
	case *format.StringType, *format.EnumType:
		return encodeText
	case *format.JsonType:
		return encodeJSON
	case *format.DecimalType:
		return func(dst []byte, v *parquet.Value) ([]byte, string) {
			return appendBigDecimal(dst, v.ByteArray(), int(a.Scale))
		}
	}
	return encodeBase64
}

func fixedEncoder(annotation format.LogicalTypeValue, element *format.SchemaElement) encoder {
	width := element.TypeLength.V
	switch a := annotation.(type) {
	case *format.DecimalType:
		return func(dst []byte, v *parquet.Value) ([]byte, string) {
			return appendBigDecimal(dst, v.ByteArray(), int(a.Scale))
		}
	case *format.UUIDType:
		if width == 16 {
			return encodeUUID
		}
	case *format.Float16Type:
		if width == 2 {
			return encodeFloat16
		}
	}
	if c := element.ConvertedType; c.Valid && c.V == deprecated.Interval && width == 12 {
		return encodeInterval
	}
	return encodeBase64
}

func encodeNull(dst []byte, _ *parquet.Value) ([]byte, string) { return append(dst, "null"...), "" }

func encodeBool(dst []byte, v *parquet.Value) ([]byte, string) {
	return strconv.AppendBool(dst, v.Boolean()), ""
}

func encodeText(dst []byte, v *parquet.Value) ([]byte, string) {
	text := v.ByteArray()
	if !utf8.Valid(text) {
		return dst, "the text is not valid UTF-8"
	}
	return appendQuoted(dst, text), ""
}

func encodeJSON(dst []byte, v *parquet.Value) ([]byte, string) {
	raw := v.ByteArray()
	if err := jsonb.Check(raw); err != nil {
		return dst, err.Error()
	}
	return jsonb.AppendCompact(dst, raw), ""
}

func encodeBase64(dst []byte, v *parquet.Value) ([]byte, string) {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, v.ByteArray())
	return append(dst, '"'), ""
}

func encodeUUID(dst []byte, v *parquet.Value) ([]byte, string) {
	u := v.ByteArray()
	dst = append(dst, '"')
	for i, end := range []int{4, 6, 8, 10, 16} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, u[:end][[]int{0, 4, 6, 8, 10}[i]:])
	}
	return append(dst, '"'), ""
}

func encodeFloat(dst []byte, v *parquet.Value) ([]byte, string) {
	return appendFloat(dst, float64(v.Float()), 32)
}

func encodeDouble(dst []byte, v *parquet.Value) ([]byte, string) {
	return appendFloat(dst, v.Double(), 64)
}

// encodeFloat16 reads a half-precision number: sign, 5 bits of exponent, 10 of
// fraction.
func encodeFloat16(dst []byte, v *parquet.Value) ([]byte, string) {
	h := binary.LittleEndian.Uint16(v.ByteArray())
	exponent, fraction := int(h>>10&0x1f), float64(h&0x3ff)
	var f float64
	switch exponent {
	case 0x1f:
		return dst, "NaN or an infinity, which JSON has no number for"
	case 0:
		f = math.Ldexp(fraction, -24)
	default:
		f = math.Ldexp(fraction+1024, exponent-25)
	}
	if h>>15 == 1 {
		f = -f
	}
	return appendFloat(dst, f, 32)
}

// appendFloat appends the shortest text that reads back as the same number.
func appendFloat(dst []byte, f float64, bits int) ([]byte, string) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, "NaN or an infinity, which JSON has no number for"
	}
	verb := byte('f')
	if size := math.Abs(f); size != 0 && (size < 1e-6 || size >= 1e21) {
		verb = 'e'
	}
	return strconv.AppendFloat(dst, f, verb, -1, bits), ""
}

func unitOf(u format.TimeUnit) time.Duration {
	if u.Value == nil {
		return time.Microsecond
	}
	return u.Value.Duration()
}
