package worker_test

import (
	"os"
	"testing"

	"github.com/otograph/otograph/internal/test/taskstest"
)

func TestMain(m *testing.M) {
	if run := os.Getenv(envProcess); run != "" {
		os.Exit(testProcess(run))
	}
	os.Exit(taskstest.Main(m))
}
