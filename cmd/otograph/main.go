// Command otograph transcribes recordings, identifies speakers and detects
// sounds. `otograph help all` lists its commands.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/otograph/otograph/asr/whispercpp"
	"github.com/otograph/otograph/service"
	"github.com/otograph/otograph/spec"
)

// version is set by the Makefile.
var version = "dev"

// Exit codes of every command; work also has the code of service.ExitCode.
const (
	exitFailed      = 1   // an error; its message has the details
	exitUsage       = 2   // an invalid command line
	exitInterrupted = 130 // Ctrl-C or SIGTERM
)

type cli struct {
	Transcribe transcribeCmd `cmd:"" help:"Transcribe recordings: speech, speakers and sound events."`
	Listen     listenCmd     `cmd:"" help:"Transcribe a microphone or a stream while people speak."`
	Align      alignCmd      `cmd:"" help:"Align a known text with a recording: find when each word is spoken, or retime subtitles."`
	Bench      benchCmd      `cmd:"" help:"Measure accuracy and cost of models, tiers and options."`
	Doctor     doctorCmd     `cmd:"" help:"Show what is installed, what is missing, and how to fix it."`
	Models     modelsCmd     `cmd:"" help:"List, download, import and verify models."`
	Voices     voicesCmd     `cmd:"" help:"Manage known voices, so that transcripts name their speakers."`
	Native     nativeCmd     `cmd:"" help:"Download the native libraries (libwhisper, ONNX Runtime)."`

	Completion completionCmd `cmd:"" hidden:"" help:"Print a script by which a shell completes commands and flags."`

	Serve   serveCmd   `cmd:"" group:"Service" help:"Run the HTTP service and its workers."`
	Work    workCmd    `cmd:"" group:"Service" help:"Run one worker process of the service."`
	Account accountCmd `cmd:"" group:"Service" help:"Create, show, credit, limit and suspend accounts."`
	Key     keyCmd     `cmd:"" group:"Service" help:"Create and revoke API keys."`
	User    userCmd    `cmd:"" group:"Service" help:"Create, log out and delete users."`
	Audit   auditCmd   `cmd:"" group:"Service" help:"Show the log of operators' actions."`
	Pricing pricingCmd `cmd:"" group:"Service" help:"Show the prices, or change those with a flag; existing tasks keep theirs."`
	Queue   queueCmd   `cmd:"" group:"Service" help:"Show and control the queue: list, pause, cancel, retry."`
	Migrate migrateCmd `cmd:"" group:"Service" help:"Migrate the database schema."`
	Store   storeCmd   `cmd:"" group:"Service" help:"Show which database the file store belongs to, or assign it to this one (--adopt)."`
	Backup  backupCmd  `cmd:"" group:"Service" help:"Copy the SQLite database while the service runs."`
	Restore restoreCmd `cmd:"" group:"Service" help:"Restore a data folder from a backup."`

	Version versionCmd `cmd:"" hidden:"" help:"Print the version."`
}

const description = `Otograph turns a recording into what was said, by whom, and what else was heard. Offline, on your own machine.

  otograph transcribe meeting.m4a
  otograph transcribe --format srt -o meeting.srt meeting.m4a
  otograph doctor

Exit codes: 0 all went well, 1 something failed, 2 wrong usage, 130 interrupted.`

func main() {
	if os.Getenv(envLoadDrivers) != "" {
		_, _ = whispercpp.Devices() // see driverFault
		return
	}
	lateFirstCollection()
	if err := refuseClosedOutput(); err != nil {
		warn("otograph: %v\n", err)
		os.Exit(exitFailed)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second Ctrl-C ends the program now, in case a stage does not end.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:]))
}

func run(ctx context.Context, args []string) int {
	args, all := helpArgs(args)
	k, err := newParser(ctx, all).Parse(args)
	if unwritten := (*os.PathError)(nil); errors.As(err, &unwritten) && unwritten.Op == "write" { // of --help
		warn("otograph: %v\n", err)
		return exitFailed
	}
	if err != nil {
		warn("otograph: %v%s\nRun `otograph help all` for the commands and `otograph COMMAND --help` for their flags.\n", err, likelyFlag(err))
		return exitUsage
	}
	for _, note := range misspelled(os.Environ()) {
		warn("otograph: %s\n", note)
	}
	printError = nil
	err = k.Run()
	switch err = cmp.Or(err, printError); {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		warn("otograph: interrupted\n")
		return exitInterrupted
	case !errors.Is(err, errReported):
		warn("otograph: %v\n", err)
	}
	if usage := (*usageError)(nil); errors.As(err, &usage) {
		return exitUsage
	}
	if away := (*awayError)(nil); errors.As(err, &away) {
		return service.ExitCode(err)
	}
	return exitFailed
}

