package audio

import (
	"bytes"
	"encoding/binary"
	"math"
)

// wavFile builds WAV files byte by byte, including invalid ones. A zero field
// means the correct value.
type wavFile struct {
	id                    string // RIFF
	tag                   uint16 // PCM
	channels, bits, align int
	rate                  int
	extensible            bool
	before, after         []byte // chunks
	data                  []byte
	formSize, dataSize    func(right uint32) uint32
}

func (w wavFile) bytes() []byte {
	order := binary.AppendByteOrder(binary.LittleEndian)
	if w.id == "" {
		w.id = "RIFF"
	}
	if w.id == "RIFX" {
		order = binary.BigEndian
	}
	if w.tag == 0 {
		w.tag = tagPCM
	}
	if w.channels == 0 {
		w.channels = 1
	}
	if w.bits == 0 {
		w.bits = 16
	}
	if w.rate == 0 {
		w.rate = SampleRate
	}
	if w.align == 0 {
		w.align = (w.bits + 7) / 8 * w.channels
	}
	tag := w.tag
	if w.extensible {
		tag = tagExtensible
	}
	var f []byte
	f = order.AppendUint16(f, tag)
	f = order.AppendUint16(f, uint16(w.channels))
	f = order.AppendUint32(f, uint32(w.rate))
	f = order.AppendUint32(f, uint32(w.rate*w.align))
	f = order.AppendUint16(f, uint16(w.align))
	f = order.AppendUint16(f, uint16(w.bits))
	if w.extensible {
		f = order.AppendUint16(f, 22)
		f = order.AppendUint16(f, uint16(w.bits))
		f = order.AppendUint32(f, 0)
		f = order.AppendUint16(f, w.tag)
		f = append(f, guidTail...)
	}
	size := uint32(len(w.data))
	if w.dataSize != nil {
		size = w.dataSize(size)
	}
	var body []byte
	body = append(body, "WAVE"...)
	body = append(body, w.before...)
	body = append(body, chunk(order, "fmt ", f)...)
	body = append(body, "data"...)
	body = order.AppendUint32(body, size)
	body = append(body, w.data...)
	if len(w.data)%2 == 1 && w.after != nil {
		body = append(body, 0)
	}
	body = append(body, w.after...)
	form := uint32(len(body))
	if w.formSize != nil {
		form = w.formSize(form)
	}
	out := order.AppendUint32([]byte(w.id), form)
	return append(out, body...)
}

func chunk(order binary.AppendByteOrder, id string, content []byte) []byte {
	b := order.AppendUint32([]byte(id), uint32(len(content)))
	b = append(b, content...)
	if len(content)%2 == 1 {
		b = append(b, 0)
	}
	return b
}

func size(n uint32) func(uint32) uint32 { return func(uint32) uint32 { return n } }

// s16 writes samples as 16-bit PCM.
func s16(samples []float32) []byte {
	var b []byte
	for _, x := range samples {
		b = binary.LittleEndian.AppendUint16(b, uint16(int16(math.Round(float64(x)*32767))))
	}
	return b
}

func interleave(channels ...[]float32) []float32 {
	out := make([]float32, 0, len(channels)*len(channels[0]))
	for i := range channels[0] {
		for _, c := range channels {
			out = append(out, c[i])
		}
	}
	return out
}

func reader(b []byte, name string) Source { return Reader(bytes.NewReader(b), name) }
