package jsonb

// AppendCompact appends raw to dst without the white space between its tokens, so
// that it stands on one line. The text of strings and numbers is kept as it is.
// raw must be JSON that has passed [Check]. dst and raw may share their start
// (raw[:0] compacts in place).
func AppendCompact(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		start := i
		for i < len(raw) && !isSpace(raw[i]) {
			if raw[i] == '"' {
				i = stringEnd(raw, i)
				continue
			}
			i++
		}
		dst = append(dst, raw[start:i]...)
		for i < len(raw) && isSpace(raw[i]) {
			i++
		}
	}
	return dst
}

// stringEnd returns where the string that begins at i ends.
func stringEnd(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}
