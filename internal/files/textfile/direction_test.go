package textfile

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRightToLeftText(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "12, ?": false, "Hello שלום": false, "NASA הודיעה היום": true, "NASA אמרה.": false, "¿Sí? שלום!": true, "אנחנו כאן, NASA.": true, "2024 هذا تقرير": true, "«سلام»": true, "اردو": true, "你好": false,
	} {
		assert.Equal(t, want, RightToLeft(text), text)
		assert.Equal(t, want, Isolate(text) == "\u2067"+text+"\u2069", text)
		assert.Equal(t, !want, Isolate(text) == text, text)
	}
}
