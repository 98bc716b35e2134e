// Command datasets downloads a public data set of speech with its references as
// a folder with a manifest for otograph bench.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/otograph/otograph/tools/internal/checkout"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "datasets:", err)
		os.Exit(1)
	}
}

// run lists the data sets, or gets the one that the command line names.
func run(ctx context.Context) error {
	var o Options
	flag.StringVar(&o.Dir, "o", "", "`folder` of the data set; default: bin/datasets/NAME")
	flag.StringVar(&o.Mirror, "mirror", os.Getenv("OTOGRAPH_MIRROR"), "download from `URL`/HOST/PATH instead of the publishers' hosts")
	flag.Func("from", "use this `file` of the data set, downloaded by other means, or all in this folder (repeat for more)", func(path string) error {
		o.From = append(o.From, path)
		return nil
	})
	flag.Parse()
	if err := checkout.Enter(); err != nil {
		return err
	}
	switch flag.NArg() {
	case 0:
		list()
		return nil
	case 1:
	default:
		return fmt.Errorf("%d arguments: expected the name of one data set", flag.NArg())
	}
	set, err := Find(flag.Arg(0))
	if err != nil {
		return err
	}
	o.Dir = cmp.Or(o.Dir, filepath.Join("bin", "datasets", strings.ReplaceAll(set.Name, ":", "-")))
	last := int64(-1)
	o.Progress = func(file string, done, total, _ int64) {
		if percent := 100 * done / max(total, 1); percent/10 != last {
			last = percent / 10
			fmt.Fprintf(os.Stderr, "%s: %d of %d MB\n", file, done>>20, total>>20)
		}
	}
	got, err := set.Get(ctx, o)
	if err != nil {
		return err
	}
	if got.Already {
		fmt.Printf("%s is complete: %s\n", set.Name, got.Manifest)
		return nil
	}
	fmt.Printf("%s: %d recordings, license %s\n", set.Name, got.Recordings, set.License)
	if got.Skipped > 0 {
		fmt.Printf("  left out: %d recordings without a reference or references without a recording\n", got.Skipped)
	}
	if len(got.Unchecked) > 0 {
		fmt.Printf("  no hash is published for %s; dataset.json records the hashes of the downloads\n", strings.Join(got.Unchecked, ", "))
	}
	fmt.Println("Measure with: otograph bench", got.Manifest)
	return nil
}

// list prints the data sets.
func list() {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tHOURS\tMB\tHASHES\tLICENSE\tCONTENT")
	for _, s := range List() {
		hours, size, hashes := "not published", "not published", "some"
		if s.Hours > 0 {
			hours = fmt.Sprint(s.Hours)
		}
		if n := s.Size(); n > 0 {
			size = fmt.Sprint(n >> 20)
		}
		if s.Checked() {
			hashes = "all"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", s.Name, hours, size, hashes, s.License, s.About)
	}
	_ = w.Flush()
}
