package db_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// notExpanding are the statements that a server of the previous release may not
// survive, or that lock a large table while they rewrite it.
var notExpanding = []struct {
	pattern *regexp.Regexp
	what    string
}{
	{regexp.MustCompile(`^DROP (TABLE|VIEW|TYPE|SEQUENCE|FUNCTION|TRIGGER|SCHEMA)\b`), "drops what the release before may use"},
	{regexp.MustCompile(`^TRUNCATE\b`), "empties a table"},
	{regexp.MustCompile(`^ALTER TABLE\b.*\bRENAME\b`), "renames"},
	{regexp.MustCompile(`^ALTER TABLE\b.*\bDROP (COLUMN|CONSTRAINT|EXPRESSION|IDENTITY)\b`), "drops a column or a constraint"},
	{regexp.MustCompile(`^ALTER TABLE\b.*\bALTER (COLUMN )?\S+ (SET DATA )?TYPE\b`), "writes the table anew"},
	{regexp.MustCompile(`^ALTER TABLE\b.*\bSET (NOT NULL|LOGGED|UNLOGGED|TABLESPACE)\b`), "reads or writes all of the table"},
	{regexp.MustCompile(`^ALTER TABLE\b.*\bADD (COLUMN )?(IF NOT EXISTS )?\S+ [^,]*\bDEFAULT \(?\s*\w+\(`), "writes the table anew, a value for each row"},
	{regexp.MustCompile(`^ALTER TABLE\b.*\bADD (COLUMN )?(IF NOT EXISTS )?\S+ [^,]*\b(GENERATED|SERIAL|BIGSERIAL)\b`), "writes the table anew, a value for each row"},
	{regexp.MustCompile(`^ALTER TABLE\b.*\bADD (CONSTRAINT \S+ )?(CHECK|UNIQUE|PRIMARY KEY|FOREIGN KEY|EXCLUDE)\b`), "refuses rows that the release before may write"},
	{regexp.MustCompile(`^CREATE UNIQUE INDEX\b`), "refuses rows that the release before may write"},
	{regexp.MustCompile(`^(UPDATE|DELETE FROM) `), "writes rows that are there, however many"},
}

// addsRequired matches a new column that the previous release does not fill.
var addsRequired = regexp.MustCompile(`^ALTER TABLE\b.*\bADD (COLUMN )?.*\bNOT NULL\b`)

// outsideText matches comments, quoted text and bodies of functions.
var outsideText = regexp.MustCompile(`(?s)--[^\n]*|\$\$.*?\$\$|'(?:[^']|'')*'`)

// notExpandingIn returns the statements of a migration's Up part that do more
// than add, each with the problem. Tables that the same file creates may be
// changed freely, and so may triggers and functions that it creates again.
func notExpandingIn(file string) (found []string) {
	up, _, _ := strings.Cut(file, "-- +goose Down")
	up = outsideText.ReplaceAllStringFunc(up, func(text string) string {
		if strings.HasPrefix(text, "--") {
			return ""
		}
		return "''"
	})
	again := map[string]bool{} // triggers that the file creates again
	for _, c := range regexp.MustCompile(`(?i)\bCREATE TRIGGER (\w+)`).FindAllStringSubmatch(up, -1) {
		again["DROP TRIGGER "+strings.ToUpper(c[1])] = true
	}
	up = regexp.MustCompile(`(?is)\bCREATE TRIGGER\b.*?\bEND;`).ReplaceAllString(up, "") // triggers of SQLite
	created := map[string]bool{}
	for _, c := range regexp.MustCompile(`(?i)\bCREATE (?:TEMP |UNLOGGED )?TABLE (?:IF NOT EXISTS )?(\w+)`).FindAllStringSubmatch(up, -1) {
		created[strings.ToLower(c[1])] = true
	}
	table := regexp.MustCompile(`^(?:ALTER TABLE|UPDATE|DELETE FROM|CREATE UNIQUE INDEX \S+ ON) (?:IF EXISTS |ONLY )*(\w+)`)
	for statement := range strings.SplitSeq(up, ";") {
		text := strings.Join(strings.Fields(statement), " ")
		upper := strings.ToUpper(text)
		if t := table.FindStringSubmatch(upper); t != nil && created[strings.ToLower(t[1])] && !strings.Contains(upper, " RENAME ") {
			continue
		}
		for _, n := range notExpanding {
			if n.pattern.MatchString(upper) && !again[upper] {
				found = append(found, text+": "+n.what)
			}
		}
		if addsRequired.MatchString(upper) && !strings.Contains(upper, " DEFAULT ") {
			found = append(found, text+": the release before does not fill the column")
		}
	}
	return found
}

