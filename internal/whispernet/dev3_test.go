//go:build cgo && dev

package whispernet

import (
	"fmt"
	"os"
	"testing"
	"time"
)

func TestOpenOnly(t *testing.T) {
	for range 5 {
		f, _ := os.Open(os.Getenv("MODEL"))
		st, _ := f.Stat()
		t0, c0 := time.Now(), cpu()
		m, err := Open(f, st.Size(), Options{Threads: 1, Kernels: os.Getenv("KERNELS")})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("open", time.Since(t0), cpu()-c0)
		m.Close()
	}
}
