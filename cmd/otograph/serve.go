package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/otograph/otograph/asr/whisper"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/httpapi"
	"github.com/otograph/otograph/internal/accounts"
	"github.com/otograph/otograph/internal/clientaddr"
	"github.com/otograph/otograph/internal/db"
	"github.com/otograph/otograph/internal/metrics"
	"github.com/otograph/otograph/internal/tasks"
	"github.com/otograph/otograph/internal/tasks/webhook"
	"github.com/otograph/otograph/internal/tasks/worker"
	"github.com/otograph/otograph/web"
)

type serveCmd struct {
	storeFlags
	modelFlags
	servedModelFlags
	startFlags
	outboundFlags
	fetchFlags
	inboundFlags
	cageFlags
	deviceFlag
	Addr           string        `default:"127.0.0.1:8080" placeholder:"HOST:PORT" env:"OTOGRAPH_ADDR" help:"Address to listen on."`
	OpsAddr        string        `placeholder:"HOST:PORT" help:"Separate address for /healthz, /readyz and /metrics; default: the API's address."`
	BasePath       string        `default:"/v1" help:"Prefix of the API's paths."`
	Workers        int           `default:"-1" placeholder:"N" help:"Worker processes; default: one. 0: none here, others run otograph work."`
	WorkerCores    int           `placeholder:"N" help:"Cores per worker; default: all, divided evenly."`
	KeepAudio      time.Duration `placeholder:"DURATION" help:"Keep audio for this time after its task ends; default: delete it immediately."`
	OptimizedWords bool          `help:"Also include words with their times in the results of the optimized tier, which the specification limits to segments."`
	UnknownLength  time.Duration `default:"1m" placeholder:"DURATION" help:"Audio length to hold the price for when the length is unknown at submission: URLs, batches, files that do not state it."`
	KeepTasks      time.Duration `placeholder:"DURATION" help:"Remove tasks and their results this time after they end (at least 24h); default: never."`
	FrontEnds      int           `default:"1" help:"Number of servers behind one load balancer; each allows its share of the request rates."`
	RateStore      string        `enum:"memory,db" default:"memory" help:"Where to keep the request rates: memory or db."`
	Grace          time.Duration `default:"30s" help:"Time that requests and running tasks may take to finish at shutdown."`
	LogLevel       slog.Level    `default:"info" env:"OTOGRAPH_LOG" help:"debug, info, warn or error."`
}

func (c *serveCmd) Run(ctx context.Context) error {
	log := newLog(c.LogLevel)
	limitMemory(log)
	if err := c.checkTasks(); err != nil {
		return err
	}
	if err := c.check(log); err != nil {
		return err
	}
	dir, err := c.folder()
	if err != nil {
		return err
	}
	if c.Database == "" { // SQLite and its folder belong to one server
		lock, err := db.LockFolder(dir)
		if err != nil {
			return fmt.Errorf("%s: %w: does another `otograph serve` run on it?", dir, err)
		}
		defer lock.Close()
	}
	set, err := c.modelFlags.open() // the workers use it; a wrong one must show now
	if err != nil {
		return err
	}
	for _, m := range set.Models {
		if m.Demo {
			log.Warn("using a demo model, which knows only synthetic voices and a small vocabulary", "role", m.Role, "model", m.Name)
		}
	}
	if err := c.checkModels(set, log); err != nil {
		return err
	}
	var s *stores
	counts := metrics.New(func(ctx context.Context) (tasks.Stats, error) { return s.tasks.Stats(ctx) })
	counts.Build(version)
	counts.Cage(cageParts(audio.Sandbox()))
	s, err = c.storeFlags.open(ctx, opening{
		log: log, keepAudio: c.KeepAudio, unknownLength: c.UnknownLength, keepTasks: c.KeepTasks, prober: audioProber{audio.Options{}}, migrate: c.Migrate == "auto", wait: c.DatabaseWait, timeout: c.DatabaseLimit, files: true, metrics: counts,
	})
	if err != nil {
		return err
	}
	defer s.Close()
	counts.ReadFiles(filepath.Join(s.folder, metricsFolder))

	listener, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return fmt.Errorf("--addr: %w", err)
	}
	defer listener.Close()
	c.Addr = listener.Addr().String() // with the port that was given for :0
	key, err := s.accounts.SigningKey(ctx)
	if err != nil {
		return err
	}
	server, err := c.server(s, key, counts, log)
	if err != nil {
		return err
	}
	if err := c.firstStart(ctx, s, log); err != nil {
		return err
	}
	return c.serve(ctx, s, listener, server, key, counts, log)
}

