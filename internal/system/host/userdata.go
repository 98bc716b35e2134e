package host

import (
	"fmt"
	"os"
	"path/filepath"
)

// DataDir returns otograph's folder of a name in the user's data folder:
// $XDG_DATA_HOME/otograph/name, or ~/.local/share/otograph/name if the variable
// is not set or, as the XDG Base Directory Specification requires, not
// absolute. It fails without a home folder, or with a relative one.
func DataDir(name string) (string, error) {
	data := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(data) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(home) {
			return "", fmt.Errorf("the home folder %q is not absolute", home)
		}
		data = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(data, "otograph", name), nil
}
