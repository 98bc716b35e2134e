package tasks

import (
	"database/sql"
	"encoding/json"
)

// Extras are the options of a task that are not in the specification.
type Extras struct {
	// Translate requests the text in English.
	Translate bool `json:"translate,omitempty"`
	// Measures requests the recognizer's measures (spec.Measures).
	Measures bool `json:"measures,omitempty"`
	// Voices holds the names of the known speakers. NewReference stores their
	// recordings in the same order.
	Voices []string `json:"voices,omitempty"`
	// Languages lists the codes that detection chooses from; empty means all.
	Languages []string `json:"languages,omitempty"`
	// Model is the recognizer's name, "" for the engine's choice. It does not
	// change after the task's creation.
	Model string `json:"model,omitempty"`
}

func readExtras(column sql.NullString) (e Extras, err error) {
	if column.Valid {
		err = json.Unmarshal([]byte(column.String), &e)
	}
	return e, err
}
