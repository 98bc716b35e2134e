package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFromQ6K uses the type of the demonstration recognizer's matrices.
func TestFromQ6K(t *testing.T) {
	block := make([]byte, 210)
	for i := range 208 {
		block[i] = byte(37 * i)
	}
	block[208], block[209] = 0, 0x3c // 1
	got := fromQ6K(nil, block)
	require.Len(t, got, 256)
	six := func(low, high byte) float32 { return float32(int(low|high<<4) - 32) }
	assert.Equal(t, float32(int8(block[192]))*six(block[0]&15, block[128]&3), got[0])
	assert.Equal(t, float32(int8(block[193]))*six(block[16]&15, block[144]&3), got[16])
	assert.Equal(t, float32(int8(block[194]))*six(block[32]&15, block[128]>>2&3), got[32])
	assert.Equal(t, float32(int8(block[196]))*six(block[0]>>4, block[128]>>4&3), got[64])
	assert.Equal(t, float32(int8(block[207]))*six(block[127]>>4, block[191]>>6), got[255])
}
