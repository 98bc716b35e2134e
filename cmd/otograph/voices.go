package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/diarize/networks"
	"github.com/otograph/otograph/internal/pipeline/assemble"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/library"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/voices"
)

// voicesCmd keeps a register of voices known by name.
type voicesCmd struct {
	Add  voicesAddCmd  `cmd:"" help:"Add a person's voice from recordings in which only that person speaks."`
	List voicesListCmd `cmd:"" help:"List the known voices, or remove one (--remove)."`
}

// registerFlag names the register's file.
type registerFlag struct {
	Voices string `placeholder:"FILE" env:"OTOGRAPH_VOICES" help:"Voice register; default: voices.json next to the user's model folder."`
}

func (f registerFlag) path() (string, error) {
	if f.Voices != "" {
		return f.Voices, nil
	}
	dir, _, err := library.DefaultDir()
	if err != nil {
		return "", fmt.Errorf("voice register: %w; name a file with --voices", err)
	}
	return filepath.Join(filepath.Dir(dir), "voices.json"), nil
}

func (f registerFlag) register() (path string, r *voices.Register, err error) {
	if path, err = f.path(); err != nil {
		return "", nil, err
	}
	r, err = readRegister(path)
	return path, r, err
}

// readRegister reads a register; a missing file is an empty register.
func readRegister(path string) (*voices.Register, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &voices.Register{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := voices.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// keepRegister writes a register that only its owner can read.
func keepRegister(path string, r *voices.Register) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := writeWhole(path, r.Write); err != nil {
		return err
	}
	return os.Chmod(path, 0o600)
}

type voicesAddCmd struct {
	Name    string   `arg:"" help:"Name of the person."`
	Files   []string `arg:"" name:"file" help:"Recordings of this person alone, each with a few seconds of speech."`
	Of      string   `placeholder:"SPEAKER" help:"Learn only what this speaker of --transcript says in the one recording."`
	Turns   string   `name:"transcript" placeholder:"FILE" help:"The recording's result as JSON, for --of; also a corrected one."`
	Consent string   `required:"" placeholder:"NOTE" help:"What the person consented to, and when; a voice identifies a person."`

	registerFlag
	modelFlags
}

// leastVoice is the least speech (s) in a recording that describes a voice.
const leastVoice = 2.0

func (c *voicesAddCmd) Run(ctx context.Context) error {
	if (c.Of == "") != (c.Turns == "") || c.Of != "" && len(c.Files) != 1 {
		return &usageError{errors.New("--of and --transcript: expected both, with one recording")}
	}
	path, register, err := c.register()
	if err != nil {
		return err
	}
	set, err := c.open()
	if err != nil {
		return err
	}
	_, hash, err := embedder(set)
	if err != nil {
		return err
	}
	p, err := otograph.Open(set, otograph.Config{})
	if err != nil {
		return err
	}
	defer p.Close()
	voice := voices.Voice{Name: c.Name, Model: hash, Added: time.Now().UTC().Truncate(time.Second), Consent: c.Consent}
	for _, file := range c.Files {
		src := otograph.File(file)
		if c.Of != "" {
			if src, err = speakerOf(ctx, file, c.Turns, c.Of); err != nil {
				return err
			}
		}
		v, err := oneVoice(ctx, p, src)
		if err != nil {
			return err
		}
		voice.Vectors = append(voice.Vectors, v)
	}
	if _, err := register.Add(voice); err != nil {
		return err
	}
	if err := keepRegister(path, register); err != nil {
		return err
	}
	say("%s: %s of %s added to the register.\n", path, plural(len(c.Files), "recording"), spec.Shorten(strings.TrimSpace(c.Name)))
	return nil
}

// embedder returns the set's speaker model and its hash.
func embedder(set *models.Set) (m *models.Model, hash string, err error) {
	if m, err = set.Need(models.RoleEmbedder); err == nil {
		hash, err = m.Hash()
	}
	return m, hash, err
}

// oneVoice returns the vector of a recording's only voice, and prints the
// warnings about the recording.
func oneVoice(ctx context.Context, p *otograph.Pipeline, src otograph.Source) ([]float32, error) {
	voice, err := p.Voice(ctx, src)
	printWarnings(filepath.Base(src.Name()), voice.Warnings, false)
	if err == nil && voice.Seconds < leastVoice {
		err = fmt.Errorf("%s: expected at least %.0f s of speech, found %.1f s", src.Name(), leastVoice, voice.Seconds)
	}
	return voice.Vector, err
}

type voicesListCmd struct {
	registerFlag
	JSON   bool   `help:"Print the register as JSON, with the vectors." xor:"what"`
	Remove string `placeholder:"NAME" help:"Remove this person's voice." xor:"what"`
}

func (c *voicesListCmd) Run() error {
	path, register, err := c.register()
	if err != nil {
		return err
	}
	if c.Remove != "" {
		if !register.Remove(c.Remove) {
			return fmt.Errorf("%s: there is no voice %q", path, spec.Shorten(c.Remove))
		}
		if err := keepRegister(path, register); err != nil {
			return err
		}
		say("%s: %s has been removed.\n", path, spec.Shorten(c.Remove))
		return nil
	}
	if c.JSON {
		return register.Write(cleanJSON{os.Stdout})
	}
	return printList(false, register.Voices, []string{"NAME", "RECORDINGS", "MODEL", "ADDED", "CONSENT"}, func(t table, v voices.Voice) {
		t.row(v.Name, len(v.Vectors), fmt.Sprintf("%.8s", v.Model), v.Added.Format(time.DateOnly), v.Consent)
	})
}

// identifier identifies speakers in a register; nil identifies none.
type identifier struct {
	register *voices.Register
	model    string  // hash of the speaker model
	alike    float64 // least cosine of a speaker and a known voice
}

// identify returns the speakers of a result who are in the register.
func (i *identifier) identify(res *otograph.Result) []voices.Match {
	if i == nil {
		return nil
	}
	return i.register.Identify(i.model, res.SpeakerEmbeddings, i.alike)
}

// openIdentifier opens the register named by --voices; its voices must be
// computed by the set's speaker model.
func openIdentifier(path string, set *models.Set) (*identifier, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, &usageError{fmt.Errorf("--voices: %w", err)}
	}
	register, err := readRegister(path)
	if err != nil {
		return nil, err
	}
	m, hash, err := embedder(set)
	if err != nil {
		return nil, err
	}
	if !register.Has(hash) {
		return nil, fmt.Errorf("--voices %s: expected voices of the speaker model %s (%.8s), found none: add them with this model", path, m.Name, hash)
	}
	return &identifier{register, hash, networks.KnownVoice(m)}, nil
}