// checkTasks checks what the flags say of tasks.
func (c *serveCmd) checkTasks() error {
	const shortest = 24 * time.Hour // an answer to an idempotency key must not outlive its task
	if c.KeepTasks != 0 && c.KeepTasks < shortest {
		return &usageError{fmt.Errorf("--keep-tasks is %s, expected at least %s", c.KeepTasks, shortest)}
	}
	if c.UnknownLength <= 0 || c.UnknownLength > audio.DefaultMaxDuration {
		return &usageError{fmt.Errorf("--unknown-length is %s, expected more than 0 and at most %s", c.UnknownLength, audio.DefaultMaxDuration)}
	}
	return nil
}

// metricsFolder is where in the data folder the workers leave their metrics for
// the server's page.
const metricsFolder = "metrics"

// server makes what answers requests.
func (c *serveCmd) server(s *stores, key []byte, counts *metrics.Metrics, log *slog.Logger) (*httpapi.Server, error) {
	checker, err := c.client(0)
	if err != nil {
		return nil, err
	}
	proxies, err := clientaddr.ParseProxies(c.TrustedProxies)
	if err != nil {
		return nil, &usageError{err}
	}
	var rate httpapi.Limiter = accounts.NewBuckets(c.FrontEnds)
	if c.RateStore == "db" {
		rate = s.accounts
	}
	page, err := web.Handler(c.BasePath)
	if err != nil {
		return nil, err
	}
	ready := newReadiness(map[string]func(context.Context) error{"database": s.db.Ping, "file store": s.blobs.Check})
	return httpapi.New(httpapi.Config{
		Tasks: s.tasks, Accounts: s.accounts, Money: s.billing, Audit: s.audit, TokenKey: key, CheckURL: checker.CheckURL,
		Rate: rate, BasePath: c.BasePath, TrustedProxies: proxies, Ready: ready.check,
		Metrics: counts, Web: page, Ops: c.OpsAddr == "", Logger: log,
	})
}

