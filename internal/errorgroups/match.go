package errorgroups

import (
	"net"
	"net/netip"
	"strings"
)

// matcher looks for one kind of value that begins at i, where no letter or digit
// stands before. It returns the value's end and the name of its placeholder; an end
// of i says that there is none.
type matcher func(text string, i int) (end int, name string)

// matchers in the order of precedence: what another would take for several numbers
// comes first.
var matchers = []matcher{uuid, instant, colons, dotted, email, hex}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isAlnum(c byte) bool { return isDigit(c) || isLetter(c) }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// endOf returns where the characters of a kind end that begin at i.
func endOf(text string, i int, kind func(byte) bool) int {
	for i < len(text) && kind(text[i]) {
		i++
	}
	return i
}

func runEnd(text string, i int) int { return endOf(text, i, isAlnum) }

// whole tells whether what ends here is not the beginning of something longer.
func whole(text string, end int) bool { return end == len(text) || !isAlnum(text[end]) }

// shaped returns where text, from i on, ends to look like shape: 0 is a digit, x a hex
// digit, anything else itself. It returns i if it does not look like that.
func shaped(text string, i int, shape string) int {
	if len(text)-i < len(shape) {
		return i
	}
	for k := range len(shape) {
		c := text[i+k]
		switch shape[k] {
		case '0':
			if !isDigit(c) {
				return i
			}
		case 'x':
			if !isHex(c) {
				return i
			}
		default:
			if c != shape[k] {
				return i
			}
		}
	}
	return i + len(shape)
}

