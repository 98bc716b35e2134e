package whisper

import (
	"fmt"
	"os"
	"sync"
)

// EnvKernels is the environment variable that chooses the instructions by which the
// program's own kernels compute attention and products: "avx2" or "avx512", or "off" to
// leave both to ggml. Without it they are the best that the processor has.
const EnvKernels = "OTOGRAPH_KERNELS"

func kernelSetting() (string, error) {
	switch s := os.Getenv(EnvKernels); s {
	case "", "off", "avx2", "avx512":
		return s, nil
	default:
		return "", fmt.Errorf("whisper: %s: expected off, avx2 or avx512, found %q", EnvKernels, s)
	}
}

// library is the only libwhisper of the process: a second copy could not be
// loaded. Once opened, it stays.
var library struct {
	sync.Mutex
	opened  bool
	kernels string // instructions that the kernels use, "" without kernels
	refused error  // why the kernels that were asked for are not there
	blas    bool   // OpenBLAS is open as well

	devices bool  // the plug-ins for devices have been looked for
	plugin  error // why one that is there may have no devices
}

// Library describes the native library that is in use.
type Library struct {
	// Version is libwhisper's own, such as "1.9.5-dev".
	Version string
	// System is its line of build and processor features.
	System string
	// Kernels names the instructions that the program's own kernels use, "" where ggml
	// computes everything.
	Kernels string
}

// node is a token in the tree of hotwords; see og_node.
type node struct {
	token, first, count int32
	bonus               float32
}

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
