package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/library"
)

// starter is the profile that `models pull` downloads without an argument, and
// that a transcription on a terminal offers if there is no recognizer.
const starter = "starter"

// starterSize returns the size of the starter profile, for people.
func starterSize() string {
	entries, err := library.Find(starter)
	if err != nil {
		return err.Error() // impossible: the embedded catalog has the profile, as a test checks
	}
	var total int64
	for _, e := range entries {
		for _, f := range e.Files {
			total += f.Size
		}
	}
	return size(total)
}

// mirrorVariable names a mirror that replaces the publishers' hosts.
const mirrorVariable = "OTOGRAPH_MIRROR"

// openOrPull opens the models. If a run transcribes and there is no recognizer,
// it offers the starter profile on a terminal, and fails with advice elsewhere.
func (c *transcribeCmd) openOrPull(ctx context.Context, opt otograph.Options) (*models.Set, error) {
	set, err := c.open()
	if err != nil {
		return nil, err
	}
	asr := opt.EnableASR == nil || *opt.EnableASR
	need := needRecognizer(set, asr)
	if need == nil {
		if c.Demo && !c.Quiet {
			warn("Using demo models, which know synthetic voices and a small vocabulary; real recordings give mostly wrong words.\n")
		}
		return set, nil
	}
	if c.Quiet || slices.ContainsFunc(c.Files, readOnce) || !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stderr.Fd())) {
		return nil, need
	}
	pulled, err := c.offer(ctx, os.Stdin, os.Stderr)
	if err == nil && !pulled {
		err = need
	}
	if err != nil {
		return nil, err
	}
	return c.open()
}

// offer asks whether to download the starter profile, and downloads it. It
// reports whether models were added. An interrupted download continues where it
// stopped if the offer is accepted again.
func (c *transcribeCmd) offer(ctx context.Context, in io.Reader, out io.Writer) (bool, error) {
	store, err := (folderFlag{c.Models}).store()
	if err != nil {
		return false, err
	}
	store.Mirror = os.Getenv(mirrorVariable)
	text, err := describeProfile(store, starter)
	if err != nil {
		return false, err
	}
	fmt.Fprintf(out, "There is no model for transcription yet.\n%sGet them now? [y/N] ", text)
	line, err := readLine(ctx, in)
	if ctx.Err() != nil {
		fmt.Fprintln(out)
		return false, ctx.Err()
	}
	if err != nil && line == "" {
		fmt.Fprintln(out)
		return false, nil // end of input is not an answer
	}
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return false, nil
	}
	done := showTransfer(store, false)
	stored, err := store.Pull(ctx, starter)
	done()
	if err != nil {
		return false, fmt.Errorf("%w (run the command again to continue)", err)
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
		fmt.Fprintf(&b, "  %-10s %s, %s, %s\n", l.Role, cleanLine(l.Name), size(l.Size), cleanLine(l.License))
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
