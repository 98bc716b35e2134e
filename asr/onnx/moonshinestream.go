package onnx

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/files/onnxfile"
)

// moonshineStream holds the graphs around the encoder of Moonshine v2, in the
// streaming layout of Moonshine's own library (core/moonshine-streaming-model.cpp):
// the frontend turns samples into features, 20 ms each, and keeps states between
// calls; the encoder attends to near features only; the adapter adds positions.
type moonshineStream struct {
	states *chunks // of the frontend
	// behind and ahead are the features before and after a frame that may change it.
	behind, ahead int
}

// streamGrid is the grid of Moonshine v2: the frontend's frames have 80 samples,
// and its two causal convolutions keep every fourth.
var streamGrid = grid{stride: 4 * 80, middle: 40}

func (n *moonshine) openStream(m parts, encoder *checker) error {
	if !present(m.Frontend) || !present(m.Adapter) || !present(m.Joiner) || !present(m.Decoder) {
		encoder.fail(ErrFile, "Moonshine's streaming layout needs frontend, adapter, cross_kv and decoder_kv next to the encoder")
		return encoder.err
	}
	perFeature := streamGrid.stride / frameHop
	n.stream, n.grid = &moonshineStream{states: &chunks{size: perFeature, shift: perFeature, anew: true}}, streamGrid
	for _, o := range []struct {
		to   **ort.Session
		from ort.Source
	}{{&n.frontend, m.Frontend}, {&n.adapter, m.Adapter}, {&n.encoder, m.ONNX}, {&n.joiner, m.Joiner}, {&n.decoder, m.Decoder}} {
		var err error
		if *o.to, err = ort.Open(o.from, ort.Options{Arena: o.to == &n.decoder}); err != nil {
			return err
		}
	}
	if err := n.checkStream(encoder); err != nil {
		return err
	}
	return n.streamConfig(m.Config)
}

// streamConfig reads a streaming_config.json. Without it, there are no drafts.
func (n *moonshine) streamConfig(f sideFile) error {
	if len(f.Data) == 0 {
		return nil
	}
	var config struct {
		Depth *int `json:"depth"`
		Ahead *int `json:"total_lookahead"`
	}
	if err := json.Unmarshal(f.Data, &config); err != nil {
		return fmt.Errorf("%s: %w: %s: expected Moonshine's streaming_config.json: %w", n.source, ErrFile, f.Name, err)
	}
	if config.Depth == nil || config.Ahead == nil || *config.Depth < 1 || *config.Depth > 1000 || *config.Ahead < 0 || *config.Ahead > 1000 {
		return fmt.Errorf("%s: %w: %s: expected depth from 1 and total_lookahead from 0 to 1000", n.source, ErrFile, f.Name)
	}
	const behindLayer = 16 // of each layer of the encoder
	n.stream.behind, n.stream.ahead, n.chunks = behindLayer**config.Depth, *config.Ahead, n.stream.states
	return nil
}

// checkStream compares the graphs' ports with the contract.
func (n *moonshine) checkStream(encoder *checker) error {
	of := func(s *ort.Session) *checker { return &checker{Graph: s.Graph(), source: s.Source()} }
	features, _ := encoder.Input("features")
	encoder.ports([]ort.Info{float("features", 1, -1, -1)}, float("encoded", 1, -1, -1))
	frontend, adapter, joiner, g := of(n.frontend), of(n.adapter), of(n.joiner), of(n.decoder)
	frontend.ports(nil, float("features", 1, -1, features.Last()))
	for _, s := range without(frontend.Inputs, "audio_chunk") {
		count, fixed := onnxfile.Elements(s.Shape)
		if !fixed || count > largestState || !has(frontend.Output, s.Name+"_out") {
			frontend.fail(ErrContract, "expected a state of a fixed shape and an output %s_out, found %s (it has %s)", s.Name, s, frontend.IOList())
		}
		n.stream.states.states, n.stream.states.outputs = append(n.stream.states.states, s), append(n.stream.states.outputs, s.Name+"_out")
	}
	encoded, _ := encoder.Output("encoded")
	memory, _ := joiner.Input("memory")
	adapter.ports([]ort.Info{float("encoded", 1, -1, encoded.Last()), {Name: "pos_offset", Type: ort.Int64}}, float("memory", 1, -1, memory.Last()))
	if own, _ := g.Input("k_self"); own.Rank() == 5 {
		n.layers, n.heads, n.dim = own.Shape[0], own.Shape[2], own.Shape[4]
	}
	stack := func(name string) ort.Info {
		return float(name, max(n.layers, 1), 1, max(n.heads, 1), -1, max(n.dim, 1))
	}
	n.own, n.sound = []keys{{"k_self", "out_k_self"}, {"v_self", "out_v_self"}}, []keys{{"out_k_cross", "k_cross"}, {"out_v_cross", "v_cross"}}
	joiner.ports([]ort.Info{float("memory", 1, -1, -1)}, stack("k_cross"), stack("v_cross"))
	g.ports([]ort.Info{{Name: "token", Type: ort.Int64}, stack("k_self"), stack("v_self"), stack("out_k_cross"), stack("out_v_cross")},
		float("logits", 1, -1, -1), stack("out_k_self"), stack("out_v_self"))
	if err := cmp.Or(encoder.err, frontend.err, adapter.err, g.err, joiner.err); err != nil {
		return err
	}
	return n.measure(g, "k_self and v_self float32[layers,1,heads,?,size]", func(layer int) string { return fmt.Sprintf("cross_attentions.%d", layer) })
}

