// Command english looks for phrases that make Otograph's texts hard to read: in
// Go comments and string literals, Markdown, the page's texts and Python
// comments. It prints each find and fails if there are more than allowed.
//
//	go run -C tools ./english              # the counts, by kind of text
//	go run -C tools ./english -list        # each find
//	go run -C tools ./english -sample 100  # comment blocks drawn at random, to read
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"

	"github.com/otograph/otograph/tools/internal/checkout"
)

func main() {
	list := flag.Bool("list", false, "print each find")
	only := flag.String("only", "", "look at this kind only: "+strings.Join(kinds, ", "))
	sample := flag.Int("sample", 0, "print this many comment blocks, drawn at random")
	seed := flag.Uint64("seed", 1, "seed of -sample")
	flag.Parse()
	blocks, err := blocks(flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "english:", err)
		os.Exit(2)
	}
	if *sample > 0 {
		printSample(blocks, *sample, *seed)
		return
	}
	if !report(blocks, *only, *list) {
		os.Exit(1)
	}
}

// blocks returns the text blocks of the repository's files under the given
// folders, or of all its files without any.
func blocks(folders []string) ([]block, error) {
	if err := checkout.Enter(); err != nil {
		return nil, err
	}
	out, err := exec.Command("git", append([]string{"ls-files", "-z", "--"}, folders...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	var all []block
	for _, path := range strings.Split(strings.Trim(string(out), "\x00"), "\x00") {
		b, err := read(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, b...)
	}
	return all, nil
}

// report prints counts by kind and returns whether all are within their limits.
func report(all []block, only string, list bool) bool {
	ok := true
	for _, kind := range kinds {
		if only != "" && kind != only {
			continue
		}
		total, marked := 0, 0
		for _, b := range all {
			if b.kind != kind {
				continue
			}
			total++
			found := markersIn(b.text)
			if len(found) == 0 {
				continue
			}
			marked++
			if list {
				for _, f := range found {
					fmt.Printf("%s:%d: %s: %q\n", b.path, b.line, f.marker, f.text)
				}
			}
		}
		share := 100 * float64(marked) / float64(max(total, 1))
		verdict := ""
		if share > limits[kind] {
			ok, verdict = false, fmt.Sprintf(": more than the allowed %.1f %%", limits[kind])
		}
		fmt.Printf("%s: %d of %d blocks (%.1f %%)%s\n", kind, marked, total, share, verdict)
	}
	return ok
}

// printSample prints n comment blocks outside tests, drawn with seed.
func printSample(all []block, n int, seed uint64) {
	var comments []block
	for _, b := range all {
		if b.kind == goComments {
			comments = append(comments, b)
		}
	}
	r := rand.New(rand.NewPCG(seed, seed))
	r.Shuffle(len(comments), func(i, j int) { comments[i], comments[j] = comments[j], comments[i] })
	for _, b := range comments[:min(n, len(comments))] {
		fmt.Printf("%s:%d: %s\n", b.path, b.line, b.text)
	}
}
