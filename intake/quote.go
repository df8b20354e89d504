package intake

const hexDigits = "0123456789abcdef"

// verbatim are the bytes that stand in a JSON string as they are, those of
// multi-byte characters among them.
var verbatim = func() (t [256]bool) {
	for b := ' '; b < 256; b++ {
		t[b] = b != '"' && b != '\\'
	}
	return t
}()

// appendQuoted appends s, which must be valid UTF-8, as a JSON string. Unlike
// encoding/json it leaves <, > and & alone.
func appendQuoted[S string | []byte](dst []byte, s S) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		if verbatim[s[i]] {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch b := s[i]; b {
		case '"', '\\':
			dst = append(dst, '\\', b)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&15])
		}
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}
