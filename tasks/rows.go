package tasks

import "database/sql"

// collect reads rows with scan and closes them.
func collect[T any](rows *sql.Rows, scan func(rows *sql.Rows, v *T) error) ([]T, error) {
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

// column reads the one column of rows and closes them. err is the query's own.
func column[T any](rows *sql.Rows, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	return collect(rows, func(rows *sql.Rows, v *T) error { return rows.Scan(v) })
}
