// Package httpapi is the HTTP face of the service: the endpoints, fields,
// defaults, statuses, error codes and limits of the interface specification.
//
// It translates and decides nothing: tasks, accounts and prices are reached
// through the small interfaces in Config, which the packages tasks,
// internal/accounts and billing satisfy. New returns a Server; its Handler
// serves everything, its OpsHandler the health and metrics alone.
//
// Programs outside this module mount package service, which connects a Server
// to its dependencies: the interfaces in Config speak in types of
// internal/accounts and internal/blob, which only this module can name.
//
// The contract is openapi.yaml, written by hand, served at /openapi.json and
// enforced by the tests on every answer.
package httpapi
