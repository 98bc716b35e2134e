//go:build !purego

package dsp

import "testing"

// TestWithoutVectors repeats the comparisons of the kernels with the code for
// processors without AVX2.
func TestWithoutVectors(t *testing.T) {
	defer func(before bool) { wide = before }(wide)
	wide = false
	t.Run("transform", TestTransformAgreesWithGonum)
	t.Run("filter banks", TestFbankMatchesReferences)
}
