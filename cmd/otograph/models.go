package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/library"
)

type modelsCmd struct {
	List   modelsListCmd   `cmd:"" help:"List published models and the models in the model folder; show which file serves which role (--where); check the files against their hashes (--verify)."`
	Pull   modelsPullCmd   `cmd:"" help:"Download and activate a model or a profile (starter, small, balanced, best, zh; balanced:ja for a language)."`
	Import modelsImportCmd `cmd:"" help:"Import your own model file, folder or archive into the model folder."`
}

// folderFlag names the command's model folder.
type folderFlag struct {
	Models string `name:"models" placeholder:"DIR" env:"OTOGRAPH_MODELS" help:"Model folder; default: otograph/models in the user's data folder."`
}

func (f folderFlag) store() (*library.Store, error) {
	dir := f.Models
	if dir == "" {
		var err error
		if dir, _, err = library.DefaultDir(); err != nil {
			return nil, err
		}
	}
	return &library.Store{Dir: dir}, nil
}

type modelsListCmd struct {
	Where  bool        `help:"Show which model file serves which role, with the flags below."`
	Verify bool        `help:"Check the files of the model folder against their hashes."`
	JSON   bool        `help:"Print as JSON."`
	Role   models.Role `placeholder:"ROLE" help:"Restrict to one role: standard, optimized, vad, embedder, segmenter, tagger."`
	modelFlags
}

func (c *modelsListCmd) Run(ctx context.Context) error {
	store, err := folderFlag{c.Models}.store()
	switch {
	case c.Where && c.Verify || c.Role != "" && (c.Where || c.Verify):
		return &usageError{errors.New("models list: use only one of --where, --verify and --role")}
	case c.Where:
		return c.where()
	case err != nil:
		return err
	case c.Verify:
		return c.verify(ctx, store)
	}
	if !slices.ContainsFunc(slices.Collect(maps.Values(c.named())), func(file string) bool { return file != "" }) {
		return c.list(store)
	}
	return &usageError{errors.New("models list: the flags of single models belong to --where")}
}

// list prints published models and those in the model folder.
func (c *modelsListCmd) list(store *library.Store) (err error) {
	if c.Role != "" {
		if c.Role, err = models.ParseRole(string(c.Role)); err != nil {
			return &usageError{err}
		}
	}
	lines, err := store.List()
	if err != nil {
		return err
	}
	shown := slices.DeleteFunc(lines, func(l library.Listed) bool { return c.Role != "" && l.Role != c.Role })
	if !c.JSON {
		slices.SortStableFunc(shown, func(a, b library.Listed) int { return cmp.Compare(stateOf(a), stateOf(b)) })
	}
	header := []string{"ROLE", "NAME", "SIZE", "LANGUAGES", "PROFILES", "LICENSE", "STATE"}
	return printList(c.JSON, shown, header, func(t table, l library.Listed) {
		t.row(l.Role, l.Name, size(l.Size), clip(strings.Join(l.Languages, " "), 24),
			strings.Join(l.Profiles, " "), clip(l.License, 28), states[stateOf(l)])
	})
}

// states are the states of models, in the order of the list.
var states = []string{"in use", "in use, damaged", "installed", ""}

// stateOf returns the index of a model's state.
func stateOf(l library.Listed) int {
	return slices.Index([]bool{l.InUse && l.Installed, l.InUse, l.Installed, true}, true)
}

type modelsPullCmd struct {
	folderFlag
	Name   []string `arg:"" optional:"" help:"Models or profiles, as models list names them; PROFILE:LANGUAGE takes the fast model for a language. Default: the profile starter."`
	Mirror string   `placeholder:"URL" env:"OTOGRAPH_MIRROR" help:"Download from MIRROR/HOST/PATH instead of the publishers' hosts."`
	Quiet  bool     `short:"q" help:"No progress bar."`
}

func (c *modelsPullCmd) Run(ctx context.Context) error {
	store, err := c.store()
	if err != nil {
		return err
	}
	store.Mirror = c.Mirror
	done := showTransfer(store, c.Quiet)
	if len(c.Name) == 0 {
		c.Name = []string{starter}
	}
	for _, name := range c.Name {
		stored, err := store.Pull(ctx, name)
		done()
		printStored(stored)
		if err != nil {
			return err
		}
	}
	return nil
}