func uuid(text string, i int) (int, string) {
	end := shaped(text, i, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
	if end == i || !whole(text, end) {
		return i, ""
	}
	return end, "uuid"
}

// instant is a date, a date with a time of the day, or a time of the day with seconds.
func instant(text string, i int) (int, string) {
	if !isDigit(text[i]) {
		return i, ""
	}
	end := max(shaped(text, i, "0000-00-00"), shaped(text, i, "0000/00/00"))
	switch {
	case end == i:
		if end = clock(text, i); end < i+len("00:00:00") {
			return i, ""
		}
	case end < len(text) && (text[end]|0x20 == 't' || text[end] == ' '):
		if at := clock(text, end+1); at > end+1 {
			end = at
		}
	}
	if !whole(text, end) {
		return i, ""
	}
	return end, "time"
}

// clock returns the end of a time of the day with whatever of seconds, fractions and
// zone it has.
func clock(text string, i int) int {
	end := shaped(text, i, "00:00")
	if end == i {
		return i
	}
	if seconds := shaped(text, end, ":00"); seconds > end {
		end = seconds
		if end+1 < len(text) && (text[end] == '.' || text[end] == ',') && isDigit(text[end+1]) {
			end = endOf(text, end+1, isDigit)
		}
	}
	for _, zone := range []string{"Z", "+00:00", "-00:00", "+0000", "-0000"} {
		if at := shaped(text, end, zone); at > end && whole(text, at) {
			return at
		}
	}
	return end
}

// colons is an address that has colons: IPv6, or one of hardware.
func colons(text string, i int) (int, string) {
	const longest = len("0000:0000:0000:0000:0000:0000:255.255.255.255")
	end := endOf(text[:min(len(text), i+longest+2)], i, func(c byte) bool { return isHex(c) || c == ':' || c == '.' })
	run := strings.TrimRight(text[i:end], ".")
	if network := strings.HasSuffix(run, "::") && strings.HasPrefix(text[i+len(run):], "/"); !network {
		run = strings.TrimSuffix(run, ":") // of the sentence
	}
	if len(run) > longest || strings.Count(run, ":") < 2 || !strings.ContainsAny(run, "0123456789") || !whole(text, i+len(run)) {
		return i, ""
	}
	if _, err := net.ParseMAC(run); err == nil {
		return i + len(run), "hex"
	}
	if _, err := netip.ParseAddr(run); err == nil {
		return i + len(run), "ip"
	}
	return i, ""
}

// dotted is an IPv4 address.
func dotted(text string, i int) (int, string) {
	if !isDigit(text[i]) {
		return i, ""
	}
	const longest = len("255.255.255.255")
	end := endOf(text[:min(len(text), i+longest+2)], i, func(c byte) bool { return isDigit(c) || c == '.' })
	run := strings.TrimRight(text[i:end], ".")
	if len(run) > longest || strings.Count(run, ".") != 3 || !whole(text, i+len(run)) {
		return i, ""
	}
	if _, err := netip.ParseAddr(run); err != nil {
		return i, ""
	}
	return i + len(run), "ip"
}

// email is an address whose part before the @ has at most 64 characters.
func email(text string, i int) (int, string) {
	const local = 64
	at := endOf(text[:min(len(text), i+local+1)], i, func(c byte) bool {
		return isAlnum(c) || strings.IndexByte("._%+-", c) >= 0
	})
	if at+1 >= len(text) || text[at] != '@' || !isLetter(text[at+1]) {
		return i, ""
	}
	end := at + 1
	for {
		end = endOf(text, end, func(c byte) bool { return isAlnum(c) || c == '-' })
		if end+1 >= len(text) || text[end] != '.' || !isAlnum(text[end+1]) {
			return end, "email"
		}
		end++
	}
}

// hex is 0x and hex digits, or eight hex digits or more. Words of those letters alone
// are too short or too rare to be in the way.
func hex(text string, i int) (int, string) {
	end := runEnd(text, i)
	run := text[i:end]
	if len(run) > 2 && run[0] == '0' && run[1]|0x20 == 'x' && allHex(run[2:]) {
		return end, "hex"
	}
	if len(run) >= 8 && allHex(run) && strings.Trim(run, "0123456789") != "" {
		return end, "hex"
	}
	return i, ""
}

func allHex(s string) bool { return endOf(s, 0, isHex) == len(s) }

// number returns the end of the number whose first digit is at i, and the unit of up
// to three letters that follows; the end is i if this is no number. A duration such
// as 1m30s is a number as a whole, and so is a list such as 1,2,3.
func number(text string, i int) (end int, unit string) {
	if end := duration(text, i); end > i {
		return end, ""
	}
	group, end := digits(text, i)
	if whole(text, end) {
		return end, ""
	}
	if at := exponent(text, end); at > end {
		return at, ""
	}
	unit = text[end:runEnd(text, end)]
	_, address := email(text, end)
	if len(unit) <= 3 && endOf(unit, 0, isLetter) == len(unit) && address == "" {
		return end, unit
	}
	return max(i, group-1), "" // what stands before the last group is a number at least
}

// digits returns the end of digits with points or commas between, and where the last
// group of them begins.
func digits(text string, i int) (group, end int) {
	group, end = i, endOf(text, i, isDigit)
	for end+1 < len(text) && (text[end] == '.' || text[end] == ',') && isDigit(text[end+1]) {
		group, end = end+1, endOf(text, end+1, isDigit)
	}
	return group, end
}

func exponent(text string, i int) int {
	at := i + 1
	if text[i]|0x20 != 'e' || at == len(text) {
		return i
	}
	if text[at] == '-' || text[at] == '+' {
		at++
	}
	end := endOf(text, at, isDigit)
	if end == at || !whole(text, end) {
		return i
	}
	return end
}

// durationUnits are Go's, the longer ones first.
var durationUnits = []string{"ns", "us", "µs", "μs", "ms", "h", "m", "s"}

// duration returns the end of numbers with units of time, or i.
func duration(text string, i int) int {
	const longest = len("2562047h47m16.854775807s")
	end := i
	for end < len(text) && isDigit(text[end]) && end-i <= longest {
		_, after := digits(text, end)
		length := 0
		for _, unit := range durationUnits {
			if length == 0 && strings.HasPrefix(text[after:], unit) {
				length = len(unit)
			}
		}
		if length == 0 {
			return i
		}
		end = after + length
	}
	if !whole(text, end) {
		return i
	}
	return end
}

// stemOf is what stays of a run of letters and digits: all of it if it has no digit,
// the letters if it is a word with a number after it, otherwise nothing.
func stemOf(run string) string {
	end := endOf(run, 0, isLetter)
	if end == len(run) {
		return run
	}
	stem := run[:end]
	isWord := end >= 3 && stem[1:] == strings.ToLower(stem[1:])
	if !isWord || endOf(run, end, isDigit) < len(run) {
		return ""
	}
	return stem
}
