package networks

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/models"
)

// layout describes the inputs and outputs of a file.
type layout struct {
	contract string
	input    string   // features or samples
	length   ort.Info // second input with the lengths or the frames' weights; empty name if there is none
	output   string
	bands    int // 0: samples
	frames   int // fixed number of frames (of samples without bands), 0 when free
	dim      int // 0: not declared by the file
	single   bool
}

// outputNames are known names of the output, in order of preference.
var outputNames = []string{"embs", "embedding", "embeddings", "emb", "output", "embs_out"}

// layoutOf finds the layout of a graph with the given contract.
func layoutOf(g *ort.Graph, contract string) (l layout, err error) {
	switch contract {
	case models.ContractNeMoSpeaker:
		l, err = nemoLayout(g)
	case models.ContractSpeechBrainWave:
		l, err = waveLayout(g)
	default:
		l, err = featureLayout(g, contract)
	}
	if err != nil {
		return layout{}, fmt.Errorf("contract %s: %w", contract, err)
	}
	return l, nil
}

// fits reports whether a dimension is n or free.
func fits(dim int64, n int64) bool { return dim == n || dim < 0 }

func featureLayout(g *ort.Graph, contract string) (layout, error) {
	want := "one float32 input [B,T,80]"
	weighted := len(g.Inputs) == 2 && g.Inputs[1].Type == ort.Float32 && g.Inputs[1].Rank() == 2
	if len(g.Inputs) != 1 && !weighted {
		return layout{}, fmt.Errorf("%w: expected %s; found %s", ort.ErrContract, want, g.IOList())
	}
	in := g.Inputs[0]
	if in.Type != ort.Float32 || in.Rank() >= 0 && (in.Rank() != 3 || !fits(in.Shape[2], 80)) {
		return layout{}, fmt.Errorf("%w: expected %s; found %s", ort.ErrContract, want, g.IOList())
	}
	l := layout{contract: contract, input: in.Name, bands: 80}
	if weighted {
		l.length = g.Inputs[1]
	}
	if in.Rank() == 3 {
		l.single = in.Shape[0] == 1
		l.frames = int(max(in.Shape[1], 0))
	}
	return withOutput(l, g)
}

func nemoLayout(g *ort.Graph) (layout, error) {
	in, ok := g.Input("audio_signal")
	length, ok2 := g.Input("length")
	if !ok || !ok2 || len(g.Inputs) != 2 || in.Type != ort.Float32 || in.Rank() >= 0 && in.Rank() != 3 ||
		length.Type != ort.Int64 && length.Type != ort.Int32 {
		return layout{}, fmt.Errorf("%w: expected inputs audio_signal float32[B,bands,T] and length int64[B]; found %s", ort.ErrContract, g.IOList())
	}
	l := layout{contract: models.ContractNeMoSpeaker, input: in.Name, length: length, bands: 80}
	if n, err := strconv.Atoi(g.Metadata["feat_dim"]); err == nil && n > 0 {
		l.bands = n
	}
	if in.Rank() == 3 {
		if in.Shape[1] > 0 {
			l.bands = int(in.Shape[1])
		}
		l.single = in.Shape[0] == 1
		l.frames = int(max(in.Shape[2], 0))
	}
	if l.bands > 512 {
		return layout{}, fmt.Errorf("%w: expected at most 512 bands; found %d", ort.ErrContract, l.bands)
	}
	return withOutput(l, g)
}

func waveLayout(g *ort.Graph) (layout, error) {
	want := "inputs wav float32[B,samples] and, where it has one, lens float32[B]"
	if len(g.Inputs) == 0 || len(g.Inputs) > 2 {
		return layout{}, fmt.Errorf("%w: expected %s; found %s", ort.ErrContract, want, g.IOList())
	}
	var l layout
	for _, in := range g.Inputs {
		switch {
		case in.Type != ort.Float32:
			return layout{}, fmt.Errorf("%w: expected %s; found %s", ort.ErrContract, want, g.IOList())
		case in.Rank() == 2 && l.input == "":
			l.input = in.Name
			l.single = in.Shape[0] == 1
			l.frames = int(max(in.Shape[1], 0))
		case in.Rank() == 1 && l.length.Name == "":
			l.length = in
		}
	}
	if l.input == "" || len(g.Inputs) == 2 && l.length.Name == "" {
		return layout{}, fmt.Errorf("%w: expected %s; found %s", ort.ErrContract, want, g.IOList())
	}
	l.contract = models.ContractSpeechBrainWave
	return withOutput(l, g)
}

// withOutput finds the embedding output: by name, or the only float output.
func withOutput(l layout, g *ort.Graph) (layout, error) {
	var out ort.Info
	for _, name := range outputNames {
		if o, ok := g.Output(name); ok {
			out = o
			break
		}
	}
	if out.Name == "" && len(g.Outputs) == 1 {
		out = g.Outputs[0]
	}
	if out.Name == "" || out.Type != ort.Float32 {
		return layout{}, fmt.Errorf("%w: expected a float32 output named %s (or a single output); found %s", ort.ErrContract, strings.Join(outputNames[:4], ", "), g.IOList())
	}
	switch out.Rank() {
	case -1:
	case 2, 3:
		if out.Rank() == 3 && !fits(out.Shape[1], 1) {
			return layout{}, fmt.Errorf("%w: expected output %s as [B,D] or [B,1,D]; found %s", ort.ErrContract, out.Name, out)
		}
		l.dim = int(max(out.Shape[out.Rank()-1], 0))
		l.single = l.single || out.Shape[0] == 1
	default:
		return layout{}, fmt.Errorf("%w: expected output %s as [B,D] or [B,1,D]; found %s", ort.ErrContract, out.Name, out)
	}
	if n, err := strconv.Atoi(g.Metadata["output_dim"]); l.dim == 0 && err == nil && n > 0 {
		l.dim = n
	}
	if l.dim > 1<<16 {
		return layout{}, fmt.Errorf("%w: expected an embedding of some hundred numbers; found %d", ort.ErrContract, l.dim)
	}
	l.output = out.Name
	return l, nil
}
