package httpserver

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestUsageOfAnAccount: GET /usage adds up the account's deductions, in JSON
// and CSV, and a mistake in the query is named.
func TestUsageOfAnAccount(t *testing.T) {
	s := newSpec(t, "sqlite")
	var u struct {
		Usage []map[string]any
		Total map[string]json.Number
	}
	a := s.do("GET", "/usage?period=day&by=key,model,kind&timezone=Asia/Kathmandu", nil)
	require.Equal(t, http.StatusOK, a.status, "%s", a.body)
	require.NoError(t, json.Unmarshal(a.body, &u))
	require.NotEmpty(t, u.Usage)
	for _, row := range u.Usage {
		assert.Len(t, row["key"], 36, "the id of the key")
		assert.Contains(t, row["kind"], "a")
	}
	charged := 0.0
	for _, entry := range s.do("GET", "/billing/transactions?page_size=100", nil).object(t)["transactions"].([]any) {
		if e := entry.(map[string]any); e["type"] == "deduction" {
			amount, err := json.Number(e["amount"].(string)).Float64()
			require.NoError(t, err)
			charged -= amount
		}
	}
	total, err := u.Total["charged"].Float64()
	require.NoError(t, err)
	assert.InDelta(t, charged, total, 1e-9)

	a = s.do("GET", "/usage?format=csv", nil)
	assert.Equal(t, "text/csv; charset=utf-8", a.header.Get("Content-Type"))
	lines := strings.Split(strings.TrimSpace(string(a.body)), "\n")
	assert.Equal(t, "period,tasks,seconds,minutes,amount,from_packs,charged", lines[0])
	assert.Len(t, lines, 2)

	_, stranger := s.newAccount("someone else", "1")
	assert.Empty(t, s.do("GET", "/usage", nil, with("X-Api-Key", stranger)).object(t)["usage"])
	for query, problem := range map[string]string{
		"timezone=Europe/Berlino": "timezone: ", "timezone=Local": "timezone: ", "period=week": "period: must be month or day",
		"by=key,key": "by: must be a list of key, model, kind", "by=account": "by: ", "format=xml": "format: ", "from=2020-01-01": "at most 1100 days",
	} {
		refused := s.do("GET", "/usage?"+query, nil)
		s.refusedWith(refused, 400, codeInvalidRequest)
		assert.Contains(t, string(refused.body), problem)
	}
}
