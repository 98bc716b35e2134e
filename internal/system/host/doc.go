// Package host asks the operating system: memory and processor, process groups,
// locks on files, the user's data folder.
package host
