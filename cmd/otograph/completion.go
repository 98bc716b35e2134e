package main

import (
	"cmp"
	"context"
	"embed"
	"io"
	"os"
	"slices"
	"strings"
	"text/template"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish. For bash: eval \"$(otograph completion bash)\" in ~/.bashrc; for fish: otograph completion fish | source."`
}

// Run prints a script that completes commands, flags and their values.
func (c *completionCmd) Run() error {
	return writeCompletion(os.Stdout, c.Shell, completionsOf(newParser(context.Background(), true).Model.Node))
}

// completions holds what can follow a command.
type completions struct {
	words    []string // the command's path
	Children []*kong.Node
	Flags    []completedFlag
}

// completedFlag is a flag as the templates of the scripts use it.
type completedFlag struct{ *kong.Flag }

// completionsOf returns the completions of a command and of its subcommands.
func completionsOf(node *kong.Node) (list []completions) {
	c := completions{}
	for n := node; n.Parent != nil; n = n.Parent {
		c.words = append([]string{n.Name}, c.words...)
	}
	groups := node.AllFlags(true)
	if d := node.DefaultCmd; d != nil { // the flags of the default command also follow its parent
		groups = append(groups, d.AllFlags(true)...)
	}
	for _, f := range slices.Concat(groups...) {
		c.Flags = append(c.Flags, completedFlag{f})
	}
	c.Children = slices.DeleteFunc(slices.Clone(node.Children), func(child *kong.Node) bool { return child.Hidden })
	slices.SortFunc(c.Flags, func(a, b completedFlag) int { return cmp.Compare(a.Name, b.Name) })
	c.Flags = slices.CompactFunc(c.Flags, func(a, b completedFlag) bool { return a.Name == b.Name })
	list = append(list, c)
	for _, child := range c.Children {
		list = append(list, completionsOf(child)...)
	}
	return list
}

// Path returns the words of the command, each after a space.
func (c completions) Path() string { return strings.Join(append([]string{""}, c.words...), " ") }

// Next returns the words that can follow the command.
func (c completions) Next() string {
	var words []string
	for _, child := range c.Children {
		words = append(words, child.Name)
	}
	for _, f := range c.Flags {
		words = append(words, f.Forms()...)
	}
	return strings.Join(words, " ")
}

// Given returns fish's condition that the command line has the command.
func (c completions) Given() string {
	var conditions []string
	for _, word := range c.words {
		conditions = append(conditions, "__fish_seen_subcommand_from "+word)
	}
	return strings.Join(conditions, "; and ")
}

// Forms returns the forms of a flag.
func (f completedFlag) Forms() []string {
	forms := []string{"--" + f.Name}
	if f.Tag.Negatable != "" {
		forms = append(forms, "--no-"+f.Name)
	}
	if f.Short != 0 {
		forms = append(forms, "-"+string(f.Short))
	}
	return forms
}

// Values returns the permitted values of a flag; "" if any value is.
func (f completedFlag) Values() string {
	if f.IsBool() {
		return ""
	}
	return strings.ReplaceAll(f.Enum, ",", " ")
}

//go:embed completion.*.tmpl
var completionScripts embed.FS

// writeCompletion writes the script of a shell; zsh emulates bash.
func writeCompletion(w io.Writer, shell string, commands []completions) error {
	name := "completion.bash.tmpl"
	if shell == "fish" {
		name = "completion.fish.tmpl"
	}
	quote := func(s string) string { return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'" }
	t, err := template.New(name).Funcs(template.FuncMap{"quote": quote}).ParseFS(completionScripts, name)
	if err != nil {
		return err
	}
	return t.Execute(w, map[string]any{"Commands": commands, "Zsh": shell == "zsh"})
}
