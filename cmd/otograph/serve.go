package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/engine/recognizers"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/service"
	"github.com/otograph/otograph/service/engine"
	"github.com/otograph/otograph/web"
)

type serveCmd struct {
	Addr          string        `default:"127.0.0.1:8080" placeholder:"HOST:PORT|unix:PATH" env:"OTOGRAPH_ADDR" help:"Address to listen on."`
	Workers       int           `default:"-1" placeholder:"N" help:"Worker processes; default: one. 0: none here, others run otograph work."`
	WorkerCores   int           `placeholder:"N" help:"Cores per worker; default: all, divided evenly."`
	Currency      string        `placeholder:"NAME" help:"Currency of the prices (EUR, credits), shown next to amounts in the page; with prices of 0 the page shows neither prices nor balances."`
	KeepTasks     time.Duration `placeholder:"DURATION" help:"Remove tasks and their results this time after they end (at least 24h); default: never."`
	UnknownLength time.Duration `default:"1m" placeholder:"DURATION" help:"Audio length to hold the price for when the length is unknown at submission: URLs, batches, files that do not state it."`
	taskFlags
	deviceFlag
	cageFlags

	storeFlags
	modelFlags
	servedModelFlags
	choiceFlags

	ModelAlias   map[string]string `placeholder:"NAME=MODEL" group:"Models" help:"Further name of a model on the endpoints of OpenAI's interface; may be given several times."`
	StrictModels bool              `group:"Models" help:"Refuse sizes of Whisper that are not in the model folder on the endpoints of OpenAI's interface; by default they are names of the standard tier."`

	OpsAddr   string        `placeholder:"HOST:PORT" group:"Operation" help:"Separate address for /healthz, /readyz and /metrics; default: the API's address."`
	BasePath  string        `default:"/v1" group:"Operation" help:"Prefix of the API's paths."`
	Grace     time.Duration `default:"30s" group:"Operation" help:"Time that requests and running tasks may take to finish at shutdown."`
	LogLevel  slog.Level    `default:"info" env:"OTOGRAPH_LOG" group:"Operation" help:"debug, info, warn or error."`
	FrontEnds int           `default:"1" group:"Operation" help:"Number of servers behind one load balancer; each allows its share of the request rates."`
	RateStore string        `enum:"memory,db" default:"memory" group:"Operation" help:"Where to keep the request rates: memory or db."`

	liveFlags
	startFlags
	outboundFlags
	fetchFlags
	inboundFlags
}

// Run serves until it is stopped.
func (c *serveCmd) Run(ctx context.Context) error {
	log := newLog(c.LogLevel)
	if os.Getenv("GOGC") == "" { // startPercent suits the opening of models, and a server opens none
		debug.SetGCPercent(100)
	}
	limitMemory(log)
	if err := c.check(log); err != nil {
		return err
	}
	dir, err := c.folder()
	if err != nil {
		return err
	}
	set, err := c.openRecognizer() // the workers use the set; report an invalid one now
	if err != nil {
		return err
	}
	if c.Demo {
		log.Warn("the demo models know only synthetic voices and a small vocabulary")
	}
	if err := c.checkModels(set, log); err != nil {
		return err
	}
	config, err := c.config(dir, log)
	if err != nil {
		return err
	}
	defer c.removeSocket(config.Live.Socket)
	s, err := service.Open(ctx, config)
	if err != nil {
		return flagError(err)
	}
	defer s.Close()
	listener, err := listen(c.Addr)
	if err != nil {
		return fmt.Errorf("--addr: %w", err)
	}
	defer listener.Close()
	if listener.Addr().Network() != "unix" {
		c.Addr = listener.Addr().String() // includes the port chosen for :0
	}
	var ops net.Listener
	if c.OpsAddr != "" {
		if ops, err = net.Listen("tcp", c.OpsAddr); err != nil {
			return fmt.Errorf("--ops-addr: %w", err)
		}
		defer ops.Close()
	}
	if err := c.firstStart(ctx, s, dir, log); err != nil {
		return err
	}
	c.showPage()
	log.Info("listening", "url", c.url(), "workers", c.workers(), "data", dir, "database", db.Redact(cmp.Or(c.Database, filepath.Join(dir, db.DataFile))))
	return s.Serve(ctx, listener, ops)
}

