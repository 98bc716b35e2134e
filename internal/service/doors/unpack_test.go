package doors

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/spec"
)

// shouts is a decoder that keeps a byte back until the next piece, or the end.
func shouts(ctx context.Context, in <-chan []byte, packets bool, out io.Writer) error {
	var kept []byte
	for piece := range in {
		if string(piece) == ".bad" {
			return spec.Permanent(errors.New("not Opus"))
		} else if string(piece) == ".fault" {
			return errors.New("no ffmpeg")
		}
		kept = append(kept, bytes.ToUpper(piece)...)
		if _, err := out.Write(kept[:len(kept)-1]); err != nil {
			return err
		}
		kept = bytes.Clone(kept[len(kept)-1:])
	}
	if len(kept) == 0 {
		return nil
	}
	_, err := out.Write(kept)
	return err
}

// TestUnpack checks that a text comes after the samples of the packets before it,
// and the last message after all samples; that packets after that are dropped; and
// that errors of the decoder end the session.
func TestUnpack(t *testing.T) {
	last := func(text bool, data []byte) bool { return string(data) == "finish" }
	for name, test := range map[string]struct {
		say, want []string
		err       error
	}{
		"texts":  {[]string{".ab", ".c", "commit", ".d", "finish", ".e"}, []string{".A", "B.", "commit", "C.", "D", "finish"}, nil},
		"gone":   {[]string{".ab"}, []string{".A", "B"}, nil},
		"broken": {[]string{".ab", ".bad", ".c"}, []string{".A"}, &EndError{Invalid, "not Opus"}},
		"fault":  {[]string{".fault"}, nil, &EndError{Invalid, "no ffmpeg"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				p := newPipe()
				c := Unpack(ctx, p, Format{Opus: "packets"}, last, shouts)
				go func() {
					for _, m := range test.say {
						select {
						case p.in <- m:
						case <-ctx.Done():
							return
						}
					}
					if name == "gone" {
						close(p.in)
					}
				}()
				var got []string
				for !slices.Contains(got, "finish") {
					_, data, err := c.Read(ctx)
					if err != nil {
						if test.err != nil {
							assert.Equal(t, test.err, err)
						}
						break
					}
					got = append(got, string(data))
				}
				require.Equal(t, test.want, got)
			})
		})
	}
}

// TestCloseFrameNamesTheDecodingError checks that the close frame names the
// reason of a failed decoding.
func TestCloseFrameNamesTheDecodingError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p := newPipe()
		end := make(chan End, 1)
		go func() {
			end <- Serve(ctx, Unpack(ctx, p, Format{Opus: "stream"}, func(bool, []byte) bool { return false }, shouts), plain{}, Settings{}, nil, Limits{})
		}()
		assert.Equal(t, "hello", <-p.out)
		p.in <- ".bad"
		assert.Equal(t, "bye", <-p.out)
		assert.Equal(t, End{Reason: Invalid, Text: "not Opus"}, <-end)
		assert.Equal(t, []any{1008, "not Opus"}, []any{p.code, p.reason})
	})
}
