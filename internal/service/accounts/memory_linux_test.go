package accounts_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// searcher searches this process's memory for bytes. It keeps its own copies in
// a mapping that it skips.
type searcher struct {
	memory *os.File
	own    []byte
	length int // length of the searched bytes, at the beginning of own
}

func newSearcher(t *testing.T, vector []float32) *searcher {
	t.Helper()
	memory, err := os.Open("/proc/self/mem")
	require.NoError(t, err)
	own, err := syscall.Mmap(-1, 0, 1<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, memory.Close())
		assert.NoError(t, syscall.Munmap(own))
	})
	for i, w := range vector {
		binary.LittleEndian.PutUint32(own[4*i:], math.Float32bits(w))
	}
	return &searcher{memory, own, 4 * len(vector)}
}

// found lists the addresses of the bytes: in the mappings of the Go heap and in
// other mappings.
func (s *searcher) found(t *testing.T) (heap, others []string) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	mine, object := uint64(uintptr(unsafe.Pointer(&s.own[0]))), uint64(uintptr(unsafe.Pointer(s)))
	for lines := bufio.NewScanner(bytes.NewReader(maps)); lines.Scan(); {
		var from, to uint64
		var mode string
		_, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &mode)
		require.NoError(t, err)
		if !strings.HasPrefix(mode, "rw") {
			continue
		}
		for _, place := range s.within(from, to) {
			switch text := fmt.Sprintf("%x", place); {
			case place >= mine && place < mine+uint64(len(s.own)):
			case from>>32 == object>>32: // arenas are adjacent
				heap = append(heap, text)
			default:
				others = append(others, text)
			}
		}
	}
	return heap, others
}

// within lists the addresses of the bytes in a range of addresses.
func (s *searcher) within(from, to uint64) (places []uint64) {
	needle, buffer := s.own[:s.length], s.own[4096:]
	defer clear(buffer)
	for at := from; at < to; at += uint64(len(buffer) - s.length) {
		n, err := s.memory.ReadAt(buffer[:min(uint64(len(buffer)), to-at)], int64(at))
		if err != nil && n == 0 {
			break
		}
		for i := 0; ; i++ {
			j := bytes.Index(buffer[i:n], needle)
			if j < 0 {
				break
			}
			i += j
			places = append(places, at+uint64(i))
		}
	}
	return places
}

// TestADeletedVoiceInMemory: after a voice was stored, read for a run and
// deleted, no copy of its vector is left in the Go heap, not even in free
// memory. SQLite's own memory is not covered (docs/security.md); the number of
// copies there is logged.
func TestADeletedVoiceInMemory(t *testing.T) {
	f := taskstest.New(t, dbtest.Open(t, dbtest.SQLitePath(t), db.Options{}))
	voice := voiceOf("Annabella", 3)
	for i := range voice.Vectors[0] {
		voice.Vectors[0][i] = float32(math.Sin(float64(i) + 0.5))
	}
	kept, err := f.Accounts.AddVoice(t.Context(), f.Account, voice)
	require.NoError(t, err)
	clear(voice.Vectors[0])
	register, err := f.Accounts.Register(t.Context(), f.Account)
	require.NoError(t, err)
	s := newSearcher(t, register.Voices[0].Vectors[0][10:30])
	heap, _ := s.found(t)
	require.NotEmpty(t, heap, "the search finds existing copies")
	register.Clear()
	require.NoError(t, f.Accounts.DeleteVoice(t.Context(), f.Account, kept.ID))
	heap, others := s.found(t)
	assert.Empty(t, heap)
	t.Logf("outside the Go heap: %d copies", len(others))
}
