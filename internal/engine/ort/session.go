//go:build cgo

package ort

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"

	onnx "github.com/yalue/onnxruntime_go"

	"github.com/otograph/otograph/internal/files/onnxfile"
)

// Session is an open model. It is safe for concurrent use.
type Session struct {
	source Source
	graph  *Graph
	names  []string // inputs in the order of the native session
	outs   []Info   // the computed outputs

	mu      sync.RWMutex // read-locked by every run, write-locked by Close
	session *onnx.DynamicAdvancedSession
}

// Open checks a model and opens a session; data may be discarded then. Errors
// wrap [ErrInvalid] or native.ErrMissing, or come from the file system.
func Open(src Source, opt Options) (*Session, error) {
	named := src
	var room blocks
	defer room.free()
	src, err := room.prepared(src, opt)
	if err != nil {
		return nil, err
	}
	graph, err := Inspect(src)
	if err != nil {
		return nil, err
	}
	s := &Session{source: named, graph: graph}
	s.source.Data = nil
	for _, out := range graph.Outputs {
		// The module cannot wrap an output of rank 0 that the library allocates.
		if slices.Contains([]Type{Float32, Int64, Int32}, out.Type) && (out.Shape == nil || len(out.Shape) > 0) {
			s.outs = append(s.outs, out)
		}
	}
	for _, in := range graph.Inputs {
		s.names = append(s.names, in.Name)
	}
	if len(opt.Outputs) > 0 {
		all := s.outs
		s.outs = nil
		for _, name := range opt.Outputs {
			out, ok := onnxfile.Find(all, name)
			if !ok {
				return nil, fmt.Errorf("%s: %w: expected an output %q of type float32, int64 or int32, it has %s",
					src, ErrContract, name, onnxfile.FormatValues(graph.Outputs))
			}
			s.outs = append(s.outs, out)
		}
	}
	if len(s.outs) == 0 {
		return nil, fmt.Errorf("%s: %w: expected outputs of type float32, int64 or int32, it has %s", src, ErrContract, onnxfile.FormatValues(graph.Outputs))
	}
	if err := start(); err != nil {
		return nil, fmt.Errorf("%s: %w", src, err)
	}
	o, err := sessionOptions(opt)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", src, ErrRun, err)
	}
	defer func() { _ = o.Destroy() }()
	outNames := make([]string, len(s.outs))
	for i, out := range s.outs {
		outNames[i] = out.Name
	}
	if src.Data != nil {
		s.session, err = onnx.NewDynamicAdvancedSessionWithONNXData(src.Data, s.names, outNames, o)
	} else {
		s.session, err = onnx.NewDynamicAdvancedSession(src.Path, s.names, outNames, o)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", src, ErrInvalid, cleanMessage(err))
	}
	return s, nil
}

func sessionOptions(opt Options) (*onnx.SessionOptions, error) {
	o, err := onnx.NewSessionOptions()
	if err != nil {
		return nil, err
	}
	threads := max(opt.Threads, 1)
	err = errors.Join(
		o.SetIntraOpNumThreads(threads),
		o.SetInterOpNumThreads(1),
		// The arena grows with every new input length and never shrinks, and
		// the memory patterns store every length: both suit fixed lengths.
		o.SetCpuMemArena(opt.Arena),
		o.SetMemPattern(false),
		// Waiting threads must not use the cores on which other stages compute.
		o.AddSessionConfigEntry("session.intra_op.allow_spinning", "0"),
		o.AddSessionConfigEntry("session.inter_op.allow_spinning", "0"),
		o.SetLogSeverityLevel(onnx.LoggingLevelFatal),
	)
	if err != nil {
		_ = o.Destroy()
		return nil, err
	}
	return o, nil
}

// cleanMessage returns ONNX Runtime's message in one line of limited length.
func cleanMessage(err error) string {
	s := strings.Join(strings.Fields(err.Error()), " ")
	for _, p := range []string{"Error creating C session from file: ", "Error creating C session: ", "Error running network: "} {
		s = strings.TrimPrefix(s, p)
	}
	if len(s) > 600 {
		s = strings.ToValidUTF8(s[:600], "") + "…"
	}
	return s
}

// Source returns the model's source (without its bytes).
func (s *Session) Source() Source { return s.source }

// Graph returns the description read from the file before it was opened.
func (s *Session) Graph() *Graph { return s.graph }

