//go:build unix

package audio

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapSamples maps the first n float32 of f, which may be closed afterwards.
func mapSamples(f *os.File, n int) (mapped []byte, samples []float32, err error) {
	if n == 0 {
		return nil, nil, nil
	}
	mapped, err = unix.Mmap(int(f.Fd()), 0, n*4, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("audio: map %d decoded samples: %w", n, err)
	}
	return mapped, unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(mapped))), n), nil
}

// releasePages drops the mapping's pages from the resident set; the next access
// finds them in the page cache. If it fails, only memory use rises.
func releasePages(mapped []byte) { _ = unix.Madvise(mapped, unix.MADV_DONTNEED) }

func unmap(mapped []byte) error {
	if err := unix.Munmap(mapped); err != nil {
		return fmt.Errorf("audio: unmap decoded samples: %w", err)
	}
	return nil
}