type modelsImportCmd struct {
	folderFlag
	Source        string      `arg:"" help:"A model file, a folder (also of CTranslate2 or transformers: Whisper is converted) or an archive (.tar.bz2, .tar.gz, .tar)."`
	Name          string      `placeholder:"NAME" help:"Name in the model folder; default: the file's name."`
	Role          models.Role `placeholder:"ROLE" help:"Required role."`
	Contract      string      `group:"Facts that the file does not state" placeholder:"NAME" help:"The model's contract, if it cannot be detected from the file."`
	Languages     []string    `group:"Facts that the file does not state" placeholder:"CODE" help:"Languages that the model supports."`
	Type          string      `placeholder:"TYPE" help:"Precision of a converted model: f16, q8_0 (default) or q5_0."`
	License       string      `group:"Facts that the file does not state" placeholder:"NAME" help:"License of the weights, if the files do not state it."`
	WindowSeconds float64     `group:"Facts that the file does not state" placeholder:"S" help:"Longest stretch of audio to pass to the model."`
	SampleRate    int         `group:"Facts that the file does not state" placeholder:"HZ" help:"Sample rate of the model's waveform input (taggers)."`
	SameSpeaker   float64     `group:"Facts that the file does not state" placeholder:"COS" help:"Cosine similarity at which two voices count as one person (embedders)."`
	Quiet         bool        `short:"q" help:"No progress bar."`
}

func (c *modelsImportCmd) Run(ctx context.Context) error {
	store, err := c.store()
	if err != nil {
		return err
	}
	done := showTransfer(store, c.Quiet)
	stored, err := store.Import(ctx, c.Source, library.ImportOptions{
		Name: c.Name, Role: c.Role, Contract: c.Contract, Languages: c.Languages,
		Type: library.Type(c.Type), License: c.License,
		WindowSeconds: c.WindowSeconds, SampleRate: c.SampleRate, SameSpeaker: c.SameSpeaker,
	})
	done()
	printStored(stored)
	return err
}

func (c *modelsListCmd) verify(ctx context.Context, store *library.Store) error {
	checks, err := store.Verify(ctx)
	if err != nil {
		return err
	}
	bad := 0
	for _, k := range checks {
		if k.Status == library.StatusChanged || k.Status == library.StatusMissing {
			bad++
		}
	}
	err = printList(c.JSON, checks, nil, func(t table, k library.Check) { t.row(k.Status, k.Role, k.Model, k.Path) })
	if err == nil && bad > 0 {
		err = fmt.Errorf("%s changed or missing; pull or import the model again", plural(bad, "file"))
	}
	return err
}

func (c *modelsListCmd) where() error {
	set, err := c.open()
	if err != nil {
		return err
	}
	return printList(c.JSON, locations(set), nil, func(t table, p location) {
		t.row(p.Role, p.Model, p.Part, size(p.Size), cmp.Or(p.Path, "(embedded)"))
	})
}

type location struct {
	Role  models.Role
	Model string
	Part  models.Part
	Path  string // empty for an embedded file
	Size  int64  // bytes
	Demo  bool
}

func locations(set *models.Set) (places []location) {
	for _, role := range models.Roles() {
		for _, m := range set.All(role) {
			for _, f := range m.Files {
				places = append(places, location{Role: role, Model: m.Name, Part: f.Part, Path: f.Path, Size: f.Size, Demo: m.Demo})
			}
		}
	}
	return places
}

func printStored(stored []library.Stored) {
	for _, s := range stored {
		state := "is in use"
		if s.Convert != "" {
			state = "has been downloaded; before it can be used, run tools/convert/" + s.Convert
		}
		say("%s: %s %s (%s)\n", s.Role, s.Name, state, s.Dir)
		for _, note := range s.Notes {
			say("  %s\n", note)
		}
		for _, name := range s.Trusted {
			say("  no hash is published for %s: the hash of this download is recorded and checked from now on\n", name)
		}
	}
}

// showTransfer draws a store's progress on a terminal; done removes it.
func showTransfer(store *library.Store, quiet bool) (done func()) {
	line := newStatusLine(os.Stderr, quiet)
	var start time.Time
	var file string
	store.Progress = func(p library.Progress) {
		if p.File != file {
			file, start = p.File, time.Now()
		}
		line.draw(false, func(int) string { return transferText(p, time.Since(start)) })
	}
	if !quiet {
		store.Waiting = func() { warn("otograph: another process adds models to %s: waiting for it\n", store.Dir) }
	}
	return line.clear
}

// transferText describes a download that began some time ago.
func transferText(p library.Progress, elapsed time.Duration) string {
	if p.Total <= 0 {
		return fmt.Sprintf("%s  %s", p.File, size(p.Done))
	}
	text := fmt.Sprintf("%s  %3d %%  %s of %s", p.File, p.Done*100/p.Total, size(p.Done), size(p.Total))
	if rate := float64(p.Done-p.Resumed) / max(0.1, elapsed.Seconds()); rate > 0 {
		left := time.Duration(float64(p.Total-p.Done) / rate * float64(time.Second))
		text += fmt.Sprintf("  %s/s  %s left", size(int64(rate)), left.Round(time.Second))
	}
	return text
}

// size formats a number of bytes for people.
func size(n int64) string {
	switch {
	case n <= 0:
		return "?"
	case n < 1e6:
		return fmt.Sprintf("%.0f KB", float64(n)/1e3)
	case n < 1e9:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.2f GB", float64(n)/1e9)
}
