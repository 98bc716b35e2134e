package whispercpp

import "sync"

// library is the only libwhisper, a second one can't load; it stays open.
var library struct {
	sync.Mutex
	opened bool

	devices bool  // device plug-ins have been searched for
	plugin  error // why an installed plug-in may have no devices
}
