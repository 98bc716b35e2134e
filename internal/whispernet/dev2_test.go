//go:build cgo && dev

package whispernet

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"
)

func cpu() time.Duration {
	var r syscall.Rusage
	syscall.Getrusage(0, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func TestSpeed(t *testing.T) {
	f, _ := os.Open(os.Getenv("MODEL"))
	st, _ := f.Stat()
	t0, c0 := time.Now(), cpu()
	m, err := Open(f, st.Size(), Options{Threads: 1, Kernels: os.Getenv("KERNELS")})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("open", time.Since(t0), cpu()-c0)
	x := make([]float32, 480000)
	for i := range x {
		x[i] = float32(i%313)/400 - .4
	}
	w, _ := m.Encode(x, 5, 1, nil)
	c0 = cpu()
	for range 4 {
		v, _ := m.Encode(x, 5, 1, nil)
		v.Free()
	}
	fmt.Println("encode", (cpu()-c0)/4)
	d := m.NewDecoder(1)
	for _, c := range []int{1, 5, 10, 20, 40} {
		var ws []*Window
		var many []Column
		for i := range c {
			if i%5 == 0 {
				v, _ := m.Encode(x[:16000], 5, 1, nil)
				ws = append(ws, v)
			}
			many = append(many, Column{Window: ws[i/5], Row: i % 5, Position: 50, Token: 400, Logits: make([]float32, m.header.Vocabulary)})
		}
		d.Step(many, nil)
		c0 = cpu()
		for range steps(c) {
			d.Step(many, nil)
		}
		fmt.Println("columns", c, (cpu()-c0)/time.Duration(steps(c)))
		for _, v := range ws {
			v.Free()
		}
	}
	w.Free()
}

func steps(c int) int {
	if c == 40 && os.Getenv("MORE") != "" {
		return 400
	}
	return 40
}
