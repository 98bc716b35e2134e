package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/otograph/otograph/bench"
	"github.com/otograph/otograph/internal/system/fetch"
)

type benchGetCmd struct {
	Name   string   `arg:"" optional:"" help:"Data set, as --list names it, such as librispeech-test-clean or fleurs:de."`
	List   bool     `help:"List the data sets with their licenses and sizes."`
	Output string   `short:"o" placeholder:"DIR" help:"Folder for the data set; default: its name."`
	From   []string `type:"existingpath" placeholder:"PATH" sep:"none" help:"Use this file of the data set, downloaded by other means, or all in this folder (repeat for more)."`
	Mirror string   `placeholder:"URL" env:"OTOGRAPH_MIRROR" help:"Download from MIRROR/HOST/PATH instead of the publishers' hosts."`
	Quiet  bool     `short:"q" help:"No progress bar."`
}

func (c *benchGetCmd) Run(ctx context.Context) error {
	if c.List {
		return listDataSets()
	}
	if c.Name == "" {
		return &usageError{errors.New("name a data set; --list lists them")}
	}
	set, err := bench.FindDataSet(c.Name)
	if err != nil {
		return &usageError{err}
	}
	dir := cmp.Or(c.Output, strings.ReplaceAll(set.Name, ":", "-"))
	show, done := transferBar(c.Quiet)
	got, err := set.Get(ctx, bench.DataSetOptions{
		Dir: dir, From: c.From, Mirror: c.Mirror,
		Progress: func(file string, done, total, resumed int64) {
			show(fetch.Progress{File: file, Done: done, Total: total, Resumed: resumed})
		},
	})
	done()
	if err != nil {
		return err
	}
	if got.Already {
		say("%s is complete: %s\n", set.Name, got.Manifest)
		return nil
	}
	say("%s: %s, license %s\n", set.Name, plural(got.Recordings, "recording"), set.License)
	if got.Skipped > 0 {
		say("  left out: %d recordings without a reference or references without a recording\n", got.Skipped)
	}
	if len(got.Unchecked) > 0 {
		say("  no hash is published for %s; dataset.json records the hashes of the downloads\n", strings.Join(got.Unchecked, ", "))
	}
	say("Measure with: otograph bench %s\n", got.Manifest)
	return nil
}

// listDataSets prints the data sets.
func listDataSets() error {
	return printList(false, bench.DataSets(), []string{"NAME", "HOURS", "SIZE", "HASHES", "LICENSE", "CONTENT"}, func(t table, s bench.DataSet) {
		hours, bytes, hashes := "not published", "not published", "some"
		if s.Hours > 0 {
			hours = fmt.Sprint(s.Hours)
		}
		if n := s.Size(); n > 0 {
			bytes = size(n)
		}
		if s.Checked() {
			hashes = "all"
		}
		t.row(s.Name, hours, bytes, hashes, s.License, s.About)
	})
}
