package onnxfile

import (
	"bytes"
	"fmt"
	"strings"
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
	var model message
	err := e.copy(wire{src: newWindow(bytes.NewReader(data)), end: int64(len(data))}, &model, func(f field) *message {
		if f.num != 7 {
			return nil
		}
		return e.graph(f.body)
	})
	if err != nil || e.failed || e.count == 0 {
		return nil
	}
	return model.join(alloc)
}

type exposer struct {
	data   []byte
	suffix string
	count  int // outputs added to the main graph
	failed bool
}

// copy appends a message's fields to out; change may return new content.
func (e *exposer) copy(c wire, out *message, change func(field) *message) error {
	for c.more() {
		at := c.at
		f, err := c.next()
		if err != nil {
			return err
		}
		if f.kind == wireBytes {
			if changed := change(f); changed != nil {
				out.message(f.num, changed)
				continue
			}
		}
		out.append(e.data[at:c.at])
	}
	return nil
}

// graph returns the main graph with the outputs of its If nodes.
func (e *exposer) graph(c wire) *message {
	var out message
	first := e.count
	e.check(e.copy(c, &out, func(f field) *message {
		if f.num != 1 || e.text(f, 4) != "If" {
			return nil
		}
		return e.choice(f.body)
	}))
	for i := first; i < e.count; i++ {
		out.message(12, valueProto(Exposed(i), Float32, nil))
	}
	return &out
}

// choice returns an If node with the outputs of its branches.
func (e *exposer) choice(c wire) *message {
	var out message
	found := -1
	e.check(e.copy(c, &out, func(f field) *message {
		if f.num != 5 {
			return nil
		}
		var attribute message
		e.check(e.copy(f.body, &attribute, func(f field) *message {
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
		out.text(2, Exposed(e.count))
		e.count++
	}
	return &out
}

// branch returns a nested graph with the inputs as outputs, and their number.
func (e *exposer) branch(c wire) (*message, int) {
	var out, outputs message
	found := 0
	e.check(e.copy(c, &out, func(f field) *message {
		if f.num == 1 && strings.HasSuffix(e.text(f, 3), e.suffix) {
			outputs.message(12, valueProto(e.text(f, 1), Float32, nil))
			found++
		}
		return nil
	}))
	out.merge(&outputs)
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
