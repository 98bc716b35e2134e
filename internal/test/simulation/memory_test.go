package simulation_test

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/otograph/otograph/internal/system/blob"
)

// memory is a file store that lives as long as a simulated world. Its files
// have times of the simulation's clock.
type memory struct {
	mu    sync.Mutex
	files map[string]memoryFile
}

type memoryFile struct {
	data []byte
	at   time.Time
}

func newMemory() *memory { return &memory{files: map[string]memoryFile{}} }

type memoryUpload struct {
	bytes.Buffer
	memory *memory
	ctx    context.Context
	key    string
	fresh  bool
}

func (m *memory) Create(ctx context.Context, key string, fresh bool) (blob.Upload, error) {
	return &memoryUpload{memory: m, ctx: ctx, key: key, fresh: fresh}, nil
}

func (u *memoryUpload) Commit() error {
	u.memory.mu.Lock()
	defer u.memory.mu.Unlock()
	if _, exists := u.memory.files[u.key]; exists && u.fresh {
		return fs.ErrExist
	}
	if err := u.ctx.Err(); err != nil {
		return err
	}
	u.memory.files[u.key] = memoryFile{u.Bytes(), time.Now()}
	return nil
}

func (u *memoryUpload) Abort(context.Context) {}

func (m *memory) Open(_ context.Context, key string, offset int64) (io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, exists := m.files[key]
	if !exists {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(f.data[offset:])), nil
}

func (m *memory) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.files, key)
	return nil
}

func (m *memory) List(_ context.Context, prefix string) iter.Seq2[blob.Object, error] {
	m.mu.Lock()
	files := maps.Clone(m.files)
	m.mu.Unlock()
	return func(yield func(blob.Object, error) bool) {
		for _, key := range slices.Sorted(maps.Keys(files)) {
			if strings.HasPrefix(key, prefix) && !yield(blob.Object{Key: key, Size: int64(len(files[key].data)), ModTime: files[key].at}, nil) {
				return
			}
		}
	}
}

func (m *memory) Close() error { return nil }
