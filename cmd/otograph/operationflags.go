package main

import "time"

// startFlags configure what serve waits for at its start, and how it ends.
type startFlags struct {
	Migrate       string        `enum:"auto,check" default:"auto" group:"Operation" help:"At the start, bring the database's tables up to date (auto), or only check that they are (check)."`
	DatabaseWait  time.Duration `default:"1m" placeholder:"DURATION" group:"Operation" help:"How long to wait at the start for a database that cannot be reached yet."`
	DatabaseLimit time.Duration `default:"4s" placeholder:"DURATION" group:"Operation" help:"Longest time of one query or transaction; then the answer is 503."`
	DrainDelay    time.Duration `default:"0s" placeholder:"DURATION" group:"Operation" help:"When asked to end, go on serving this long while /readyz fails: the time that balancers need to notice."`
}

// workStartFlags configure what work waits for at its start.
type workStartFlags struct {
	DatabaseWait  time.Duration `default:"1m" placeholder:"DURATION" group:"Operation" help:"How long to wait at the start for a database that cannot be reached or is not migrated yet."`
	DatabaseLimit time.Duration `default:"10s" placeholder:"DURATION" group:"Operation" help:"Longest time of one query or transaction."`
}