// variables are the program's variables of the environment, without OTOGRAPH_; a
// name that contains another one precedes it.
var variables = strings.Fields("database password kernels addr blobs data demo device log mirror models native voices")

// misspelled returns a note for each variable of an environment that is named like
// one of the program's, but not the same. Kubernetes sets OTOGRAPH_PORT_….
func misspelled(environment []string) (notes []string) {
	for _, variable := range environment {
		name, _, _ := strings.Cut(variable, "=")
		short, ours := strings.CutPrefix(name, "OTOGRAPH_")
		question, near, similar := strings.Cut(spec.DidYouMean(short, variables), `"`)
		if ours && similar && !slices.Contains(variables, strings.ToLower(short)) && !strings.HasPrefix(short, "PORT_") {
			notes = append(notes, name+" in the environment has no effect"+question+"OTOGRAPH_"+strings.ToUpper(strings.Trim(near, `"?`))+"?")
		}
	}
	return notes
}

// likelyFlag returns a question for the end of an error about an unknown flag
// for which the parser has no suggestion, such as --language.
func likelyFlag(err error) string {
	e, ok := errors.AsType[*kong.ParseError](err)
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag --")
	if !ok || !unknown || strings.Contains(name, ",") {
		return ""
	}
	var flags []string
	for _, f := range e.Context.Flags() {
		flags = append(flags, f.Name)
	}
	return spec.DidYouMean(name, flags)
}

// newParser returns the parser of command lines, whose help lists all commands
// if all is set.
func newParser(ctx context.Context, all bool) *kong.Kong {
	var c cli
	for _, f := range []*optionFlags{&c.Transcribe.optionFlags, &c.Bench.Run.optionFlags, &c.Bench.Live.optionFlags, &c.Listen.optionFlags} {
		*f = newOptionFlags()
	}
	parser, err := kong.New(&c,
		kong.Name("otograph"),
		kong.Description(description),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Help(helpPrinter(all)),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.KindMapper(reflect.String, kong.MapperFunc(verbatim)),
	)
	if err != nil {
		panic(err) // the command structs themselves are invalid
	}
	return parser
}

// verbatim decodes an argument or flag unchanged: a path need not be UTF-8.
func verbatim(ctx *kong.DecodeContext, target reflect.Value) error {
	token, err := ctx.Scan.PopValue("string")
	if err != nil {
		return err
	}
	text, ok := token.Value.(string)
	if !ok {
		return fmt.Errorf("expected a text, got %v", token.Value)
	}
	target.SetString(text)
	return nil
}

// errReported marks a failure whose message has already been printed.
var errReported = errors.New("failed")

// usageError is an invalid command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

type versionCmd struct{}

func (versionCmd) Run() error {
	say("otograph %s\n", version)
	return nil
}

// startPercent makes the first garbage collection begin at 64 MB: the runtime's
// minimum heap is 4 MB per 100 percent.
const startPercent = 1600

// lateFirstCollection delays the first garbage collection until the heap
// exceeds the memory for opening models, which mostly remains in use; later
// collections are as usual. GOGC in the environment takes precedence.
func lateFirstCollection() {
	if os.Getenv("GOGC") != "" {
		return
	}
	usual := debug.SetGCPercent(startPercent)
	type sentinel struct{ _ *byte } // contains a pointer, so that it is allocated separately
	runtime.AddCleanup(&sentinel{}, func(percent int) { debug.SetGCPercent(percent) }, usual)
}

// firstCommands are the commands that `otograph help` lists.
var firstCommands = []string{"transcribe", "models", "serve", "work", "bench", "align", "voices", "doctor"}

// helpArgs replaces the words of `otograph help`, with a command or without, by
// flags. all reports whether to list all commands.
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

// helpPrinter prints help; without a command, the first or all commands.
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
