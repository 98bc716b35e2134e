package whispernet

// Column is one token of a decoder pass.
type Column struct {
	Window *Window
	// Row is the cache row of the column's keys and values at its position;
	// columns with the same window and position have different rows.
	Row int
	// Position is the index of the token in its text.
	Position int
	Token    int32
	// Path holds, for each position before Position, the row of the column's
	// text: beams with a common past share its rows, so that nothing is ever
	// copied. nil is row 0 everywhere.
	Path []uint8
	// Logits receives the logits of the next token, one per token of the
	// vocabulary; nil skips them (for all but the last token of a prompt).
	Logits []float32
}
