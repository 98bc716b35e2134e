package jsonstream

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// person reads an object of every kind of value.
func person(r io.Reader) (name string, tags []string, picture []byte, err error) {
	err = ReadObject(r, 100, Fields{
		"name": func(v *Value) error { return v.Text(&name, 10) },
		"tags": func(v *Value) error { return v.Texts(&tags, 2, 3) },
		"picture": func(v *Value) error {
			from, err := v.Base64()
			if err != nil {
				return err
			}
			picture, err = io.ReadAll(from)
			return err
		},
	})
	return
}

func TestReadObject(t *testing.T) {
	body := `{"tags":["a","bc"], "picture":"aGV\u0073` + "\n" + `bG8=" ,"name":"Zo\u00eb"}`
	name, tags, picture, err := person(iotest.OneByteReader(strings.NewReader(body)))
	require.NoError(t, err)
	assert.Equal(t, "Zoë", name)
	assert.Equal(t, []string{"a", "bc"}, tags)
	assert.Equal(t, "hello", string(picture))
}

func TestReadObjectNamesTheField(t *testing.T) {
	for body, want := range map[string]string{
		`{"nam":"x"}`:               `nam: there is no such field; did you mean "name"?`,
		`{"name":1}`:                "name: must be a string, not 1",
		`{"name":"12345678901"}`:    "name: has 11 characters, at most 10 are allowed",
		`{"tags":["a","b","c"]}`:    "tags: has 3 entries, at most 2 are allowed",
		`{"tags":["abcd"]}`:         "tags[0]: has 4 characters, at most 3 are allowed",
		`{"picture":"a!"}`:          "picture: not valid Base64 (standard or URL-safe alphabet, or a data URL)",
		`{"name":"x","name":"y"}`:   "name: is given twice",
		`{"name":"x"} `:             "",
		`{"name":"x"} {`:            "the body is not valid JSON: unexpected text after the object",
		`{"tags":[` + long + `"]}`:  "tags: the value is longer than 100 bytes",
		`{"name":` + long + `"}`:    "name: the value is longer than 100 bytes",
		`{"name":"x" "tags":["a"]}`: "the body is not valid JSON: expected ',' or '}' after a value",
	} {
		_, _, _, err := person(strings.NewReader(body))
		if want == "" {
			assert.NoError(t, err, body)
			continue
		}
		var wrong *Error
		require.ErrorAs(t, err, &wrong, body)
		assert.Equal(t, want, wrong.Error(), body)
	}
}

var long = `"` + strings.Repeat("x", 200)

// TestReadErrorKeepsItsCause checks that a stream that fails at any position is
// distinguished from an invalid object.
func TestReadErrorKeepsItsCause(t *testing.T) {
	const body = `{"tags":["a","bc"],"picture":"aGV\u0073bG8=","name":"Zo\u00eb"}`
	broken := errors.New("connection reset")
	for n := range len(body) {
		_, _, _, err := person(io.MultiReader(strings.NewReader(body[:n]), iotest.ErrReader(broken)))
		var read *ReadError
		require.ErrorAs(t, err, &read, "%d", n)
		require.ErrorIs(t, err, broken, "%d", n)
	}
}
