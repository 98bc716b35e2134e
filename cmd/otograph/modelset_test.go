package main

import (
	"reflect"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/models"
)

// TestWorkersGetServesFlags sets every flag and checks that a worker with the
// resulting command line has the same values.
func TestWorkersGetServesFlags(t *testing.T) {
	type passedOn struct {
		modelFlags
		servedModelFlags
		cageFlags
		taskFlags
	}
	var given passedOn
	for _, flags := range []any{&given.modelFlags, &given.servedModelFlags, &given.cageFlags, &given.taskFlags} {
		v := reflect.ValueOf(flags).Elem()
		for i := range v.NumField() {
			switch f := v.Field(i); f.Kind() {
			case reflect.String:
				f.SetString("file " + v.Type().Field(i).Name)
			case reflect.Bool:
				f.SetBool(true)
			case reflect.Int64:
				f.SetInt(int64(90 * time.Minute))
			default:
				t.Fatalf("%s: a flag of type %s is not passed on", v.Type().Field(i).Name, f.Type())
			}
		}
	}
	c := serveCmd{modelFlags: given.modelFlags, servedModelFlags: given.servedModelFlags, cageFlags: given.cageFlags, taskFlags: given.taskFlags}
	command, err := c.workCommand(t.TempDir(), "cpu")
	require.NoError(t, err)
	var cli struct {
		Work workCmd `cmd:""`
	}
	parser, err := kong.New(&cli)
	require.NoError(t, err)
	_, err = parser.Parse(command[1:])
	require.NoError(t, err)
	worker := cli.Work
	assert.Equal(t, given, passedOn{worker.modelFlags, worker.servedModelFlags, worker.cageFlags, worker.taskFlags})
	assert.Empty(t, flagArgs(modelFlags{}))
}

func TestLocationsOfModelFiles(t *testing.T) {
	set := &models.Set{Models: []models.Model{
		{Role: models.RoleTagger, Name: "demo-tagger", Demo: true, Files: []models.File{{Part: models.PartModel, Size: 7}}},
		{Role: models.RoleVAD, Name: "mine", Files: []models.File{{Part: models.PartModel, Path: "mine.onnx", Size: 9}}},
	}}
	assert.Equal(t, []location{
		{Role: models.RoleVAD, Model: "mine", Part: models.PartModel, Path: "mine.onnx", Size: 9},
		{Role: models.RoleTagger, Model: "demo-tagger", Part: models.PartModel, Size: 7, Demo: true},
	}, locations(set))
}

// TestRefundNote checks that a note is stored unchanged.
func TestRefundNote(t *testing.T) {
	for want, args := range map[string][]string{
		"":                    {"credit", "customer", "1", "--refund"},
		"credit card dispute": {"credit", "customer", "1", "--refund", "--note", "credit card dispute"},
	} {
		var c accountCmd
		parser, err := kong.New(&c, kong.Name("account"))
		require.NoError(t, err)
		_, err = parser.Parse(args)
		require.NoError(t, err)
		assert.Equal(t, want, c.Credit.Note)
		assert.True(t, c.Credit.Refund)
	}
}

// TestDemoBesideAFolder: a folder that is named must exist, with --demo too.
func TestDemoBesideAFolder(t *testing.T) {
	_, err := (&modelFlags{Models: t.TempDir() + "/none", Demo: true}).open()
	require.ErrorIs(t, err, models.ErrMissing)
	set, err := (&modelFlags{Demo: true}).open()
	require.NoError(t, err)
	assert.True(t, set.Models[0].Demo)
}