// serve runs the server and what belongs to it until ctx ends, then drains.
func (c *serveCmd) serve(ctx context.Context, s *stores, l net.Listener, api *httpapi.Server, key []byte, counts *metrics.Metrics, log *slog.Logger) error {
	g, ctx := errgroup.WithContext(ctx)
	closing := c.leave(ctx, api)
	listen := func(l net.Listener, h http.Handler) {
		server := httpapi.HTTPServer(h, log)
		g.Go(func() error {
			if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
		g.Go(func() error {
			<-closing
			grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Grace)
			defer cancel()
			if err := server.Shutdown(grace); err != nil {
				return server.Close()
			}
			return nil
		})
	}
	l, err := c.limit(l, counts, log)
	if err != nil {
		return err
	}
	listen(l, c.checkHost(c.Addr, api.Handler()))
	if c.OpsAddr != "" {
		own, err := net.Listen("tcp", c.OpsAddr)
		if err != nil {
			return fmt.Errorf("--ops-addr: %w", err)
		}
		listen(own, api.OpsHandler())
	}
	callbacks, err := c.client(0)
	if err != nil {
		return err
	}
	defer callbacks.Close()
	notifier, err := webhook.NewNotifier(s.tasks.Outbox(), s.tasks.Queue(), webhook.NotifierConfig{HTTP: counts.MeasureCallbacks(callbacks), Addresses: callbacks.Addresses, Version: version})
	if err != nil {
		return err
	}
	g.Go(func() error { return followKey(ctx, s, api, key, log) })
	g.Go(func() error { return ignoreShutdown(ctx, notifier.Run(ctx)) })
	maintainer := tasks.NewMaintainer(s.tasks, tasks.MaintainerConfig{})
	counts.Workers(maintainer.Workers)
	counts.Upkeep(s.tasks.Upkeep)
	g.Go(func() error { return ignoreShutdown(ctx, maintainer.Run(ctx)) })
	if c.Fetches > 0 {
		sources, err := c.client(worker.MaxRedirects)
		if err != nil {
			return err
		}
		defer sources.Close()
		fetcher, err := c.fetcher(s.tasks, sources, counts, c.Grace)
		if err != nil {
			return err
		}
		g.Go(func() error { return ignoreShutdown(ctx, fetcher.Run(ctx)) })
	}
	if c.Workers != 0 {
		command, err := c.workCommand(c.Device)
		if err != nil {
			return err
		}
		var careful []string // a driver's thread may take its process along
		if c.Device != whisper.DeviceCPU {
			if careful, err = c.workCommand(whisper.DeviceCPU); err != nil {
				return err
			}
		}
		supervisor, err := worker.NewSupervisor(s.tasks, worker.SupervisorConfig{
			Command: command, Careful: careful, Env: c.workEnvironment(), N: c.workers(), Stdout: os.Stderr, Stderr: os.Stderr, Version: version, Grace: c.Grace,
		})
		if err != nil {
			return err
		}
		counts.Restarts(supervisor.Restarts)
		g.Go(func() error { return ignoreShutdown(ctx, supervisor.Run(ctx)) })
	}
	log.Info("listening", "url", c.url(), "workers", c.workers(), "data", s.folder, "database", s.db.Source())
	return g.Wait()
}

// ignoreShutdown drops the context.Canceled that our own shutdown causes.
func ignoreShutdown(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
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

// workCommand is the command line of a worker process: the same state and models.
func (c *serveCmd) workCommand(on device) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := c.folder()
	if err != nil {
		return nil, err
	}
	cores := c.WorkerCores
	if cores <= 0 {
		cores = max(1, runtime.GOMAXPROCS(0)/max(1, c.workers()))
	}
	command := []string{
		self, "work", "--data=" + dir, "--cores=" + strconv.Itoa(cores), "--nice=" + strconv.Itoa(workerNice),
		"--keep-audio=" + c.KeepAudio.String(), "--log-level=" + c.LogLevel.String(),
		"--device=" + string(on),
	}
	command = append(command, c.modelFlags.args()...)
	if c.RequireCage {
		command = append(command, "--require-cage")
	}
	if c.AnyEmbedding {
		command = append(command, "--any-embedding")
	}
	if c.OptimizedLanguages {
		command = append(command, "--optimized-languages")
	}
	if c.OptimizedWords {
		command = append(command, "--optimized-words")
	}
	return command, nil
}

// workEnvironment is what the workers' command line must not show: connection
// strings may hold passwords, and every user of the machine sees command lines.
func (c *serveCmd) workEnvironment() []string {
	return []string{"OTOGRAPH_DATABASE=" + c.Database, "OTOGRAPH_BLOBS=" + c.Blobs}
}

// leave returns what is closed when the listeners are to close: after ctx has
// ended and balancers have had the time to notice that the server is not ready.
func (c *serveCmd) leave(ctx context.Context, api *httpapi.Server) <-chan struct{} {
	closing := make(chan struct{})
	go func() {
		defer close(closing)
		<-ctx.Done()
		api.Leave()
		time.Sleep(c.DrainDelay)
		api.Drain() // no request waits any longer
	}()
	return closing
}

// url is where a person reaches the API.
func (c *serveCmd) url() string {
	host, port, err := net.SplitHostPort(c.Addr)
	if err != nil || host == "" || host == "::" || host == "0.0.0.0" {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port) + c.BasePath
}
