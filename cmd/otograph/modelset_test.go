package main

import (
	"reflect"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestModelFlagsReachWorkers sets every flag and checks that a worker with the
// resulting command line has the same values.
func TestModelFlagsReachWorkers(t *testing.T) {
	var given modelFlags
	v := reflect.ValueOf(&given).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString("file " + v.Type().Field(i).Name)
		case reflect.Bool:
			f.SetBool(true)
		default:
			t.Fatalf("%s: a flag of type %s is not passed on", v.Type().Field(i).Name, f.Type())
		}
	}
	var worker struct{ modelFlags }
	parser, err := kong.New(&worker, kong.Name("work"))
	require.NoError(t, err)
	_, err = parser.Parse(given.args())
	require.NoError(t, err)
	assert.Equal(t, given, worker.modelFlags)
	assert.Empty(t, (&modelFlags{}).args())
}

// TestRefundNote checks that a note is stored unchanged.
func TestRefundNote(t *testing.T) {
	for want, args := range map[string][]string{
		"refund":              {"refund", "customer", "1"},
		"credit card dispute": {"refund", "customer", "1", "--note", "credit card dispute"},
	} {
		var c accountCmd
		parser, err := kong.New(&c, kong.Name("account"))
		require.NoError(t, err)
		_, err = parser.Parse(args)
		require.NoError(t, err)
		assert.Equal(t, want, c.Refund.Note)
	}
}
