package models_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
)

// Identify a model by its file alone.
func ExampleRecognize() {
	detector, _ := demo.Models().Role(models.RoleVAD)
	data, err := detector.Main().Bytes()
	if err != nil {
		fmt.Println(err)
		return
	}
	dir, err := os.MkdirTemp("", "otograph-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "mystery.onnx")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		fmt.Println(err)
		return
	}
	found, err := models.Recognize(name)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(found.Role, found.Contract)
	// Output: vad silero-v5
}
