package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/live"
	"github.com/otograph/otograph/models"
)

type listenCmd struct {
	Input      string  `short:"i" placeholder:"FILE|-|URL" help:"A recording, - for standard input, or the address of a stream; default: the microphone."`
	Microphone string  `placeholder:"NAME" help:"Microphone: pulse:NAME or alsa:NAME; default: PulseAudio's default if it runs, else ALSA's."`
	PCM        int     `name:"pcm" placeholder:"RATE" help:"The input is raw samples, mono, at this rate in Hz (see --encoding). Without it ffmpeg reads the input."`
	Encoding   string  `enum:"s16le,f32le,mulaw,alaw" default:"s16le" help:"Encoding of raw samples: s16le, f32le, mulaw or alaw."`
	RealTime   bool    `help:"Play a recording at its own speed."`
	Format     string  `short:"f" enum:"text,json" default:"text" help:"text, or json: an event a line, and the result last."`
	Save       string  `placeholder:"NAME" help:"Write the sound to NAME.wav and the result to NAME.json. Existing files are refused."`
	Revisable  bool    `help:"Show all text immediately, although later text may revise it. Otherwise text only grows."`
	Silence    float64 `placeholder:"SECONDS" help:"Pause that ends an utterance; default: 0.8, or 0.5 with the optimized tier."`
	Quiet      bool    `short:"q" help:"No notices, no summary."`
	Cores      int     `placeholder:"N" help:"Cores to use; default: all."`

	deviceFlag
	modelFlags
	optionFlags `embed:""`
}

// Run listens until the input ends, or until Ctrl-C, which ends the recording;
// a second Ctrl-C ends the program.
func (c *listenCmd) Run(ctx context.Context) error {
	opt, err := c.options()
	if err != nil {
		return err
	}
	if c.PCM != 0 && c.Input == "" {
		return &usageError{errors.New("--pcm: expected --input with raw samples")}
	}
	feed, err := audio.NewFeed(c.Encoding, cmp.Or(c.PCM, audio.SampleRate), 1)
	if err != nil {
		return &usageError{fmt.Errorf("--pcm: %w", err)}
	}
	set, err := c.openRecognizer()
	if err != nil {
		return err
	}
	c.chooseTier(&opt, set)
	p, err := otograph.Open(set, otograph.Config{Cores: c.Cores, Device: string(c.Device), OptimizedWords: true})
	if err != nil {
		return err
	}
	saved, err := newSaved(c.Save)
	if err != nil {
		return err
	}
	defer saved.close()
	c.note("loading the models …\n")
	if err := p.Load(ctx, c.roles(set, opt)...); err != nil {
		return err
	}
	s, err := live.Open(context.WithoutCancel(ctx), p, live.Options{Options: opt, Revisable: c.Revisable, Silence: c.Silence})
	if err != nil {
		return err
	}
	return c.listen(ctx, s, feed, saved)
}

// roles returns the roles that a session uses, with one recognizer only if
// --asr-language and the set already determine it.
func (c *listenCmd) roles(set *models.Set, opt otograph.Options) []models.Role {
	list := slices.DeleteFunc([]models.Role{models.RoleVAD, models.RoleEmbedder}, func(role models.Role) bool { return len(set.All(role)) == 0 })
	_, standard := set.Role(models.RoleStandard)
	if standard && (opt.Optimize != nil && !*opt.Optimize || opt.ASRLanguage == nil) {
		return append(list, models.RoleStandard)
	}
	if !standard {
		list = append(list, models.RoleOptimized)
	}
	return list
}

func (c *listenCmd) note(format string, args ...any) {
	if !c.Quiet {
		warn(format, args...)
	}
}

// listen writes the input to a session, shows its events, delivers the result.
func (c *listenCmd) listen(ctx context.Context, s *live.Session, feed *audio.Feed, saved *saved) error {
	shown := make(chan error)
	go func() { shown <- c.show(s) }()
	c.note("listening; Ctrl-C ends it\n")
	failed := c.read(ctx, s, feed, saved)
	res, err := s.Close()
	err = errors.Join(failed, <-shown, err)
	if res == nil || failed != nil && res.AudioDuration == 0 {
		return err
	}
	printWarnings("listen", res.Warnings, c.Quiet)
	if c.Format == "json" {
		err = errors.Join(err, lineEncoder().Encode(struct {
			Event  string           `json:"event"`
			Result *otograph.Result `json:"result"`
		}{"result", res}))
	}
	if c.Format == "text" {
		c.note("%s\n", summary("live", res, 0))
	}
	if bad := saved.finish(res); !errors.Is(err, bad) { // a full disk is reported once
		err = errors.Join(err, bad)
	}
	return err
}

