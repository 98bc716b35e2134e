// Package floors only contains tests, which check that the packages follow the
// layers in docs/architecture.md.
package floors
