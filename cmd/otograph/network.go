package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"strings"

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

// frontShare is the share of the memory that a server may use before its
// garbage collector works harder. The rest is for the workers and the system.
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
