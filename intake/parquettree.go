package intake

import (
	"fmt"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// nodeKind is how a node of the schema is written where it isn't null.
type nodeKind uint8

const (
	leafNode    nodeKind = iota // its value
	groupNode                   // an object of its children
	listNode                    // the array of its one child, which repeats
	elementNode                 // its one child: the group around an element of a list
	mapNode                     // an object; its one child repeats, with a key and a value
)

// node is a node of a file's schema, a column or a group of them, with all that
// is needed to write it as JSON.
type node struct {
	kind     nodeKind
	prefix   []byte // `"name":`
	optional bool
	repeated bool
	def, rep int // levels from which on it is there, and repeats

	leaf     *leaf   // of a leaf
	first    *leaf   // the first column under it, whose levels tell of it; nil if there is none
	leaves   []*leaf // all columns under it
	children []*node
}

// treeBuilder makes nodes of a schema.
type treeBuilder struct {
	elements []*format.SchemaElement // of the columns, by index
	leaves   []*leaf
}

func newTree(file *parquet.File) (*node, []*leaf, error) {
	b := &treeBuilder{}
	schema := file.Metadata().Schema
	for i := range schema {
		if schema[i].Type.Valid {
			b.elements = append(b.elements, &schema[i])
		}
	}
	root, err := b.node(file.Root())
	return root, b.leaves, err
}

func (b *treeBuilder) node(c *parquet.Column) (*node, error) {
	n := &node{
		prefix:   append(appendQuoted(nil, strings.ToValidUTF8(c.Name(), "\ufffd")), ':'),
		optional: c.Optional(),
		repeated: c.Repeated(),
		def:      c.MaxDefinitionLevel(),
		rep:      c.MaxRepetitionLevel(),
	}
	start := len(b.leaves)
	if c.Leaf() {
		b.leaf(n, c)
	} else if err := b.group(n, c); err != nil {
		return nil, err
	}
	if n.leaves = b.leaves[start:]; len(n.leaves) > 0 {
		n.first = n.leaves[0]
	}
	return n, nil
}

func (b *treeBuilder) leaf(n *node, c *parquet.Column) {
	n.kind = leafNode
	n.leaf = &leaf{
		name:   strings.Join(c.Path(), "."),
		index:  c.Index(),
		encode: encoderFor(c.Type().LogicalType(), b.elements[c.Index()]),
	}
	b.leaves = append(b.leaves, n.leaf)
}

func (b *treeBuilder) group(n *node, c *parquet.Column) error {
	n.kind = groupNode
	names := map[string]bool{}
	for _, child := range c.Columns() {
		if names[child.Name()] {
			return fmt.Errorf("two columns have the same name %q", child.Name())
		}
		names[child.Name()] = true
		built, err := b.node(child)
		if err != nil {
			return err
		}
		n.children = append(n.children, built)
	}
	if len(n.children) != 1 || !n.children[0].repeated || c.Type() == nil {
		return nil
	}
	logical := c.Type().LogicalType()
	if logical == nil {
		return nil
	}
	only, column := n.children[0], c.Columns()[0]
	switch logical.Value.(type) {
	case *format.ListType:
		n.kind = listNode
		unwrapElement(only, column.Name(), c.Name())
	case *format.MapType:
		if len(only.children) == 2 && only.children[0].kind == leafNode && !only.children[0].repeated {
			n.kind = mapNode
		}
	}
	return nil
}

// unwrapElement lets the group around a list's element vanish, by the rules of the
// format for lists of older writers, in which that group is the element.
func unwrapElement(middle *node, name, parent string) {
	if middle.kind != groupNode || len(middle.children) != 1 || name == "array" || name == parent+"_tuple" {
		return
	}
	middle.kind = elementNode
}
