// Package httpapi holds the contract of the service's HTTP interface:
// openapi.yaml, written by hand, with the options of package spec.
//
// The endpoints are in internal/service/httpserver, whose tests check every
// response against the contract; programs mount them through package service.
package httpapi
