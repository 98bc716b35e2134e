package whispernet

// Window is a window of sound that was encoded: the keys and values that the decoder
// attends to, and the decoder's own cache of at most rows columns by position. One
// goroutine at a time uses it.
type Window struct{ rows int }

// Encode computes the encoder for at most 30 s of sound (16 kHz, mono), padded with
// silence, with the given number of threads. rows is the most columns (beams or
// samples) that the window will be decoded with. stop ends it early, with ErrStopped.
func (m *Model) Encode(samples []float32, rows, threads int, stop *Stop) (*Window, error) {
	return nil, nil
}

// Free gives the window's memory back.
func (w *Window) Free() {}

// Forget empties the decoder's cache, so that another text can begin.
func (w *Window) Forget() {}
