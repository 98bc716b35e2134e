package main

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/otograph/otograph/internal/clientaddr"
	"github.com/otograph/otograph/internal/connlimit"
	"github.com/otograph/otograph/internal/metrics"
	"github.com/otograph/otograph/internal/safehttp"
)

// outboundFlags say whom the service may ask.
type outboundFlags struct {
	AllowOutbound []string `placeholder:"CIDR|HOST" group:"Network" help:"Non-public addresses that audio URLs and callbacks may use."`
	DenyOutbound  []string `placeholder:"CIDR|HOST" group:"Network" help:"Addresses that they may never use, even if allowed."`
}

// client returns a client that connects only to permitted addresses.
func (f *outboundFlags) client(redirects int) (*safehttp.Client, error) {
	c, err := safehttp.New(safehttp.Config{Allow: f.AllowOutbound, Deny: f.DenyOutbound, MaxRedirects: redirects, UserAgent: "otograph/" + version})
	if err != nil {
		return nil, &usageError{err}
	}
	return c, nil
}

// inboundFlags say whom the service answers, and how many of them.
type inboundFlags struct {
	Host                  []string `placeholder:"NAME" group:"Network" help:"Accepted host names of requests; default: any, and on a loopback address only its own."`
	TrustedProxies        []string `placeholder:"CIDR" group:"Network" help:"Proxies whose X-Forwarded-For header is trusted."`
	MaxConnections        int      `default:"4096" placeholder:"N" group:"Network" help:"Maximum number of open connections."`
	ConnectionsPerAddress int      `default:"256" placeholder:"N" group:"Network" help:"Maximum number of connections from one address; trusted proxies are exempt."`
}

// limit returns a listener with a maximum number of connections.
func (f *inboundFlags) limit(l net.Listener, counts *metrics.Metrics, log *slog.Logger) (net.Listener, error) {
	proxies, err := clientaddr.ParseProxies(f.TrustedProxies)
	if err != nil {
		return nil, &usageError{err}
	}
	refused := counts.RefusedConnections()
	return connlimit.New(l, connlimit.Limits{
		Total: f.MaxConnections, PerAddress: f.ConnectionsPerAddress, Proxies: proxies,
		Refused: func(address string) {
			refused()
			log.Debug("connection refused: too many open connections", "from", address)
		},
	}), nil
}

// checkHost refuses requests that ask for a name that is not this service's. On
// a loopback address only local programs should get through, so a browser must
// not be led there by a stranger's name (DNS rebinding).
func (f *inboundFlags) checkHost(address string, h http.Handler) http.Handler {
	host, _, _ := net.SplitHostPort(address)
	a, _ := netip.ParseAddr(host)
	if len(f.Host) == 0 && (!a.IsLoopback() || len(f.TrustedProxies) > 0) {
		return h
	}
	names := make([]string, len(f.Host))
	for i, n := range f.Host {
		names[i] = strings.ToLower(strings.TrimSuffix(n, "."))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.Host
		if h, _, err := net.SplitHostPort(name); err == nil {
			name = h
		}
		name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
		a, _ := netip.ParseAddr(name)
		if !slices.Contains(names, name) && !a.IsLoopback() && name != "localhost" && !strings.HasSuffix(name, ".localhost") {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusMisdirectedRequest)
			_, _ = fmt.Fprintln(w, `{"error":"this host name is not served; the operator can add it with --host","error_code":"forbidden"}`)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// frontShare is the part of the memory that a server may take before its
// garbage collector works harder. The rest is for the workers and the system.
const frontShare = 0.5

// limitMemory keeps the garbage collector within the machine's or the
// container's memory. GOMEMLIMIT, where it is set, counts instead.
func limitMemory(log *slog.Logger) {
	limit, err := memlimit.Set(memlimit.WithRatio(frontShare), memlimit.WithProvider(memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)))
	if err != nil {
		log.Debug("no memory limit was set", "error", err)
		return
	}
	log.Debug("memory limit", "bytes", limit)
}
