package intake

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"
)

// timestampEncoder writes instants as RFC 3339 in UTC. One without a time zone
// ("not adjusted to UTC") is taken as UTC.
func timestampEncoder(unit time.Duration) encoder {
	perSecond := int64(time.Second / unit)
	return func(dst []byte, v *parquet.Value) ([]byte, string) {
		n := v.Int64()
		seconds, rest := n/perSecond, n%perSecond
		return appendInstant(dst, time.Unix(seconds, rest*int64(unit)))
	}
}

// encodeInt96 reads the timestamps of older writers: nanoseconds of the day, and
// the Julian day.
func encodeInt96(dst []byte, v *parquet.Value) ([]byte, string) {
	const julianEpoch = 2440588 // 1970-01-01
	i := v.Int96()
	nanos := int64(uint64(i[1])<<32 | uint64(i[0]))
	days := int64(int32(i[2])) - julianEpoch
	return appendInstant(dst, time.Unix(days*86400, nanos))
}

func appendInstant(dst []byte, t time.Time) ([]byte, string) {
	t = t.UTC()
	if year := t.Year(); year < 0 || year > 9999 {
		return dst, fmt.Sprintf("a time in the year %d, which RFC 3339 can't say", year)
	}
	dst = append(dst, '"')
	dst = t.AppendFormat(dst, time.RFC3339Nano)
	return append(dst, '"'), ""
}

func encodeDate(dst []byte, v *parquet.Value) ([]byte, string) {
	t := time.Unix(int64(v.Int32())*86400, 0).UTC()
	if year := t.Year(); year < 0 || year > 9999 {
		return dst, fmt.Sprintf("a date in the year %d, which RFC 3339 can't say", year)
	}
	dst = append(dst, '"')
	dst = t.AppendFormat(dst, time.DateOnly)
	return append(dst, '"'), ""
}

// appendClock appends a time of day.
func appendClock(dst []byte, n int64, unit time.Duration) ([]byte, string) {
	if n < 0 || n >= int64(24*time.Hour/unit) {
		return dst, "a time of day outside of the day"
	}
	dst = append(dst, '"')
	dst = time.Unix(0, n*int64(unit)).UTC().AppendFormat(dst, "15:04:05.999999999")
	return append(dst, '"'), ""
}

// encodeInterval reads months, days and milliseconds and writes an ISO 8601
// duration.
func encodeInterval(dst []byte, v *parquet.Value) ([]byte, string) {
	b := v.ByteArray()
	months, days := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	millis := binary.LittleEndian.Uint32(b[8:])
	return fmt.Appendf(dst, `"P%dM%dDT%d.%03dS"`, months, days, millis/1000, millis%1000), ""
}

// appendDecimal appends unscaled / 10^scale with all its digits.
func appendDecimal(dst []byte, unscaled int64, scale int) ([]byte, string) {
	var digits [20]byte
	return placePoint(dst, strconv.AppendInt(digits[:0], unscaled, 10), scale)
}

// appendBigDecimal does so for an unscaled value in big-endian two's complement.
func appendBigDecimal(dst, b []byte, scale int) ([]byte, string) {
	const longest = 1 << 10 // bytes; far beyond any precision in use, and quick to convert
	if len(b) > longest {
		return dst, fmt.Sprintf("a decimal of %d bytes", len(b))
	}
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(len(b))*8))
	}
	return placePoint(dst, n.Append(nil, 10), scale)
}

// placePoint appends an integer's digits with a decimal point scale digits from
// the right.
func placePoint(dst, digits []byte, scale int) ([]byte, string) {
	if scale < 0 || scale > 16383 {
		return dst, fmt.Sprintf("a decimal with the scale %d", scale)
	}
	if digits[0] == '-' {
		dst, digits = append(dst, '-'), digits[1:]
	}
	if scale == 0 {
		return append(dst, digits...), ""
	}
	whole := len(digits) - scale
	if whole <= 0 {
		dst = append(dst, "0."...)
		for range -whole {
			dst = append(dst, '0')
		}
		return append(dst, digits...), ""
	}
	dst = append(dst, digits[:whole]...)
	dst = append(dst, '.')
	return append(dst, digits[whole:]...), ""
}