// encodeStream returns the frames that the decoder attends to in a window. Of a
// draft, it reads only the sound that the draft has not, and the draft keeps the
// frames that later sound does not change.
func (n *moonshine) encodeStream(ctx context.Context, samples []float32, d *draft) (w encodedWindow, err error) {
	s, open, stride := n.stream, d != nil && d.end < math.MaxInt, n.grid.stride
	d = cmp.Or(d, &draft{})
	if samples = samples[d.again*stride:]; open {
		samples = samples[:max(d.end*frameHop/stride-d.again, 0)*stride]
	} else {
		if d.window.Len() > 0 { // without the silence that a short window is padded with
			samples = samples[:min(max(d.window.Len(), shortestInput)-d.chunks*stride, len(samples))]
		}
		samples = append(samples, make([]float32, (stride-len(samples)%stride)%stride)...)
	}
	if err := n.readSound(ctx, samples, d); err != nil || d.chunks == d.memory.frames {
		return d.memory, err
	}
	first := d.chunks - d.features.frames // of the features, in the window
	encoded, _, err := oneWindow(ctx, n.encoder, map[string]*ort.Tensor{"features": d.features.tensor()}, "encoded")
	if err != nil {
		return w, err
	}
	in := map[string]*ort.Tensor{
		"encoded": encoded.after(d.memory.frames - first).tensor(), "pos_offset": ort.NewInt64([]int64{1}, []int64{int64(d.memory.frames)}),
	}
	fresh, _, err := oneWindow(ctx, n.adapter, in, "memory")
	if err != nil {
		return w, err
	}
	w = d.memory.with(fresh)
	settled := max(d.chunks-s.ahead, d.memory.frames)
	d.memory = encodedWindow{states: w.states[:settled*w.dim], frames: settled, dim: w.dim}
	d.features = d.features.after(max(settled-s.behind-first, 0))
	return w, nil
}

// readSound adds the features of samples to a draft.
func (n *moonshine) readSound(ctx context.Context, samples []float32, d *draft) error {
	if len(samples) == 0 {
		return nil
	}
	in, states := maps.Clone(d.inputs), n.stream.states
	if in == nil {
		in = states.begin()
	}
	in["audio_chunk"] = ort.NewFloat32([]int64{1, int64(len(samples))}, samples)
	found, next, err := oneWindow(ctx, n.frontend, in, append([]string{"features"}, states.outputs...)...)
	if err != nil {
		return err
	}
	if want := len(samples) / streamGrid.stride; found.frames != want {
		return fmt.Errorf("%s: %w: expected %d features of %d samples, found %d", n.frontend.Source(), ErrContract, want, len(samples), found.frames)
	}
	for i, info := range states.states {
		in[info.Name] = next[i]
	}
	d.inputs, d.features, d.chunks = in, d.features.with(found), d.chunks+found.frames
	return nil
}

// with returns the frames of w and of next.
func (w encodedWindow) with(next encodedWindow) encodedWindow {
	return encodedWindow{states: slices.Concat(w.states, next.states), frames: w.frames + next.frames, dim: next.dim}
}

// after returns the frames after the first n.
func (w encodedWindow) after(n int) encodedWindow {
	return encodedWindow{states: w.states[n*w.dim:], frames: w.frames - n, dim: w.dim}
}

func (w encodedWindow) tensor() *ort.Tensor {
	return ort.NewFloat32([]int64{1, int64(w.frames), int64(w.dim)}, w.states)
}
