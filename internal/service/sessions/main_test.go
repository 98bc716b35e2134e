package sessions

import (
	"os"
	"testing"

	"github.com/otograph/otograph/internal/test/taskstest"
)

func TestMain(m *testing.M) { os.Exit(taskstest.Main(m)) }
