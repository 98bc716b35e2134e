package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/otograph/otograph/internal/system/terminal"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/library"
)

// offeredProfile is the profile that a first transcription on a terminal offers
// to download.
const offeredProfile = "balanced"

// declined is the file in the model folder that records a "no", so that the
// offer is made only once.
const declined = ".offer-declined"

// mirrorVariable names a mirror that replaces the publishers' hosts.
const mirrorVariable = "OTOGRAPH_MIRROR"

// wantsOffer reports whether to offer published models: the user has a
// terminal, no real model is installed, and the offer was not declined before.
func (c *transcribeCmd) wantsOffer(set *models.Set) bool {
	if c.Quiet || c.Demo || slices.ContainsFunc(c.Files, readOnce) || !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stderr.Fd())) {
		return false
	}
	for _, role := range models.Roles() {
		if m, ok := set.Role(role); ok && !m.Demo {
			return false
		}
	}
	store, err := (folderFlag{c.Models}).store()
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(store.Dir, declined))
	return errors.Is(err, fs.ErrNotExist)
}

// offer asks whether to download published models, and downloads them. It
// reports whether models were added. An interrupted download continues where it
// stopped if the offer is accepted again.
func (c *transcribeCmd) offer(ctx context.Context, in io.Reader, out io.Writer) (bool, error) {
	store, err := (folderFlag{c.Models}).store()
	if err != nil {
		return false, err
	}
	store.Mirror = os.Getenv(mirrorVariable)
	text, err := describeProfile(store, offeredProfile)
	if err != nil {
		return false, err
	}
	fmt.Fprintf(out, "These are demo models for synthetic voices; real recordings give mostly wrong words.\n%sGet them now? [Y/n] ", text)
	line, err := readLine(ctx, in)
	if ctx.Err() != nil {
		fmt.Fprintln(out)
		return false, ctx.Err()
	}
	if err != nil && line == "" {
		fmt.Fprintln(out)
		return false, nil // end of input is not an answer
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "", "y", "yes":
	default:
		fmt.Fprintf(out, "Later: otograph models pull %s\n", offeredProfile)
		return false, rememberDeclined(store.Dir)
	}
	done := showTransfer(store, false)
	stored, err := store.Pull(ctx, offeredProfile)
	done()
	if err != nil {
		return false, fmt.Errorf("%w (run the command again to continue, or add --demo to use the demo models)", err)
	}
	fmt.Fprintf(out, "%s in %s\n", plural(len(stored), "model"), store.Dir)
	return true, nil
}

// readLine reads a line until ctx ends; a terminal's read cannot be canceled.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	type answer struct {
		line string
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		line, err := bufio.NewReader(in).ReadString('\n')
		answered <- answer{line, err}
	}()
	select {
	case a := <-answered:
		return a.line, a.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func rememberDeclined(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, declined), nil, 0o666)
}

// describeProfile lists the models of a profile with size, license and host.
func describeProfile(store *library.Store, profile string) (string, error) {
	lines, err := store.List()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	var total int64
	hosts := map[string]bool{}
	for _, l := range lines {
		if !slices.Contains(l.Profiles, profile) || l.Catalog == nil {
			continue
		}
		total += l.Size
		fmt.Fprintf(&b, "  %-10s %s, %s, %s\n", l.Role, terminal.Line(l.Name), size(l.Size), terminal.Line(l.License))
		for _, address := range downloads(l.Catalog) {
			if u, err := url.Parse(address); err == nil && u.Host != "" {
				hosts[u.Host] = true
			}
		}
	}
	from := strings.Join(slices.Sorted(maps.Keys(hosts)), ", ")
	return fmt.Sprintf("The profile %s, %s in all, from %s:\n%s", profile, size(total), from, b.String()), nil
}

// downloads returns the addresses from which a catalog entry is downloaded.
func downloads(e *library.Entry) []string {
	var out []string
	if e.Archive != nil {
		out = append(out, e.Archive.URL)
	}
	for _, f := range e.Files {
		out = append(out, f.URL)
	}
	return out
}
