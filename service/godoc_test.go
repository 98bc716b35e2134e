package service

import (
	"os"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestGoDocShowsAliasedTypes: go doc shows an alias without its methods and
// fields, so the comments list them.
func TestGoDocShowsAliasedTypes(t *testing.T) {
	source, err := os.ReadFile("config.go")
	require.NoError(t, err)
	for _, kind := range []reflect.Type{reflect.TypeFor[Engine](), reflect.TypeFor[Checkpoints](), reflect.TypeFor[Prober](), reflect.TypeFor[Job](), reflect.TypeFor[Outcome]()} {
		var names []string
		if kind.Kind() == reflect.Interface {
			for i := range kind.NumMethod() {
				names = append(names, kind.Method(i).Name+`\(`)
			}
		} else {
			for i := range kind.NumField() {
				names = append(names, kind.Field(i).Name+" ")
			}
		}
		for _, name := range names {
			assert.Regexp(t, `\n\t//\t`+name, string(source), kind.Name())
		}
	}
}
