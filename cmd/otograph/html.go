package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/subtitle"
	"github.com/otograph/otograph/web"
)

// checkHTML refuses a --format html that cannot work, before hours of work.
func (c *transcribeCmd) checkHTML(files []string) error {
	switch {
	case c.EmbedAudio && c.Format != "html":
		return &usageError{fmt.Errorf("--embed-audio: requires --format html, not %s", c.Format)}
	case c.EmbedAudio && slices.ContainsFunc(files, readOnce):
		return &usageError{errors.New("--embed-audio: standard input and pipes can be read only once; name a file")}
	case c.Format == "html" && !web.Built():
		return fmt.Errorf("--format html: %w", web.ErrNotBuilt)
	}
	if c.EmbedAudio {
		if _, err := exec.LookPath("ffmpeg"); err != nil {
			return fmt.Errorf("--embed-audio: requires ffmpeg to encode Opus audio: %w", err)
		}
	}
	return nil
}

// writeHTML writes a result as a separate web page. To embed the audio, it
// decodes the recording again, which is impossible for standard input.
func (c *transcribeCmd) writeHTML(ctx context.Context, w io.Writer, file, name string, res *otograph.Result, waveform []byte) error {
	whole := *res
	whole.Segments = res.Segments[:0:0] // nil if nothing was transcribed
	for _, l := range sentenceLines(res.Segments) {
		whole.Segments = append(whole.Segments, *l.segment)
	}
	view := web.View{Name: strings.ToValidUTF8(name, "\ufffd"), Result: &whole, Peaks: waveform, Files: map[string]string{}}
	for _, format := range []subtitle.Format{subtitle.FormatSRT, subtitle.FormatVTT, subtitle.FormatRTTM} {
		var text strings.Builder
		switch err := c.layoutOptions.Write(&text, format, name, time.Now(), res); {
		case err == nil:
			view.Files[string(format)] = text.String()
		case !errors.Is(err, subtitle.ErrNoTurns):
			return err
		}
	}
	if c.EmbedAudio {
		pcm, err := audio.Open(ctx, audio.File(file), audio.Options{Track: c.Track})
		if err != nil {
			return fmt.Errorf("%s: decoding it again for the page: %w", name, err)
		}
		defer pcm.Close()
		if view.Audio, err = encodeOpus(ctx, pcm); err != nil {
			return fmt.Errorf("%s: embedding the audio: %w", name, err)
		}
		view.AudioType = "audio/ogg"
	}
	return web.WriteView(w, view)
}

// encodeOpus returns a recording as mono Opus in Ogg. The encoder gets decoded
// samples, so that its times match the transcript and it reads no untrusted
// file.
func encodeOpus(ctx context.Context, pcm *audio.PCM) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "ffmpeg", "-nostdin", "-v", "error", "-f", "f32le", "-ar", fmt.Sprint(audio.SampleRate), "-ac", "1", "-i", "pipe:0",
		"-c:a", "libopus", "-b:a", "24k", "-application", "voip", "-map_metadata", "-1", "-f", "ogg", "pipe:1")
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &sampleReader{pcm: pcm}, &out, &errs
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("ffmpeg: %w: %s", err, strings.TrimSpace(errs.String()))
	}
	return out.Bytes(), nil
}

// sampleReader reads samples as little-endian float32, with gaps as silence.
type sampleReader struct {
	pcm     *audio.PCM
	next    int // index of the next sample
	written int // samples, including gaps
}

// gapStep is the smallest gap between samples that is filled, 10 ms.
const gapStep = audio.SampleRate / 100

func (r *sampleReader) Read(p []byte) (int, error) {
	if len(p) < 4 {
		return 0, io.ErrShortBuffer
	}
	start := r.pcm.Timeline().Start(float64(r.next) / audio.SampleRate)
	if silent := int(math.Round(start*audio.SampleRate)) - r.written; silent > 0 && r.next < r.pcm.Len() {
		n := min(silent, len(p)/4)
		clear(p[:4*n])
		r.written += n
		return 4 * n, nil
	}
	samples := r.pcm.Samples(r.next, r.next+min(gapStep, len(p)/4))
	if len(samples) == 0 {
		return 0, io.EOF
	}
	n, err := binary.Encode(p, binary.LittleEndian, samples)
	r.next += len(samples)
	r.written += len(samples)
	return n, err
}
