package onnxfile

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/otograph/otograph/internal/files/ortfile"
)

// Exposed returns the name of the output number i that Expose adds.
func Exposed(i int) string { return fmt.Sprintf("exposed.%d", i) }

// Expose returns a model with additional outputs of float32: in the branches of
// its If nodes, the first input of each node whose name ends with suffix. They
// are numbered in the order of the nodes (Exposed). All branches must have the
// same number of such nodes. The result lies in a block returned by alloc; it
// is nil if there is no such node.
func Expose(data []byte, suffix string, alloc func(size int) []byte) []byte {
	e := exposer{data: data, suffix: suffix}
	var model ortfile.Message
	err := e.copy(wire{src: &window{r: bytes.NewReader(data)}, end: int64(len(data))}, &model, func(f field) *ortfile.Message {
		if f.num != 7 {
			return nil
		}
		return e.graph(f.body)
	})
	if err != nil || e.failed || e.count == 0 {
		return nil
	}
	return model.Join(alloc)
}

type exposer struct {
	data   []byte
	suffix string
	count  int // outputs added to the main graph
	failed bool
}

// copy appends the fields of a message to out; change returns the new content
// of a field, nil to keep it.
func (e *exposer) copy(c wire, out *ortfile.Message, change func(field) *ortfile.Message) error {
	for c.more() {
		at := c.at
		f, err := c.next()
		if err != nil {
			return err
		}
		if f.kind == wireBytes {
			if changed := change(f); changed != nil {
				out.Message(f.num, changed)
				continue
			}
		}
		out.Append(e.data[at:c.at])
	}
	return nil
}

// graph returns the main graph with the outputs of its If nodes.
func (e *exposer) graph(c wire) *ortfile.Message {
	var out ortfile.Message
	first := e.count
	e.check(e.copy(c, &out, func(f field) *ortfile.Message {
		if f.num != 1 || e.text(f, 4) != "If" {
			return nil
		}
		return e.choice(f.body)
	}))
	for i := first; i < e.count; i++ {
		out.Message(12, output(Exposed(i)))
	}
	return &out
}

// choice returns an If node with the outputs of its branches.
func (e *exposer) choice(c wire) *ortfile.Message {
	var out ortfile.Message
	found := -1
	e.check(e.copy(c, &out, func(f field) *ortfile.Message {
		if f.num != 5 {
			return nil
		}
		var attribute ortfile.Message
		e.check(e.copy(f.body, &attribute, func(f field) *ortfile.Message {
			if f.num != 6 {
				return nil
			}
			branch, n := e.branch(f.body)
			e.failed = e.failed || found >= 0 && n != found
			found = n
			return branch
		}))
		return &attribute
	}))
	for range found {
		out.Bytes(2, []byte(Exposed(e.count)))
		e.count++
	}
	return &out
}

// branch returns a nested graph with the inputs as outputs, and their number.
func (e *exposer) branch(c wire) (*ortfile.Message, int) {
	var out, outputs ortfile.Message
	found := 0
	e.check(e.copy(c, &out, func(f field) *ortfile.Message {
		if f.num == 1 && strings.HasSuffix(e.text(f, 3), e.suffix) {
			outputs.Message(12, output(e.text(f, 1)))
			found++
		}
		return nil
	}))
	out.Merge(&outputs)
	return &out, found
}

// text returns the first string of a message with a number.
func (e *exposer) text(f field, num uint64) (text string) {
	found := false
	e.check(f.each(func(f field) (err error) {
		if f.num == num && !found {
			found = true
			text, err = f.text(maxName)
		}
		return err
	}))
	return text
}

func (e *exposer) check(err error) { e.failed = e.failed || err != nil }

// output declares an output of float32.
func output(name string) *ortfile.Message {
	var tensor, typ, out ortfile.Message
	tensor.Number(1, int64(Float32))
	typ.Message(1, &tensor)
	out.Bytes(1, []byte(name))
	out.Message(2, &typ)
	return &out
}
