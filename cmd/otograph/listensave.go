package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/files/mediafiles"
)

// saved writes the sound of a session to a WAV file, mono with 16 bits, and its
// result to a JSON file. A nil saved does nothing.
type saved struct {
	name string
	file *os.File
	out  *bufio.Writer
	data uint32 // bytes of samples
}

// newSaved creates NAME.wav, if there is a name; existing files are refused.
func newSaved(name string) (*saved, error) {
	if name == "" {
		return nil, nil
	}
	if _, err := os.Lstat(name + ".json"); err == nil {
		return nil, &usageError{fmt.Errorf("--save %s: %s.json exists: choose another name", name, name)}
	}
	f, err := os.OpenFile(name+".wav", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, &usageError{fmt.Errorf("--save: %w", err)}
	}
	s := &saved{name: name, file: f, out: bufio.NewWriter(f)}
	_, err = s.out.Write(mediafiles.WAVHeader(audio.SampleRate, 0))
	return s, err
}

// write adds samples.
func (s *saved) write(samples []float32) error {
	if s == nil {
		return nil
	}
	n, err := s.out.Write(mediafiles.Samples16(samples))
	s.data = uint32(min(uint64(s.data)+uint64(n), math.MaxUint32))
	return err
}

// finish completes the WAV file and writes the result.
func (s *saved) finish(res *otograph.Result) error {
	if s == nil {
		return nil
	}
	err := s.out.Flush()
	if err == nil {
		_, err = s.file.WriteAt(mediafiles.WAVHeader(audio.SampleRate, s.data), 0)
	}
	return cmp.Or(err, s.close(), writeWhole(s.name+".json", func(w io.Writer) error { return writeJSON(w, res) }))
}

// close closes the file, and removes one without sound; it may be called again.
func (s *saved) close() error {
	if s == nil || s.file == nil {
		return nil
	}
	err := cmp.Or(s.out.Flush(), s.file.Close())
	if s.data == 0 {
		err = cmp.Or(err, os.Remove(s.name+".wav"))
	}
	s.file = nil
	return err
}
