package tasks

import (
	"database/sql"
	"encoding/json"

	"github.com/otograph/otograph/spec"
)

// Extras are the options of a task that are not in the specification.
type Extras struct {
	spec.Extras
	// Voices holds the names of the known speakers. NewReference stores their
	// recordings in the same order.
	Voices []string `json:"voices,omitempty"`
}

func readExtras(column sql.NullString) (e Extras, err error) {
	if column.Valid {
		err = json.Unmarshal([]byte(column.String), &e)
	}
	return e, err
}
