package whisper

import "sync"

// library is the one libwhisper of the process: a second copy could not be loaded
// beside it. Once opened it stays.
var library struct {
	sync.Mutex
	opened bool
	blas   bool // OpenBLAS is open as well

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

// node is a token in the tree of hotwords; see og_node.
type node struct{ token, first, count int32 }

// token is a decoded token. dtw is in 10 ms from the beginning of the
// window, negative when unknown.
type token struct {
	id      int32
	p, logp float32
	dtw     int64
}

// request is what one decode wants; see og_request.
type request struct {
	language                     string
	prompt                       []int32
	threads, beam, bestOf        int
	audioContext                 int
	translate                    bool
	temperature, temperatureStep float64
}
