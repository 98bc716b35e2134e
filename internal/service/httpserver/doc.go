// Package httpserver serves the HTTP interface of the service: the endpoints,
// fields, defaults, statuses, error codes and limits of the interface
// specification. Package httpapi has its contract.
//
// It only translates: tasks, accounts and prices are accessed through the small
// interfaces in Config, which the packages internal/service/tasks,
// internal/service/accounts and billing satisfy. New returns a Server; its
// Handler serves everything, its OpsHandler only health and metrics. Package
// service connects a Server to its dependencies.
package httpserver