// Run computes the named outputs, or all outputs of the session if none is
// named, in the requested order. Every input of the model is required. A
// canceled context stops the computation between two nodes of the graph, and
// its error is returned (wrapped). Run may be called concurrently.
func (s *Session) Run(ctx context.Context, inputs map[string]*Tensor, outputs ...string) ([]*Tensor, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", s.source, err)
	}
	want := make([]int, 0, len(outputs))
	for _, name := range outputs {
		i := slices.IndexFunc(s.outs, func(o Info) bool { return o.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("%s: %w: no output %q, it has %s", s.source, ErrContract, name, onnxfile.FormatValues(s.outs))
		}
		want = append(want, i)
	}
	if len(outputs) == 0 {
		for i := range s.outs {
			want = append(want, i)
		}
	}
	if err := s.checkInputs(inputs); err != nil {
		return nil, err
	}

	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.session == nil {
		return nil, fmt.Errorf("%s: %w", s.source, ErrClosed)
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	in := make([]onnx.Value, len(s.names))
	out := make([]onnx.Value, len(s.outs))
	defer func() {
		for _, v := range append(in, out...) {
			// The module returns typed nil pointers for outputs it can't wrap.
			if v != nil && !reflect.ValueOf(v).IsNil() {
				_ = v.Destroy()
			}
		}
	}()
	for i, name := range s.names {
		v, err := inputs[name].value(&pin)
		if err != nil {
			return nil, fmt.Errorf("%s: %w: input %s: %w", s.source, ErrInput, name, err)
		}
		in[i] = v
	}

	var err error
	if ctx.Done() == nil {
		err = s.session.Run(in, out)
	} else {
		err = s.runCancellable(ctx, in, out)
	}
	runtime.KeepAlive(inputs)
	if ctxErr := ctx.Err(); err != nil && ctxErr != nil {
		return nil, fmt.Errorf("%s: %w", s.source, ctxErr)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", s.source, ErrRun, cleanMessage(err))
	}
	chosen := make([]*Tensor, len(want))
	for k, i := range want {
		if chosen[k], err = fromValue(out[i]); err != nil {
			return nil, fmt.Errorf("%s: %w: output %s: %w", s.source, ErrRun, s.outs[i].Name, err)
		}
	}
	return chosen, nil
}

// runCancellable runs with options that terminate when the context ends.
func (s *Session) runCancellable(ctx context.Context, in, out []onnx.Value) error {
	o, err := onnx.NewRunOptions()
	if err != nil {
		return err
	}
	defer func() { _ = o.Destroy() }()
	finished := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(finished)
		_ = o.Terminate()
	})
	err = s.session.RunWithOptions(in, out, o)
	if !stop() {
		<-finished // the options must outlive the call that sets their flag
	}
	return err
}

func (s *Session) checkInputs(inputs map[string]*Tensor) error {
	for _, want := range s.graph.Inputs {
		t := inputs[want.Name]
		if t == nil {
			return fmt.Errorf("%s: %w: no tensor for input %s", s.source, ErrInput, want)
		}
		if err := fits(want, t); err != nil {
			return fmt.Errorf("%s: %w: %w", s.source, ErrInput, err)
		}
	}
	if len(inputs) > len(s.graph.Inputs) {
		for name := range inputs {
			if !slices.Contains(s.names, name) {
				return fmt.Errorf("%s: %w: no input %q, it has %s", s.source, ErrInput, name, onnxfile.FormatValues(s.graph.Inputs))
			}
		}
	}
	return nil
}

// fits compares a tensor with the input or output that it is passed for.
func fits(want Info, t *Tensor) error {
	n, ok := onnxfile.Elements(t.shape)
	if !ok || n != int64(t.Len()) {
		return fmt.Errorf("%s: shape %s needs %d elements, got %d", want.Name, onnxfile.FormatShape(t.shape), n, t.Len())
	}
	same := func(dim, n int64) bool { return dim < 0 || dim == n }
	if t.typ != want.Type || want.Shape != nil && !slices.EqualFunc(want.Shape, t.shape, same) {
		return fmt.Errorf("expected %s, got %s%s", want, t.typ, onnxfile.FormatShape(t.shape))
	}
	return nil
}

// Close releases the native session after the last run has returned. It may be called
// more than once and from several goroutines.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == nil {
		return nil
	}
	err := s.session.Destroy()
	s.session = nil
	if err != nil {
		return fmt.Errorf("%s: %w: %w", s.source, ErrRun, err)
	}
	return nil
}
