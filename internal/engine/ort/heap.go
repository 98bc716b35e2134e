//go:build cgo

package ort

/*
#include <stddef.h>
#include <stdlib.h>
#if defined(__linux__)
#include <features.h>
#endif
#if defined(__GLIBC__)
#include <malloc.h>

// Returns the number of accepted settings.
static int og_flat_heap(int arenas, int block)
{
	return mallopt(M_ARENA_MAX, arenas) + mallopt(M_MMAP_THRESHOLD, block) + mallopt(M_TRIM_THRESHOLD, block);
}

static int og_trim_heap(void) { return malloc_trim(0); }
#else
static int og_flat_heap(int arenas, int block) { (void)arenas, (void)block; return 0; }
static int og_trim_heap(void) { return 0; }
#endif
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// bigBlock is the size in bytes from which the C library requests a block from
// the system and returns it when it is freed.
const bigBlock = 2 << 20

// flattenHeap keeps the C library's heap from growing with the length of a
// recording. glibc raises its threshold for big blocks to 32 MB as soon as one
// is freed, and creates eight heaps per core, so memory freed by models stays
// resident. For measurements see docs/measurements/costs.md.
func flattenHeap() { C.og_flat_heap(C.int(max(2, runtime.GOMAXPROCS(0))), bigBlock) }

// TrimHeap returns the free memory of the C library's heap to the system.
// Closed models leave blocks between small ones in use, and glibc returns only
// the end of a heap: after 40 openings, the demo models left 235 MB.
func TrimHeap() { C.og_trim_heap() }

// blocks are memory of the C library's heap, which returns to the system when
// freed. In Go's heap, bytes would stay until the next collection.
type blocks []unsafe.Pointer

func (b *blocks) get(size int) []byte {
	start := C.malloc(C.size_t(max(size, 1))) // cgo ends the program rather than return nil
	*b = append(*b, start)
	return unsafe.Slice((*byte)(start), size)
}

// freeBut frees all blocks but the one that begins with data.
func (b *blocks) freeBut(data []byte) {
	kept := unsafe.Pointer(unsafe.SliceData(data))
	for i, start := range *b {
		if start != kept {
			C.free(start)
			(*b)[i] = nil
		}
	}
}

func (b *blocks) free() {
	for _, start := range *b {
		C.free(start)
	}
	*b = nil
}
