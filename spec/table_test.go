package spec

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTable checks that every row is complete: bounds for numbers, a default
// within them, and a sentence of help.
func TestTable(t *testing.T) {
	names := map[string]bool{}
	for _, row := range Table() {
		assert.False(t, names[row.Name], "%s twice", row.Name)
		names[row.Name] = true
		assert.Regexp(t, `^[a-z][a-z_]*$`, row.Name)
		assert.Regexp(t, `^[A-Z].*\.$`, row.Help, row.Name)
		assert.NotEmpty(t, row.Since, row.Name)
		if row.Kind == KindInt || row.Kind == KindFloat {
			require.NotNil(t, row.Min, row.Name)
			require.NotNil(t, row.Max, row.Name)
			assert.Less(t, *row.Min, *row.Max, row.Name)
		}
		if row.Nullable {
			assert.Nil(t, row.Default, row.Name)
		}
	}
	assert.Len(t, names, reflect.TypeFor[Options]().NumField())
	_, err := Options{}.Effective() // the defaults satisfy their own bounds
	require.NoError(t, err)
}

// TestReadRow checks that faulty tags are reported.
func TestReadRow(t *testing.T) {
	const texts = ` since:"1" group:"G" help:"Help."`
	for name, field := range map[string]reflect.StructField{
		"no name":         {Type: reflect.TypeFor[*int](), Tag: texts},
		"no help":         {Type: reflect.TypeFor[*int](), Tag: `json:"a" since:"1" group:"G"`},
		"type":            {Type: reflect.TypeFor[int](), Tag: `json:"a"` + texts},
		"type of pointer": {Type: reflect.TypeFor[*[]int](), Tag: `json:"a"` + texts},
		"minimum":         {Type: reflect.TypeFor[*int](), Tag: `json:"a" min:"x"` + texts},
		"maximum":         {Type: reflect.TypeFor[*int](), Tag: `json:"a" max:"x"` + texts},
		"items":           {Type: reflect.TypeFor[[]string](), Tag: `json:"a" items:"x"` + texts},
		"default":         {Type: reflect.TypeFor[*int](), Tag: `json:"a" default:"1.5"` + texts},
		"list default":    {Type: reflect.TypeFor[[]string](), Tag: `json:"a" default:"b"` + texts},
		"rule":            {Type: reflect.TypeFor[*string](), Tag: `json:"a" rule:"none"` + texts},
	} {
		_, err := readRow(field)
		assert.Error(t, err, name)
	}
}

// TestEffectiveIsACopy checks that a caller who changes its options later does
// not change a run.
func TestEffectiveIsACopy(t *testing.T) {
	o := Options{ASRBeamSize: new(3), Hotwords: []string{"a"}, Optimize: new(true)}
	e, err := o.Effective()
	require.NoError(t, err)
	*o.ASRBeamSize, o.Hotwords[0], *o.Optimize = 9, "b", false
	assert.Equal(t, 3, *e.ASRBeamSize)
	assert.Equal(t, []string{"a"}, e.Hotwords)
	assert.True(t, *e.Optimize)
}
