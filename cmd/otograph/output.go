package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"

	"github.com/otograph/otograph/spec"
)

// All output of commands goes through this file, because parts of it come from
// receivers, model files, customers and servers.

// say prints to standard output.
func say(format string, args ...any) {
	_, err := fmt.Fprint(os.Stdout, cleanText(fmt.Sprintf(format, args...)))
	printError = cmp.Or(printError, err)
}

// sayUnless prints to standard output unless err is set, and returns err.
func sayUnless(err error, format string, args ...any) error {
	if err == nil {
		say(format, args...)
	}
	return err
}

// printError is the first error of say, which makes the command fail.
var printError error

// drawable reports whether a file is a terminal with control sequences.
func drawable(f *os.File) bool { return term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" }

// warn prints to standard error.
func warn(format string, args ...any) { fmt.Fprint(os.Stderr, cleanText(fmt.Sprintf(format, args...))) }

// printWarnings prints the warnings about a recording, and unless quiet is set
// those about options.
func printWarnings(name string, list []spec.Warning, quiet bool) {
	for _, w := range list {
		if w.Option == spec.WarnAudio {
			warn("otograph: %s: %s\n", name, w.Reason)
		} else if !quiet {
			warn("otograph: %s: --%s: %s\n", name, strings.ReplaceAll(w.Option, "_", "-"), w.Reason)
		}
	}
}

// about adds the subject of a command to its error.
func about(kind, name string, err error) error {
	if err != nil {
		return fmt.Errorf("%s %q: %w", kind, name, err)
	}
	return nil
}

// redraw replaces the current line of a terminal.
func redraw(w io.Writer, line string) { fmt.Fprint(w, "\r\x1b[K", cleanLine(line)) }

// printJSON prints a value in writeJSON's format.
func printJSON(v any) error { return writeJSON(cleanJSON{os.Stdout}, v) }

// printAnswer prints a value as printJSON does, unless there is an error.
func printAnswer(v any, err error) error {
	if err != nil {
		return err
	}
	return printJSON(v)
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// printDocument writes a complete document to standard output: unchanged to a
// file or another program, but cleaned to a terminal unless it was made for
// one. JSON is the same document with its control characters escaped.
func printDocument(document []byte, format string, madeForTerminal bool) error {
	var out io.Writer = os.Stdout
	switch {
	case format == "json":
		out = cleanJSON{out}
	case !madeForTerminal && term.IsTerminal(int(os.Stdout.Fd())):
		document = []byte(cleanText(string(document)))
	}
	_, err := out.Write(document)
	return err
}

// deliver writes a complete document to a file, or prints it without a path.
func deliver(path string, document []byte, format string, madeForTerminal bool) error {
	if path == "" {
		return printDocument(document, format, madeForTerminal)
	}
	return writeWhole(path, func(w io.Writer) error {
		_, err := w.Write(document)
		return err
	})
}

// outputFile returns the file that -o names, "" for standard output: if that is a
// file, a new one must not replace it.
func outputFile(path string) string {
	if slices.Contains([]string{"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}, path) {
		return ""
	}
	return path
}

// otherDocuments are endings of documents that no format writes.
var otherDocuments = strings.Fields("ass csv doc lrc ods odt pdf rtf sbv ssa stm sub ttml xls xlsx xml yaml")

// otherEndings are the endings of formats that do not end in the format's name.
var otherEndings = map[string]string{".htm": "html", ".markdown": "md", ".labels.txt": "labels"}

// formatOf returns the format that a flag selects or, for auto, the one of formats
// that the ending of the output names, else the first. Both must not differ.
func formatOf(flag, path, formats string) (string, error) {
	list, ending := strings.Fields(formats), strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), ".")
	for other, format := range otherEndings {
		if strings.HasSuffix(strings.ToLower(path), other) {
			ending = format
		}
	}
	switch named := slices.Contains(list, ending); {
	case named && flag == auto:
		return ending, nil
	case flag == auto && slices.Contains(otherDocuments, ending):
		return "", &usageError{fmt.Errorf("-o %s: %s is not written, expected --format or one of the endings %s", path, ending, formats)}
	case flag == auto:
		return list[0], nil
	case named && flag != ending:
		return "", &usageError{fmt.Errorf("-o %s: expected no --format, --format %s or another ending, got --format %s", path, ending, flag)}
	}
	return flag, nil
}

// table prints columns, each as wide as its widest cell.
type table struct{ w *tabwriter.Writer }

func newTable(w io.Writer, header ...string) table {
	t := table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	if len(header) > 0 {
		fmt.Fprintln(t.w, strings.Join(header, "\t"))
	}
	return t
}

func (t table) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = cleanLine(fmt.Sprint(cell))
	}
	fmt.Fprintln(t.w, strings.Join(texts, "\t"))
}

// printList prints a list as a table with a row for each entry, or as JSON.
func printList[T any](asJSON bool, list []T, header []string, row func(table, T)) error {
	if asJSON {
		return printJSON(orEmpty(list))
	}
	t := newTable(os.Stdout, header...)
	for _, entry := range list {
		row(t, entry)
	}
	return t.flush()
}

// orEmpty returns a list that JSON shows as [], not null, if it is empty.
func orEmpty[T any](list []T) []T { return append([]T{}, list...) }

// section begins another table below this one.
func (t table) section(header ...string) { fmt.Fprintln(t.w, "\n"+strings.Join(header, "\t")) }

func (t table) flush() error { return t.w.Flush() }
