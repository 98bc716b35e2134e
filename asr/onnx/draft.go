package onnx

import (
	"math"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
	"github.com/otograph/otograph/internal/engine/ort"
)

const (
	// frameReach is the number of samples after a frame's shift that the frame may
	// read: one of icefall has 25 ms and begins 7.5 ms before its shift.
	frameReach = 120
	// againChunks is the number of read chunks whose features are computed again:
	// the features of a sound's first frames differ without the sound before it.
	againChunks = 2
)

// draft holds a network's states and text after the chunks that it has read of a
// window. More sound is added to the window's end.
type draft struct {
	engine *Engine
	window audio.Span
	chunks int
	inputs map[string]*ort.Tensor // of the next chunk
	text   greedyText
	// Moonshine's features that are read again, and its frames so far. It writes
	// the text anew.
	features, memory encodedWindow
	again            int // read chunks at the beginning of the features
	end              int // of the features that may be read
}

// draft continues the draft of a window, and returns the part of it to compute
// features of. It returns all windows and no draft if they must be read as a whole.
func (e *Engine) draft(pcm *audio.PCM, windows []decode.Window, req request, of asr.Draft) (*draft, []decode.Window) {
	k := e.net.chunked()
	if k == nil || !of.Open && of.State == nil || !req.fusion.none() || len(windows) != 1 || len(windows[0].Pieces) != 1 {
		return nil, windows
	}
	p := windows[0].Pieces[0]
	p.Start = p.End - len(pcm.Samples(p.Start, p.End)) // the recording may begin later
	d := draft{engine: e}
	if last, ok := of.State.(*draft); ok && last.engine == e && last.window.Start == p.Start && last.window.End <= p.End {
		d = *last
	}
	d.window, d.again, d.end = p, min(d.chunks, againChunks), math.MaxInt
	p.Start += (d.chunks - d.again) * k.shift * frameHop
	if of.Open {
		d.end = (p.Len() - frameReach) / frameHop
	}
	return &d, []decode.Window{{Pieces: []audio.Span{p}, Speech: windows[0].Speech}}
}
