// Package floors contains only a test: that the packages follow the layers in
// docs/architecture.md.
package floors
