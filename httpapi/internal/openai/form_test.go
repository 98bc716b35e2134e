package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestJoinTexts(t *testing.T) {
	for _, tt := range []struct {
		in   []string
		want string
	}{
		{nil, ""}, {[]string{"a", "", "b"}, "a b"}, {[]string{"你好。", "再见。"}, "你好。再见。"}, {[]string{"你好", "Bob"}, "你好 Bob"}, {[]string{"안녕", "하세요"}, "안녕 하세요"},
	} {
		assert.Equal(t, tt.want, joinTexts(tt.in))
	}
}

// FuzzForm: whatever comes as a form is read or refused.
func FuzzForm(f *testing.F) {
	for _, s := range []string{
		"--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\nRIFF\r\n--x--\r\n",
		"--x\r\nContent-Disposition: form-data; name=\"temperature\"\r\n\r\n0.5\r\n--x--\r\n", "--x--",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := ReadForm(multipart.NewReader(bytes.NewReader(body), "x"), len(body)%2 == 0, func(_ string, r io.Reader) error {
			_, err := io.Copy(io.Discard, r)
			return err
		}, func(r io.Reader) error {
			_, err := io.Copy(io.Discard, r)
			return err
		})
		if err != nil {
			if errors.As(err, new(*ReadError)) {
				return
			}
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Contains(t, []int{400, 404}, e.Status)
			return
		}
		require.NotEmpty(t, got.Filename)
		_, err = json.Marshal(got.Options)
		require.NoError(t, err)
	})
}
