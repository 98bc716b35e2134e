// Package httpapi is the HTTP interface of the service: the endpoints, fields,
// defaults, statuses, error codes and limits of the interface specification.
//
// It only translates: tasks, accounts and prices are accessed through the small
// interfaces in Config, which the packages internal/service/tasks, internal/service/accounts
// and billing satisfy. New returns a Server; its Handler serves everything, its
// OpsHandler only health and metrics.
//
// Programs outside this module mount package service, which connects a Server
// to its dependencies: the interfaces in Config use types of internal/service/accounts
// and internal/system/blob, which only this module can name.
//
// The contract is openapi.yaml, written by hand, served at /openapi.json and
// checked by the tests on every response.
package httpapi