func (c *serveCmd) config(dir string, log *slog.Logger) (service.Config, error) {
	if err := cmp.Or(notZero("unknown-length", c.UnknownLength), notZero("grace", c.Grace), notZero("stall-timeout", c.StallTimeout)); err != nil {
		return service.Config{}, &usageError{err}
	}
	page, err := web.Handler(c.BasePath, c.Currency)
	if err != nil {
		return service.Config{}, err
	}
	config := service.Config{
		Folder: dir, Database: c.Database, Files: c.Blobs, KeepSchema: c.Migrate != "auto", DatabaseWait: c.DatabaseWait, DatabaseLimit: c.DatabaseLimit,
		Prober: engine.Recordings{}, KeepAudio: c.KeepAudio, KeepTasks: c.KeepTasks, UnknownLength: c.UnknownLength,
		BasePath: c.BasePath, ModelAliases: c.ModelAlias, StrictModels: c.StrictModels, Page: page, Ops: c.OpsAddr == "", FrontEnds: c.FrontEnds, SharedRates: c.RateStore == "db",
		AllowOutbound: c.AllowOutbound, DenyOutbound: c.DenyOutbound,
		DrainDelay: c.DrainDelay, StallTimeout: c.StallTimeout, Grace: c.Grace, CallbackTail: c.CallbackTail, Version: version, Logger: log,
	}
	c.inbound(&config, c.Addr)
	if err := c.fetches(&config); err != nil {
		return config, err
	}
	if config.Workers, err = c.workerProcesses(dir); err != nil {
		return config, err
	}
	config.Live, err = c.liveSessions(dir, config.Workers)
	return config, err
}

func (c *serveCmd) workerProcesses(dir string) (w service.Workers, err error) {
	if w.N = c.workers(); w.N == 0 {
		return w, nil
	}
	// Command lines must not show connection strings, which may contain
	// passwords, because every user of the machine can read them.
	w.Env = []string{"OTOGRAPH_DATABASE=" + c.Database, "OTOGRAPH_BLOBS=" + c.Blobs}
	if w.Command, err = c.workCommand(dir, c.Device); err != nil {
		return w, err
	}
	if c.Device != recognizers.DeviceCPU { // a crash in a driver's thread may end its process
		w.Fallback, err = c.workCommand(dir, recognizers.DeviceCPU)
	}
	return w, err
}

func (c *serveCmd) workers() int {
	if c.Workers < 0 {
		return 1
	}
	return c.Workers
}

// workerNice is the niceness of workers, so that requests have priority over
// transcription, which uses all of its cores for minutes.
const workerNice = 5

// workCommand returns a worker's command line with the same state and models.
func (c *serveCmd) workCommand(dir string, on device) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cores := c.WorkerCores
	if cores <= 0 {
		cores = max(1, runtime.GOMAXPROCS(0)/max(1, c.workers()))
	}
	command := []string{
		self, "work", "--data=" + dir, "--cores=" + strconv.Itoa(cores), "--nice=" + strconv.Itoa(workerNice),
		"--log-level=" + c.LogLevel.String(), "--device=" + string(on),
	}
	for _, flags := range []any{c.modelFlags, c.servedModelFlags, c.cageFlags, c.taskFlags} {
		command = append(command, flagArgs(flags)...)
	}
	memory := fmt.Sprintf("--model-memory=%d", max(1, c.bound(c.workers())>>20))
	return append(command, "--keep-models="+c.KeepModels.String(), memory), nil
}

// url returns the API's address for users.
func (c *serveCmd) url() string {
	if strings.HasPrefix(c.Addr, "unix:") {
		return c.Addr
	}
	host, port, err := net.SplitHostPort(c.Addr)
	if err != nil || host == "" || host == "::" || host == "0.0.0.0" {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port) + c.BasePath
}
