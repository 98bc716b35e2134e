package whispercpp

import "sync"

// library is the process's libwhisper. A second one can't be loaded.
var library struct {
	sync.Mutex
	opened bool

	devices bool  // device plug-ins have been searched for
	plugin  error // why an installed plug-in may have no devices
}
