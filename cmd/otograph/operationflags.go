package main

import (
	"fmt"
	"time"
)

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
