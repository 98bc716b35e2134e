package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Querier is a Reader or a transaction.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Row is a row of a query.
type Row interface{ Scan(targets ...any) error }

// Select returns the rows of a query, each read by scan.
func Select[T any](ctx context.Context, from Querier, scan func(row Row, v *T) error, query string, args ...any) ([]T, error) {
	rows, err := from.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var values []T
	for rows.Next() {
		var v T
		if err := scan(rows, &v); err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, rows.Err()
}

// Column returns the only column of a query.
func Column[T any](ctx context.Context, from Querier, query string, args ...any) ([]T, error) {
	return Select(ctx, from, func(row Row, v *T) error { return row.Scan(v) }, query, args...)
}

// Map returns the rows of a query for a key and a value; value returns the
// target of Scan for a value.
func Map[V any](ctx context.Context, from Querier, value func(*V) any, query string, args ...any) (map[string]V, error) {
	pairs := map[string]V{}
	_, err := Select(ctx, from, func(row Row, k *string) error {
		var v V
		err := row.Scan(k, value(&v))
		pairs[*k] = v
		return err
	}, query, args...)
	return pairs, err
}

// Found turns the error of a row's Scan into whether there was a row.
func Found(err error) (bool, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// column is a target of Scan that converts a column's value.
type column func(value any) error

// Scan implements sql.Scanner.
func (c column) Scan(value any) error { return c(value) }

// ScanTime returns a target for a time in microseconds; null is zero.
func ScanTime(t *time.Time) sql.Scanner {
	return column(func(value any) error {
		var at *time.Time
		err := ScanOptionalTime(&at).Scan(value)
		if *t = (time.Time{}); at != nil {
			*t = *at
		}
		return err
	})
}

// ScanOptionalTime is ScanTime for a time that may be missing; null is nil.
func ScanOptionalTime(t **time.Time) sql.Scanner {
	return column(func(value any) error {
		var micros sql.NullInt64
		err := micros.Scan(value)
		if *t = nil; micros.Valid {
			*t = new(Time(micros.Int64))
		}
		return err
	})
}

// ScanJSON returns a target that reads JSON into v; null and "" change nothing.
func ScanJSON(v any) sql.Scanner {
	return column(func(value any) error {
		var text sql.NullString
		if err := text.Scan(value); err != nil || text.String == "" {
			return err
		}
		return json.Unmarshal([]byte(text.String), v)
	})
}

// Do runs a statement in the transaction tx.
func Do(ctx context.Context, tx *sql.Tx, statement string, args ...any) error {
	_, err := tx.ExecContext(ctx, statement, args...)
	return err
}

// Exec runs a statement in a transaction and returns the number of rows.
func (d *DB) Exec(ctx context.Context, statement string, args ...any) (changed int64, err error) {
	err = d.Write(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		changed, err = result.RowsAffected()
		return err
	})
	return changed, err
}

// Optional returns v as the value of a nullable column: nil for the zero value.
func Optional[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

// JSON is an argument that is stored as JSON.
type JSON struct{ V any }

// Value implements driver.Valuer.
func (j JSON) Value() (driver.Value, error) {
	text, err := json.Marshal(j.V)
	return string(text), err
}

// OptionalJSON returns v as JSON for a nullable column: nil for the zero value.
func OptionalJSON(v any) any {
	if reflect.ValueOf(v).IsZero() {
		return nil
	}
	return JSON{v}
}

// Args are the arguments of a query that is put together.
type Args []any

// Add appends values and returns their placeholders, as a list.
func (a *Args) Add(values ...any) string {
	marks := make([]string, len(values))
	for i, v := range values {
		*a = append(*a, v)
		marks[i] = fmt.Sprintf("$%d", len(*a))
	}
	return strings.Join(marks, ", ")
}

// AddTexts is Add for strings.
func (a *Args) AddTexts(values []string) string {
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
	}
	return a.Add(all...)
}

// Created returns the end of a condition, " AND …", on a row's creation: at or
// after from and before until; a zero time is no limit.
func (a *Args) Created(from, until time.Time) (condition string) {
	if !from.IsZero() {
		condition = " AND created_at >= " + a.Add(Micros(from))
	}
	if !until.IsZero() {
		condition += " AND created_at < " + a.Add(Micros(until))
	}
	return condition
}

// NewID returns a new id of a row, a UUID of version 7.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }
