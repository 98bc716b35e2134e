package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/system/host"
	"github.com/otograph/otograph/service"
)

// outboundFlags configures the hosts that the service may contact.
type outboundFlags struct {
	AllowOutbound []string `placeholder:"CIDR|HOST" group:"Network" help:"Non-public addresses that audio URLs and callbacks may use."`
	DenyOutbound  []string `placeholder:"CIDR|HOST" group:"Network" help:"Addresses that they may never use, even if allowed."`
}

// inboundFlags configures which and how many clients the service accepts.
type inboundFlags struct {
	Host                  []string `placeholder:"NAME" group:"Network" help:"Accepted host names of requests; default: any, and on a loopback address only its own."`
	AllowOrigin           []string `placeholder:"ORIGIN" group:"Network" help:"Origins whose pages may call the API from a browser, like https://app.example.com; * allows all."`
	TrustedProxies        []string `placeholder:"CIDR" group:"Network" help:"Proxies whose X-Forwarded-For header is trusted."`
	MaxConnections        int      `default:"4096" placeholder:"N" group:"Network" help:"Maximum number of open connections."`
	ConnectionsPerAddress int      `default:"256" placeholder:"N" group:"Network" help:"Maximum number of connections from one address; trusted proxies are exempt."`
}

// inbound copies the flags into a service's configuration. A service on a
// loopback address without trusted proxies is for local programs: it accepts no
// other host names.
func (f *inboundFlags) inbound(c *service.Config, address string) {
	c.Origins = f.AllowOrigin
	c.TrustedProxies, c.MaxConnections, c.ConnectionsPerAddress = f.TrustedProxies, f.MaxConnections, f.ConnectionsPerAddress
	a, err := net.ResolveTCPAddr("tcp", address)
	if local := err == nil && a.IP.IsLoopback(); len(f.Host) > 0 || local && len(f.TrustedProxies) == 0 {
		c.Hosts = append([]string{}, f.Host...)
	}
}

// frontShare is the share of the memory for a server's heap, above which
// garbage is collected more often. The rest is for the workers and the system.
const frontShare = 0.5

// limitMemory keeps the Go heap within the machine's or the container's memory.
// GOMEMLIMIT, if set, takes precedence.
func limitMemory(log *slog.Logger) {
	limit := int64(frontShare * float64(host.MemoryLimit()))
	if limit == 0 || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetMemoryLimit(limit)
	log.Debug("memory limit", "bytes", limit)
}

// listen listens on HOST:PORT, or on unix:PATH for a socket in the file system.
// It replaces a socket that an earlier process left behind.
func listen(address string) (net.Listener, error) {
	path, ok := strings.CutPrefix(address, "unix:")
	if !ok {
		return net.Listen("tcp", address)
	}
	if info, err := os.Stat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		if other, err := net.Dial("unix", path); err == nil {
			return nil, errors.Join(fmt.Errorf("%s: another process listens there", path), other.Close())
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	return net.Listen("unix", path)
}

type fetchFlags struct {
	Fetches           int           `default:"32" placeholder:"N" group:"Network" help:"Maximum number of parallel audio downloads; 0 leaves downloads to other servers."`
	FetchesPerAccount int           `default:"4" placeholder:"N" group:"Network" help:"Maximum number of parallel audio downloads per account."`
	FetchesPerHost    int           `default:"8" placeholder:"N" group:"Network" help:"Maximum number of parallel audio downloads per host."`
	FetchLimit        time.Duration `default:"1h" group:"Network" help:"Timeout of one download attempt."`
}

// fetches copies the flags into a configuration, where 0 means the default.
func (f *fetchFlags) fetches(c *service.Config) error {
	if f.FetchesPerAccount < 1 || f.FetchesPerHost < 1 || f.FetchLimit <= 0 {
		return &usageError{errors.New("--fetches-per-account, --fetches-per-host and --fetch-limit must be positive")}
	}
	c.Fetches, c.FetchesPerAccount, c.FetchesPerHost, c.FetchLimit = f.Fetches, f.FetchesPerAccount, f.FetchesPerHost, f.FetchLimit
	if f.Fetches == 0 {
		c.Fetches = -1
	}
	return nil
}

// startFlags configures how long serve waits at its start, and how it ends.
type startFlags struct {
	Migrate       string          `enum:"auto,check" default:"auto" group:"Operation" help:"At startup, migrate the database schema (auto) or only verify it (check)."`
	DatabaseWait  time.Duration   `default:"1m" placeholder:"DURATION" group:"Operation" help:"Time to wait at startup for a database that is unreachable."`
	DatabaseLimit time.Duration   `default:"4s" placeholder:"DURATION" group:"Operation" help:"Timeout of one query or transaction, after which the response is 503."`
	DrainDelay    time.Duration   `default:"0s" placeholder:"DURATION" group:"Operation" help:"Time to keep serving at shutdown while /readyz fails, so that load balancers notice."`
	CallbackTail  []time.Duration `placeholder:"DURATION" group:"Operation" help:"Send a callback again these times after its fourth delivery has failed (5m,1h,6h), each after the one before; default: never."`
}

// workStartFlags configures how long work waits at its start.
type workStartFlags struct {
	DatabaseWait  time.Duration `default:"1m" placeholder:"DURATION" group:"Operation" help:"Time to wait at startup for a database that is unreachable or not yet migrated."`
	DatabaseLimit time.Duration `default:"10s" placeholder:"DURATION" group:"Operation" help:"Timeout of one query or transaction."`
}

// notZero refuses 0 for a flag for which service.Config has another default.
func notZero(flag string, d time.Duration) error {
	if d == 0 {
		return fmt.Errorf("--%s is 0s, expected more than 0", flag)
	}
	return nil
}
