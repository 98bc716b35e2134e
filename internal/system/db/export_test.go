package db

import (
	"context"
	"database/sql"
	"io/fs"
	"testing/fstest"
)

// Write1 begins a write transaction that the test ends.
func (d *DB) Write1(ctx context.Context) (*sql.Tx, error) { return d.write.BeginTx(ctx, nil) }

// MigrateNext migrates the store as the next release would, with a migration of
// the given statements after this release's files.
func (d *DB) MigrateNext(ctx context.Context, statements string) error {
	files := fstest.MapFS{}
	for _, folder := range []string{"migrations/sqlite", "migrations/postgres"} {
		present, err := fs.Glob(migrations, folder+"/*.sql")
		if err != nil {
			return err
		}
		for _, name := range present {
			data, err := migrations.ReadFile(name)
			if err != nil {
				return err
			}
			files[name] = &fstest.MapFile{Data: data}
		}
		files[folder+"/00099_next.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + statements)}
	}
	return d.migrate(ctx, files)
}
