package whisper

import "sync"

// library is the only libwhisper of the process: a second copy could not be
// loaded. Once opened, it stays.
var library struct {
	sync.Mutex
	opened bool

	devices bool  // the plug-ins for devices have been looked for
	plugin  error // why one that is there may have no devices
}

// Library describes the native library that is in use.
type Library struct {
	// Version is libwhisper's own, such as "1.9.5-dev".
	Version string
	// System is its line of build and processor features.
	System string
}
