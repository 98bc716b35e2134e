package whispernet

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/otograph/otograph/internal/engine/decode"
	"github.com/otograph/otograph/internal/files/ggmlfile"
	"github.com/otograph/otograph/internal/files/weightfile"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
)

// File is the open file of a model. It was accepted as a complete Whisper model
// with 1,500 encoder positions; the weights themselves have not been read.
type File struct {
	*ggmlfile.Checked
	// Name is the file's name, for errors.
	Name string
	// Data is the content of a file in memory, which must not change while the
	// File is in use; nil for a file on disk.
	Data []byte
	// Languages are the codes of the languages that the model supports.
	Languages []string
	// Packing defines how speech is packed into windows.
	Packing decode.PackOptions

	disk *os.File
}

// OpenFile opens and checks the file of a model. Errors name the file and its role;
// they wrap ggmlfile.ErrNotWhisper if the file is no usable model, and
// fs.ErrNotExist and the like if it cannot be read.
func OpenFile(m *models.Model) (*File, error) {
	main := m.Main()
	f := &File{Name: cmp.Or(main.Name, m.Name, main.Path, "model in memory")}
	if err := f.open(m, main); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("whisper: %s (standard recognizer): %w", f.Name, err)
	}
	return f, nil
}

func (f *File) open(m *models.Model, main models.File) (err error) {
	var file io.ReaderAt
	var size int64
	if main.Data != nil {
		if f.Data, err = main.Data(); err != nil {
			return err
		}
		file, size = bytes.NewReader(f.Data), int64(len(f.Data))
	} else {
		f.disk, size, err = weightfile.Open(main.Path)
		if errors.Is(err, weightfile.ErrNotFile) {
			err = fmt.Errorf("%w: %w", ggmlfile.ErrNotWhisper, err)
		}
		if err != nil {
			return err
		}
		file = f.disk
	}
	if f.Checked, err = ggmlfile.Check(file, size, true); err != nil {
		return err
	}
	// Published models take windows of 30 s; models with shorter windows, such
	// as the demo's, are packed as in their training. lead is the sound before
	// a window's first word and gap the longest pause, in seconds: with less,
	// the model loses first words and capitals. Both are faster-whisper's.
	const lead, gap = 0.4, 0.8
	f.Packing = decode.PackOptions{Max: 30, Lead: lead, MaxGap: gap}
	if s := m.WindowSeconds; s > 0 && s < 30 {
		f.Packing = decode.PackOptions{Max: s}
	}
	f.Languages, err = languages(f.Header, m.Languages)
	return err
}

// Path returns a path of the open file for native code. On Linux it is still
// this file after another file takes its name.
func (f *File) Path() string {
	path := fmt.Sprintf("/proc/self/fd/%d", f.disk.Fd())
	if _, err := os.Stat(path); err != nil {
		return f.disk.Name()
	}
	return path
}

// Close closes the file.
func (f *File) Close() error {
	if f.disk == nil {
		return nil
	}
	return f.disk.Close()
}

// languages returns the codes of the languages that a model supports: the given
// languages, or all for which it has a token.
func languages(h ggmlfile.Header, given []string) (list []string, err error) {
	known := spec.Languages()[:h.Languages()]
	if len(known) == 1 || len(given) == 0 {
		for _, l := range known {
			list = append(list, l.Code)
		}
		return list, nil
	}
	for _, l := range given {
		code, ok := spec.NormalizeLanguage(l)
		if !ok {
			return nil, fmt.Errorf("languages: expected ISO 639 codes, found %q", l)
		}
		if LanguageNumber(code) >= len(known) {
			return nil, fmt.Errorf("languages: expected some of the first %d, whose tokens the model has, found %q", len(known), l)
		}
		list = append(list, code)
	}
	return list, nil
}

// LanguageNumber returns a language's index in Whisper's table, or below 0.
func LanguageNumber(code string) int {
	return slices.IndexFunc(spec.Languages(), func(l spec.Language) bool { return l.Code == code })
}
