package queue

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/spec"
)

// Available returns the tiers and languages of the registered workers' model
// sets, each once. It is empty if no worker has reported any, which rules
// nothing out.
func (q *Queue) Available(ctx context.Context, from db.Querier) ([]spec.Available, error) {
	texts, err := db.Column[string](ctx, from,
		"SELECT DISTINCT available FROM workers WHERE kind = $1 AND available IS NOT NULL ORDER BY available", string(Worker))
	if err != nil {
		return nil, err
	}
	sets := make([]spec.Available, len(texts))
	for i, text := range texts {
		if err := json.Unmarshal([]byte(text), &sets[i]); err != nil {
			return nil, fmt.Errorf("models of a worker: %w", err)
		}
	}
	return sets, nil
}
