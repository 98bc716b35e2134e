package db

import "database/sql"

// Collect reads all rows with scan and closes them.
func Collect[T any](rows *sql.Rows, scan func(rows *sql.Rows, v *T) error) ([]T, error) {
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

// Column reads the only column of rows and closes them. It accepts both results
// of a query: err is the query's error.
func Column[T any](rows *sql.Rows, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	return Collect(rows, func(rows *sql.Rows, v *T) error { return rows.Scan(v) })
}
