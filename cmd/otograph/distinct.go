package main

import (
	"fmt"
	"os"
)

// checkDistinct returns an error if an output is one of the inputs, also
// through a link, before anything runs. "-" is standard input, and "" no file.
func checkDistinct(outputs, inputs []string) error {
	type input struct {
		name string
		info os.FileInfo
	}
	var read []input
	for _, name := range inputs {
		if info, err := statInput(name); err == nil && info.Mode().IsRegular() {
			read = append(read, input{name, info})
		}
	}
	for _, out := range outputs {
		info, err := os.Stat(out)
		if err != nil {
			continue // a new file
		}
		for _, in := range read {
			if os.SameFile(info, in.info) {
				return &usageError{fmt.Errorf("the output %s is the input %s: expected another file, because the output would replace it", out, in.name)}
			}
		}
	}
	return nil
}

// statInput returns the file information of an input on the command line.
func statInput(name string) (os.FileInfo, error) {
	if name == "-" {
		return os.Stdin.Stat()
	}
	return os.Stat(name)
}
