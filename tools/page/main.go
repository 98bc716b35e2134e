// Command page bundles the page into web/dist: page.js, page.css and worklet.js
// for the service, view.js and view.css for the file with a single result. It
// needs the packages of package-lock.json in web/node_modules, and no Node.
//
//	go run -C tools ./page
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/otograph/otograph/tools/internal/checkout"
)

func main() {
	err := checkout.Enter()
	if err == nil {
		err = build("web")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "page:", err)
		os.Exit(1)
	}
}

// build bundles the folder dir/src into dir/dist.
func build(dir string) error {
	dist := filepath.Join(dir, "dist")
	next := dist + ".next"
	if err := os.RemoveAll(next); err != nil {
		return err
	}
	defer os.RemoveAll(next)
	r := api.Build(api.BuildOptions{
		EntryPoints:       []string{filepath.Join(dir, "src", "page.tsx"), filepath.Join(dir, "src", "worklet.ts"), filepath.Join(dir, "src", "view.tsx")},
		Bundle:            true,
		Write:             true,
		Outdir:            next,
		Format:            api.FormatIIFE,
		Target:            api.ES2022,
		Charset:           api.CharsetUTF8,
		LegalComments:     api.LegalCommentsNone, // notices.txt contains them in full
		MinifyWhitespace:  true,
		MinifyIdentifiers: true,
		MinifySyntax:      true,
		JSX:               api.JSXAutomatic,
		JSXImportSource:   "preact",
		Define:            map[string]string{"process.env.NODE_ENV": `"production"`},
		LogLevel:          api.LogLevelWarning,
	})
	if len(r.Errors) > 0 {
		return errors.New("the page does not build (see above)")
	}
	for _, name := range []string{"index.html", "icon.svg"} {
		data, err := os.ReadFile(filepath.Join(dir, "src", name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(next, name), data, 0o644); err != nil {
			return err
		}
	}
	notices, err := licenses(filepath.Join(dir, "node_modules"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(next, "notices.txt"), notices, 0o644); err != nil {
		return err
	}
	if err := os.RemoveAll(dist); err != nil {
		return err
	}
	return os.Rename(next, dist)
}

// licenses collects the licenses of the bundled packages.
func licenses(modules string) ([]byte, error) {
	var files []string
	for _, pattern := range []string{"*/LICENSE*", "@preact/*/LICENSE*", "@tanstack/*/LICENSE*"} {
		found, err := filepath.Glob(filepath.Join(modules, pattern))
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	sort.Strings(files)
	var out bytes.Buffer
	for _, f := range files {
		name, err := filepath.Rel(modules, filepath.Dir(f))
		if err != nil {
			return nil, err
		}
		if name = filepath.ToSlash(name); name == "typescript" || strings.HasPrefix(name, "playwright") {
			continue // not in the bundle
		}
		data, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "== %s ==\n\n%s\n\n", name, bytes.TrimSpace(data))
	}
	return out.Bytes(), nil
}
