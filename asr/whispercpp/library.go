package whispercpp

import "sync"

// library is the only libwhisper, a second one can't load; it stays open.
var library struct {
	sync.Mutex
	opened bool

	devices bool  // device plug-ins have been searched for
	plugin  error // why an installed plug-in may have no devices
}

// Library describes the loaded native library.
type Library struct {
	// Version is libwhisper's version, such as "1.9.5-dev".
	Version string
	// System is libwhisper's line of build and CPU features.
	System string
}