// speakerOf returns the stretches of a recording in which only one speaker of
// its transcript speaks, end to end. The transcript is a result in JSON.
func speakerOf(ctx context.Context, recording, transcript, speaker string) (otograph.Source, error) {
	data, err := os.ReadFile(transcript)
	if err != nil {
		return nil, err
	}
	var res otograph.Result
	if err := json.Unmarshal(data, &res); err != nil {
		return nil, fmt.Errorf("%s: expected a result as JSON: %w", transcript, err)
	}
	pcm, err := audio.Open(ctx, audio.File(recording), audio.Options{})
	if err != nil {
		return nil, err
	}
	defer pcm.Close()
	printWarnings(filepath.Base(recording), assemble.AudioWarnings(pcm.Info()), false)
	if is := pcm.Info().MD5; is != "" && res.AudioMD5 != "" && is != res.AudioMD5 {
		return nil, fmt.Errorf("%s: expected the transcript of %s (MD5 %s), found that of another recording (%s)", transcript, recording, is, res.AudioMD5)
	}
	var samples []float32
	for _, t := range alone(res.DiarizeSegments, speaker) {
		samples = pcm.Append(samples, int(t.Start*audio.SampleRate), int(t.End*audio.SampleRate))
	}
	if len(samples) == 0 {
		speakers := map[string]bool{}
		for _, t := range res.DiarizeSegments {
			speakers[t.Speaker] = true
		}
		return nil, fmt.Errorf("%s: expected turns of %s alone, found those of %s", transcript, spec.Shorten(speaker), strings.Join(slices.Sorted(maps.Keys(speakers)), ", "))
	}
	return audio.Raw(samples, audio.SampleRate, 1), nil
}

// alone returns the parts of a speaker's turns outside all other turns. The
// turns are ordered by start.
func alone(turns []otograph.Turn, speaker string) (own []otograph.Turn) {
	for _, t := range turns {
		if t.Speaker != speaker {
			continue
		}
		for _, other := range turns {
			if other.Speaker == speaker || other.End <= t.Start || other.Start >= t.End {
				continue
			}
			if other.Start > t.Start {
				own = append(own, otograph.Turn{Start: t.Start, End: other.Start, Speaker: speaker})
			}
			t.Start = min(other.End, t.End)
		}
		if t.Start < t.End {
			own = append(own, t)
		}
	}
	return own
}
