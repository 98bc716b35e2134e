package ort

import (
	"fmt"
	"strings"

	"github.com/otograph/otograph/models"
)

// InspectModel reads a model's graph and returns it with its contract for a role (see
// ContractOf). Errors name the file.
func InspectModel(src Source, role models.Role, stated string) (*Graph, string, error) {
	g, err := Inspect(src)
	if err != nil {
		return nil, "", err
	}
	contract, err := ContractOf(g, role, stated)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", src, err)
	}
	return g, contract, nil
}

// ContractOf returns the contract of a model's graph for a role: the stated one
// or, if that is empty, the contract that the graph fits. An error wraps
// ErrContract; it does not name the file.
func ContractOf(g *Graph, role models.Role, stated string) (string, error) {
	known := strings.Join(models.ContractsOf(role), ", ")
	if stated != "" {
		if served, ok := models.ContractRole(stated); !ok || served != role {
			return "", fmt.Errorf("%w: role %s has no contract %q; it has %s", ErrContract, role, stated, known)
		}
		return stated, nil
	}
	found, err := models.Graph{Inputs: g.Inputs, Outputs: g.Outputs, Metadata: g.Metadata}.Recognize()
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: role %s: expected one of %s: %w", ErrContract, role, known, err)
	case found.Role != role:
		return "", fmt.Errorf("%w: role %s: expected one of %s; found a model for role %s (%s): it has %s",
			ErrContract, role, known, found.Role, found.Contract, g.IOList())
	case found.Contract == "":
		return "", fmt.Errorf("%w: role %s: it may be one of %s, whose features differ: "+
			"name the contract in otograph.json (or in Model.Contract); it has %s",
			ErrContract, role, strings.Join(found.Candidates, ", "), g.IOList())
	}
	return found.Contract, nil
}
