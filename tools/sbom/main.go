// Command sbom writes the software bill of materials of a built binary in the
// CycloneDX format. It lists the Go modules from the binary's build information
// and the npm packages of the embedded page.
package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/otograph/otograph/tools/internal/checkout"
)

func main() {
	version := flag.String("version", "", "version of the release")
	lock := flag.String("lock", "", "package-lock.json of the embedded page")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: sbom [-version V] [-lock package-lock.json] BINARY")
		os.Exit(2)
	}
	if err := run(os.Stdout, flag.Arg(0), *version, *lock); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// run writes a binary's bill of materials to w.
func run(w io.Writer, binary, version, lock string) error {
	if err := checkout.Enter(); err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	components := modules(info)
	if lock != "" {
		data, err := os.ReadFile(lock)
		if err != nil {
			return err
		}
		page, err := packages(data)
		if err != nil {
			return fmt.Errorf("%s: %w", lock, err)
		}
		components = append(components, page...)
	}
	slices.SortFunc(components, func(a, b cdx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	bom := cdx.NewBOM()
	main := component(info.Main.Path, cmp.Or(version, info.Main.Version), "pkg:golang/"+info.Main.Path, cdx.ComponentTypeApplication)
	bom.Metadata = &cdx.Metadata{Component: &main}
	bom.Components = &components
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}

// component returns a component whose package URL is also its reference.
func component(name, version, purl string, kind cdx.ComponentType) cdx.Component {
	purl += "@" + version
	return cdx.Component{BOMRef: purl, Type: kind, Name: name, Version: version, PackageURL: purl}
}

// modules lists the modules that a binary was linked from, with their
// replacements, and Go's standard library.
func modules(info *debug.BuildInfo) []cdx.Component {
	list := []cdx.Component{component("std", strings.TrimPrefix(info.GoVersion, "go"), "pkg:golang/std", cdx.ComponentTypeLibrary)}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		list = append(list, component(m.Path, m.Version, "pkg:golang/"+m.Path, cdx.ComponentTypeLibrary))
	}
	return list
}

// packages lists the packages of a package-lock.json (version 2 or 3) that are
// not only for development.
func packages(data []byte) ([]cdx.Component, error) {
	var lock struct {
		Packages map[string]struct {
			Version string `json:"version"`
			Dev     bool   `json:"dev"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(data, &lock); err != nil {
		return nil, err
	}
	var list []cdx.Component
	for path, p := range lock.Packages {
		_, name, found := strings.Cut(path, "node_modules/")
		if !found || p.Dev {
			continue
		}
		if p.Version == "" {
			return nil, fmt.Errorf("packages[%q]: expected a version, found none", path)
		}
		purl := "pkg:npm/" + strings.Replace(name, "@", "%40", 1)
		list = append(list, component(name, p.Version, purl, cdx.ComponentTypeLibrary))
	}
	return list, nil
}
