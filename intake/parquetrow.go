package intake

import "fmt"

// rowWriter gathers the JSON of one row.
type rowWriter struct {
	dst    []byte
	reason string // why the row can't be used, if it can't
}

// write writes the node as it stands in the row, null if it isn't there.
func (n *node) write(w *rowWriter) {
	switch {
	case n.repeated:
		n.each(w, '[', ']', n.present)
	case n.optional && n.absent():
		n.skip()
		w.dst = append(w.dst, "null"...)
	default:
		n.present(w)
	}
}

// absent tells whether the node isn't there, or repeats no time.
func (n *node) absent() bool {
	return n.first != nil && n.first.head().DefinitionLevel() < n.def
}

// skip takes the one null that each column under an absent node has.
func (n *node) skip() {
	for _, l := range n.leaves {
		l.take()
	}
}

// present writes the node, once, where it is there.
func (n *node) present(w *rowWriter) {
	switch n.kind {
	case leafNode:
		n.value(w)
	case groupNode:
		n.object(w)
	case listNode:
		n.children[0].write(w)
	case elementNode:
		n.children[0].write(w)
	case mapNode:
		n.children[0].each(w, '{', '}', n.children[0].entry)
	}
}

func (n *node) value(w *rowWriter) {
	v := n.leaf.take()
	if v.IsNull() { // in a column that must have values: the file is damaged
		w.dst = append(w.dst, "null"...)
		return
	}
	var reason string
	if w.dst, reason = n.leaf.encode(w.dst, v); reason != "" {
		w.dst = append(w.dst, "null"...)
		if w.reason == "" {
			w.reason = fmt.Sprintf("column %q: %s", n.leaf.name, reason)
		}
	}
}

func (n *node) object(w *rowWriter) {
	w.dst = append(w.dst, '{')
	for i, child := range n.children {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = append(w.dst, child.prefix...)
		child.write(w)
	}
	w.dst = append(w.dst, '}')
}

// each writes what repeats in a row, as often as it does. Which values belong to
// the same parent, their repetition levels tell.
func (n *node) each(w *rowWriter, open, end byte, write func(*rowWriter)) {
	w.dst = append(w.dst, open)
	switch {
	case n.first == nil:
	case n.absent():
		n.skip()
	default:
		write(w)
		for n.first.more() && n.first.head().RepetitionLevel() >= n.rep {
			w.dst = append(w.dst, ',')
			write(w)
		}
	}
	w.dst = append(w.dst, end)
}

// entry writes a map's key, as a string whatever it is, and its value.
func (n *node) entry(w *rowWriter) {
	key, value := n.children[0], n.children[1]
	start := len(w.dst)
	key.write(w)
	if len(w.dst) > start && w.dst[start] != '"' {
		text := string(w.dst[start:])
		w.dst = appendQuoted(w.dst[:start], text)
	}
	w.dst = append(w.dst, ':')
	value.write(w)
}