// TestMigrationsExpand checks migrations against the rule of
// docs/operations.md: expand, then contract.
func TestMigrationsExpand(t *testing.T) {
	files, err := filepath.Glob("migrations/*/*.sql")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Empty(t, notExpandingIn(string(data)), "%s: add a column or a table beside it, and drop a release later (docs/operations.md)", path)
	}
}

func TestNonExpandingStatementsAreDetected(t *testing.T) {
	for statement, ok := range map[string]bool{
		"CREATE TABLE a (id text PRIMARY KEY); CREATE INDEX i ON a (id); CREATE INDEX j ON tasks (id)":  true,
		"CREATE TABLE a (id text, UNIQUE (id)); CREATE UNIQUE INDEX i ON a (id); UPDATE a SET id = 'x'": true,
		"ALTER TABLE tasks ADD COLUMN a text":                                                                  true,
		"ALTER TABLE tasks ADD COLUMN a bigint NOT NULL DEFAULT 0":                                             true,
		"ALTER TABLE tasks ADD COLUMN a text NOT NULL DEFAULT 'DROP TABLE'; -- RENAME\nDROP INDEX IF EXISTS b": true,
		"INSERT INTO lanes (lane) VALUES ('a')":                                                                true,
		"CREATE TRIGGER t AFTER UPDATE ON a BEGIN UPDATE b SET c = 1; DELETE FROM d; END;":                     true,
		"SELECT 1\n-- +goose Down\nDROP TABLE tasks":                                                           true,
		"DROP TRIGGER t; CREATE TRIGGER t AFTER UPDATE ON a BEGIN SELECT 1; END;":                              true,
		"DROP TRIGGER u; CREATE TRIGGER t AFTER UPDATE ON a BEGIN SELECT 1; END;":                              false,
		"drop table tasks":                                              false,
		"DROP TABLE IF EXISTS tasks":                                    false,
		"ALTER TABLE tasks\n  DROP COLUMN a":                            false,
		"ALTER TABLE tasks RENAME TO b":                                 false,
		"ALTER TABLE tasks RENAME COLUMN a TO b":                        false,
		"CREATE TABLE a (id text); ALTER TABLE a RENAME TO tasks":       false,
		"ALTER TABLE tasks ALTER COLUMN a TYPE bigint":                  false,
		"ALTER TABLE tasks ALTER a SET NOT NULL":                        false,
		"ALTER TABLE tasks ADD COLUMN a bigint NOT NULL":                false,
		"ALTER TABLE tasks ADD COLUMN a text DEFAULT gen_random_uuid()": false,
		"ALTER TABLE tasks ADD COLUMN a bigserial":                      false,
		"ALTER TABLE tasks ADD CONSTRAINT c CHECK (a > 0)":              false,
		"CREATE UNIQUE INDEX i ON tasks (a)":                            false,
		"UPDATE tasks SET a = 1":                                        false,
		"-- +goose Up\nUPDATE tasks SET a = 1":                          false,
		"DELETE FROM tasks":                                             false,
		"TRUNCATE tasks":                                                false,
	} {
		assert.Equal(t, ok, len(notExpandingIn(statement)) == 0, "%s: %q", statement, notExpandingIn(statement))
	}
}
