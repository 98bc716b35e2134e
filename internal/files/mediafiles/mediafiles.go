// Package mediafiles recognizes recordings by their file names. Package audio
// determines a file's format from its content.
package mediafiles

import (
	_ "embed" // the list of endings
	"encoding/binary"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// endings has a line for each container: its name and the endings of its files.
//
//go:embed endings.txt
var endings string

// Endings are the endings of file names by package audio's containers.
var Endings = func() map[string][]string {
	m := map[string][]string{}
	for line := range strings.Lines(endings) {
		fields := strings.Fields(line)
		m[fields[0]] = fields[1:]
	}
	return m
}()

// Ending returns the ending of a recording's name, in the case of the name. It
// returns "" for other text after the last point, which belongs to a title.
func Ending(name string) string {
	ending := filepath.Ext(name)
	for _, list := range Endings {
		if slices.Contains(list, strings.ToLower(ending)) {
			return ending
		}
	}
	return ""
}

// Stem returns a name without the ending of a recording.
func Stem(name string) string { return strings.TrimSuffix(name, Ending(name)) }

// TextEndings lists the endings of a recording's text in a folder, in the order
// of preference; .lab is HTK's.
var TextEndings = []string{".txt", ".TXT", ".lab"}

// Walk returns the recordings in a folder and its subfolders, ordered by name,
// and the other files, including links that lead to no file. It follows links
// to files, but not links to folders except dir itself. Hidden files and folders are left out of
// both.
func Walk(dir string) (files, others []string, err error) {
	root := dir + string(filepath.Separator) // follows a link
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := path != root && strings.HasPrefix(d.Name(), ".")
		switch {
		case hidden && d.IsDir():
			return fs.SkipDir
		case hidden || d.IsDir():
			return nil
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && Ending(path) != "" {
			files = append(files, path)
		} else {
			others = append(others, path)
		}
		return nil
	})
	return files, others, err
}

// Kind names the kind of a file, other than a regular one, for an error message.
func Kind(m os.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&os.ModeNamedPipe != 0:
		return "a named pipe"
	case m&os.ModeSocket != 0:
		return "a socket"
	case m&os.ModeDevice != 0:
		return "a device"
	}
	return "no file"
}

// WAVHeader returns the header of a WAV file, mono with 16 bits, at a rate in
// Hz and with size bytes of samples. For a file above 4 GB, or of unknown
// length (math.MaxUint32, as in FFmpeg's streams), the header's sizes are the
// largest that it can hold.
func WAVHeader(rate, size uint32) []byte {
	const width = 2
	b := append([]byte("RIFF"), binary.LittleEndian.AppendUint32(nil, 36+min(size, math.MaxUint32-36))...)
	b = append(b, "WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00"...) // PCM, one channel
	b = binary.LittleEndian.AppendUint32(b, rate)
	b = binary.LittleEndian.AppendUint32(b, rate*width)
	b = append(b, width, 0, 8*width, 0)
	return binary.LittleEndian.AppendUint32(append(b, "data"...), size)
}

// Samples16 returns samples (-1 to 1) as 16 bits each, little-endian.
func Samples16(samples []float32) []byte {
	b := make([]byte, 0, 2*len(samples))
	for _, x := range samples {
		b = binary.LittleEndian.AppendUint16(b, uint16(Sample16(x)))
	}
	return b
}

// Sample16 returns a sample (-1 to 1) as a 16-bit number: the nearest one, or the
// limit of a louder sample.
func Sample16(x float32) int16 {
	return int16(min(max(math.Round(float64(x)*(1<<15)), math.MinInt16), math.MaxInt16))
}