// mostBehind is how many seconds a session may be behind before the input
// waits; a microphone does not wait.
const mostBehind = 30

// piece is a part of the input and the error after it.
type piece struct {
	data []byte
	err  error
}

// read writes the input to the session until the input or ctx ends.
func (c *listenCmd) read(ctx context.Context, s *live.Session, feed *audio.Feed, saved *saved) error {
	in, err := c.source(ctx)
	if err != nil {
		return err
	}
	pieces := make(chan piece)
	go func() { // which may wait for input that never comes
		defer in.Close()
		for {
			buf := make([]byte, 8192)
			n, err := in.Read(buf)
			select {
			case pieces <- piece{buf[:n], err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	start, total := time.Now(), 0
	for {
		var p piece
		select {
		case p = <-pieces:
		case <-ctx.Done():
			return nil
		}
		samples := feed.Convert(nil, p.data)
		if p.err != nil {
			samples = feed.Flush(samples)
		}
		if err := errors.Join(s.Write(samples), saved.write(samples)); err != nil {
			return err
		}
		switch total += len(samples); {
		case errors.Is(p.err, io.EOF):
			return nil
		case p.err != nil && ctx.Err() == nil:
			return fmt.Errorf("listen: %w", p.err)
		case c.RealTime:
			time.Sleep(time.Until(start.Add(time.Duration(total) * time.Second / audio.SampleRate)))
		}
		for c.Input != "" && s.Behind() > mostBehind && ctx.Err() == nil {
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// source opens the input: raw samples directly, all else through ffmpeg.
func (c *listenCmd) source(ctx context.Context) (io.ReadCloser, error) {
	if c.PCM != 0 {
		f, err := os.Stdin, error(nil)
		if c.Input != "-" {
			f, err = os.Open(c.Input)
		}
		head := make([]byte, 4096)
		if n, _ := f.ReadAt(head, 0); err == nil && audio.CheckHead(c.Input, head[:n]) == nil { // a pipe has no head
			err = &usageError{fmt.Errorf("--pcm %d: expected raw samples, but %s is a recording with a format: leave --pcm out", c.PCM, c.Input)}
		}
		return f, err
	}
	var from []string
	switch {
	case c.Input == "":
		kind, name, ok := strings.Cut(cmp.Or(c.Microphone, microphone()), ":")
		if !ok || kind != "pulse" && kind != "alsa" {
			return nil, &usageError{fmt.Errorf("--microphone %s: expected pulse:NAME or alsa:NAME", c.Microphone)}
		}
		from = []string{"-f", kind, "-i", name}
	case c.Input == "-":
		from = []string{"-i", "pipe:0"}
	case strings.Contains(c.Input, "://"):
		from = []string{"-i", c.Input}
	default:
		if _, err := os.Stat(c.Input); err != nil {
			return nil, fmt.Errorf("--input: %w", err)
		}
		from = []string{"-i", "file:" + c.Input}
	}
	bin, err := exec.LookPath("ffmpeg")
	if err != nil {
		return nil, fmt.Errorf("listen: %w: install ffmpeg, or pass raw samples with --pcm RATE", err)
	}
	args := append(append([]string{"-v", "error", "-nostdin"}, from...), "-vn", "-ac", "1", "-ar", fmt.Sprint(audio.SampleRate), "-f", c.Encoding, "pipe:1")
	if c.Encoding == "mulaw" || c.Encoding == "alaw" {
		return nil, &usageError{fmt.Errorf("--encoding %s: expected --pcm RATE", c.Encoding)}
	}
	r := &program{cmd: exec.CommandContext(ctx, bin, args...)}
	r.cmd.Stderr = &r.complaint
	if c.Input == "-" {
		r.cmd.Stdin = os.Stdin
	}
	if r.ReadCloser, err = r.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	return r, r.cmd.Start()
}

func microphone() string {
	if _, err := os.Stat(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "pulse", "native")); err == nil || os.Getenv("PULSE_SERVER") != "" {
		return "pulse:default"
	}
	return "alsa:default"
}

// program reads the output of a program. If the program fails, the end of its
// output is an error.
type program struct {
	io.ReadCloser
	cmd       *exec.Cmd
	complaint bytes.Buffer
}

// Read implements io.Reader.
func (p *program) Read(b []byte) (int, error) {
	n, err := p.ReadCloser.Read(b)
	if errors.Is(err, io.EOF) {
		if failed := p.cmd.Wait(); failed != nil {
			err = fmt.Errorf("ffmpeg: %w: %s", failed, cleanLine(strings.TrimSpace(p.complaint.String())))
		}
	}
	return n, err
}
