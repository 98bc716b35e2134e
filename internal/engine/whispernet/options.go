package whispernet

// Options configures the computation of a model.
type Options struct {
	// Kernels is the name of the instruction set: "avx512", "avxvnni", "avx2",
	// "neon" or "generic"; "" selects the best one that the CPU supports.
	Kernels string
	// Threads is the number of goroutines that load the model; 0 is one.
	Threads int
	// Thin makes Encode compute a quarter of the silence after a short sound,
	// with fourfold weight: nearly the same text in less time.
	Thin bool
}
