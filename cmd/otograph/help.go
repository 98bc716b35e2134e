package main

import (
	"fmt"
	"slices"

	"github.com/alecthomas/kong"
)

// firstCommands are the commands that `otograph help` lists.
var firstCommands = []string{"transcribe", "models", "serve", "work", "bench", "align", "voices", "doctor"}

// helpArgs replaces the words of `otograph help`, with a command or without, by
// flags. all reports whether the help lists all commands.
func helpArgs(args []string) (flags []string, all bool) {
	switch {
	case len(args) == 0:
		return []string{"--help"}, false
	case args[0] != "help":
		return args, false
	case slices.Equal(args[1:], []string{"all"}):
		return []string{"--help"}, true
	}
	return append(slices.Clone(args[1:]), "--help"), false
}

// helpPrinter prints help: without a command, the first commands, or all.
func helpPrinter(all bool) kong.HelpPrinter {
	return func(options kong.HelpOptions, ctx *kong.Context) error {
		if all || ctx.Selected() != nil {
			return kong.DefaultHelpPrinter(options, ctx)
		}
		if _, err := fmt.Fprintf(ctx.Stdout, "Usage: otograph COMMAND [flags]\n\n%s\n\nCommands:\n", description); err != nil {
			return err
		}
		t := newTable(ctx.Stdout)
		for _, name := range firstCommands {
			for _, c := range ctx.Model.Children {
				if c.Name == name {
					t.row("  "+name, c.Help)
				}
			}
		}
		if err := t.flush(); err != nil {
			return err
		}
		_, err := fmt.Fprint(ctx.Stdout, "\nRun `otograph help all` for all commands, `otograph COMMAND --help` for the flags of one.\n")
		return err
	}
}
