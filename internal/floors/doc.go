// Package floors holds nothing but a test: that the packages keep to the floors
// that docs/architecture.md shows.
package floors
