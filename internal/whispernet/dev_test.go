//go:build cgo && dev

package whispernet

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

func pcm(path string) []float32 {
	out, err := exec.Command("ffmpeg", "-v", "error", "-i", path, "-ac", "1", "-ar", "16000", "-f", "s16le", "-").Output()
	if err != nil {
		panic(err)
	}
	x := make([]float32, len(out)/2)
	for i := range x {
		x[i] = float32(int16(binary.LittleEndian.Uint16(out[2*i:]))) / 32768
	}
	return x
}

func TestDev(t *testing.T) {
	path := os.Getenv("MODEL")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	st, _ := f.Stat()
	t0 := time.Now()
	m, err := Open(f, st.Size(), Options{Threads: 2, Kernels: os.Getenv("KERNELS")})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("open", time.Since(t0), m.Kernels())
	x := pcm(os.Getenv("SOUND"))
	x = x[:min(len(x), 480000)]
	for _, threads := range []int{1, 1, 2, 2} {
		t0 = time.Now()
		w, err := m.Encode(x, 5, threads, nil)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("encode", threads, time.Since(t0))
		d := m.NewDecoder(threads)
		v := m.Vocabulary()
		prompt := []int32{v.SOT}
		if m.header.Multilingual() {
			prompt = append(prompt, v.Language(0), v.Transcribe)
		}
		prompt = append(prompt, v.NoTimestamps)
		logits := make([]float32, v.Size)
		var cols []Column
		for i, p := range prompt {
			cols = append(cols, Column{Window: w, Position: i, Token: p})
		}
		cols[len(cols)-1].Logits = logits
		t0 = time.Now()
		if err := d.Step(cols, nil); err != nil {
			t.Fatal(err)
		}
		fmt.Println("prompt", time.Since(t0), logits[:6])
		text := ""
		t0 = time.Now()
		n := 0
		for pos := len(prompt); pos < 200; pos++ {
			Normalize(logits, v.Begin)
			top := Top(logits[:v.EOT+1], 1, nil)[0].Token
			if top == v.EOT {
				break
			}
			text += v.Text(top)
			n++
			if err := d.Step([]Column{{Window: w, Position: pos, Token: top, Logits: logits}}, nil); err != nil {
				t.Fatal(err)
			}
		}
		fmt.Println(text, n, time.Since(t0))
		// batch speed: 40 columns
		for _, c := range []int{5, 10, 20, 40} {
			var many []Column
			for i := range c {
				many = append(many, Column{Window: w, Row: i % 5, Position: 50 + i/5, Token: 400, Logits: logits})
			}
			d.Step(many, nil)
			t0 = time.Now()
			for range 5 {
				d.Step(many, nil)
			}
			fmt.Println("columns", c, time.Since(t0)/5)
		}
		d.Free()
		w.Free()
	}
}
