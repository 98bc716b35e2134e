// Package spec defines the vocabulary of Otograph: the options of a run with
// the only table of their values, the tiers and the rule that selects one,
// stages, progress, result, languages and sound classes.
//
// It imports only the standard library, starts no goroutine and calls no native
// code: a client, a gateway or a test can use the types without engines.
// Package otograph has the same types under the same names.
package spec
