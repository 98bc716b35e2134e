package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish. For bash: eval \"$(otograph completion bash)\" in ~/.bashrc; for fish: otograph completion fish | source."`
}

// Run prints a script that completes commands, flags and their values.
func (c *completionCmd) Run() error {
	commands := completionsOf(newParser(context.Background(), true).Model.Node)
	if c.Shell == "fish" {
		return fishCompletion(os.Stdout, commands)
	}
	return bashCompletion(os.Stdout, commands, c.Shell == "zsh")
}

// completions holds what can follow a command.
type completions struct {
	words    []string // the command's path
	children []*kong.Node
	flags    []*kong.Flag
}

// completionsOf returns the completions of a command and of those below it.
func completionsOf(node *kong.Node) (list []completions) {
	c := completions{}
	for n := node; n.Parent != nil; n = n.Parent {
		c.words = append([]string{n.Name}, c.words...)
	}
	for _, group := range node.AllFlags(true) {
		c.flags = append(c.flags, group...)
	}
	for _, child := range node.Children {
		if !child.Hidden {
			c.children = append(c.children, child)
		}
	}
	// The flags of a default command also follow its parent.
	if d := node.DefaultCmd; d != nil {
		for _, group := range d.AllFlags(true) {
			c.flags = append(c.flags, group...)
		}
	}
	slices.SortFunc(c.flags, func(a, b *kong.Flag) int { return cmp.Compare(a.Name, b.Name) })
	c.flags = slices.CompactFunc(c.flags, func(a, b *kong.Flag) bool { return a.Name == b.Name })
	list = append(list, c)
	for _, child := range c.children {
		list = append(list, completionsOf(child)...)
	}
	return list
}

// flagNames returns the forms of a flag.
func flagNames(f *kong.Flag) (names []string) {
	names = []string{"--" + f.Name}
	if f.Tag.Negatable != "" {
		names = append(names, "--no-"+f.Name)
	}
	if f.Short != 0 {
		names = append(names, "-"+string(f.Short))
	}
	return names
}

// bashCompletion writes a script for bash, or for zsh by its emulation of bash.
func bashCompletion(w io.Writer, commands []completions, zsh bool) error {
	var b strings.Builder
	if zsh {
		b.WriteString("autoload -U +X compinit bashcompinit && compinit && bashcompinit\n")
	}
	b.WriteString("_otograph() {\n  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path= words= word\n")
	b.WriteString("  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n    case \"$path $word\" in\n")
	var paths []string
	for _, c := range commands[1:] {
		paths = append(paths, `" `+strings.Join(c.words, " ")+`"`)
	}
	fmt.Fprintf(&b, "    %s) path=\"$path $word\" ;;\n    esac\n  done\n  case \"$path $prev\" in\n", strings.Join(paths, "|"))
	for _, c := range commands {
		path := strings.Join(append([]string{""}, c.words...), " ")
		for _, f := range c.flags {
			if f.Enum == "" || f.IsBool() {
				continue
			}
			var forms []string
			for _, name := range flagNames(f) {
				forms = append(forms, fmt.Sprintf("%q", path+" "+name))
			}
			fmt.Fprintf(&b, "  %s)\n    COMPREPLY=($(compgen -W %q -- \"$cur\"))\n    return\n    ;;\n", strings.Join(forms, "|"), strings.ReplaceAll(f.Enum, ",", " "))
		}
	}
	b.WriteString("  esac\n  case \"$path\" in\n")
	for _, c := range commands {
		var words []string
		for _, child := range c.children {
			words = append(words, child.Name)
		}
		for _, f := range c.flags {
			words = append(words, flagNames(f)...)
		}
		fmt.Fprintf(&b, "  %q) words=%q ;;\n", strings.Join(append([]string{""}, c.words...), " "), strings.Join(words, " "))
	}
	b.WriteString("  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\") $(compgen -f -- \"$cur\"))\n}\ncomplete -o filenames -F _otograph otograph\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// fishCompletion writes a script for fish.
func fishCompletion(w io.Writer, commands []completions) error {
	var b strings.Builder
	quote := func(s string) string {
		return "'" + strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), "'", `\'`) + "'"
	}
	for _, c := range commands {
		var where []string
		for _, word := range c.words {
			where = append(where, "__fish_seen_subcommand_from "+word)
		}
		var children []string
		for _, child := range c.children {
			children = append(children, child.Name)
		}
		if len(children) > 0 {
			only := quote(strings.Join(append(slices.Clone(where), "not __fish_seen_subcommand_from "+strings.Join(children, " ")), "; and "))
			for _, child := range c.children {
				fmt.Fprintf(&b, "complete -c otograph -n %s -a %s -d %s\n", only, child.Name, quote(child.Help))
			}
		}
		for _, f := range c.flags {
			line := "complete -c otograph"
			if len(where) > 0 {
				line += " -n " + quote(strings.Join(where, "; and "))
			}
			for _, name := range flagNames(f) {
				option := " -l " + strings.TrimPrefix(name, "--")
				if !strings.HasPrefix(name, "--") {
					option = " -s " + name[1:]
				}
				values := ""
				switch {
				case f.IsBool():
				case f.Enum != "":
					values = " -x -a " + quote(strings.ReplaceAll(f.Enum, ",", " "))
				default:
					values = " -r"
				}
				fmt.Fprintf(&b, "%s%s%s -d %s\n", line, option, values, quote(f.Help))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
