package floors

import (
	"encoding/json"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxExports is the maximum number of exported identifiers in all public
// packages: package-level names and methods, without fields and without the
// methods of interfaces.
const maxExports = 768

// TestExports checks the number of exports of the public packages, and that no
// export is declared with a type of an internal package. An internal type with
// an alias in a public package counts as public.
func TestExports(t *testing.T) {
	packages := public(t)
	aliases := map[string]bool{}
	for _, p := range packages {
		for _, name := range exported(p) {
			if o, ok := name.(*types.TypeName); ok && o.IsAlias() {
				aliases[types.TypeString(types.Unalias(o.Type()), nil)] = true
			}
		}
	}
	count := 0
	for _, p := range packages {
		for _, object := range exported(p) {
			count++
			count += len(methods(object))
			for name, typ := range declared(object) {
				for _, internal := range internals(typ, aliases) {
					t.Errorf("%s.%s: %s is internal", p.Path(), name, internal)
				}
			}
		}
	}
	assert.LessOrEqual(t, count, maxExports)
	assert.Greater(t, count, maxExports*9/10, "lower maxExports")
}

// public returns the packages that programs outside the module can import.
func public(t *testing.T) []*types.Package {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export,Name", "./...")
	cmd.Dir, cmd.Stderr = "../../..", os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	exports := map[string]string{}
	var paths []string
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p struct{ ImportPath, Export, Name string }
		require.NoError(t, dec.Decode(&p))
		exports[p.ImportPath] = p.Export
		if p.Export != "" && p.Name != "main" && ours(p.ImportPath) && !isInternal(p.ImportPath) {
			paths = append(paths, p.ImportPath)
		}
	}
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var packages []*types.Package
	for _, path := range paths {
		p, err := imports.Import(path)
		require.NoError(t, err)
		packages = append(packages, p)
	}
	return packages
}

func ours(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

func isInternal(path string) bool { return ours(path) && strings.Contains(path+"/", "/internal/") }

// exported returns the exported objects of a package.
func exported(p *types.Package) (objects []types.Object) {
	for _, name := range p.Scope().Names() {
		if o := p.Scope().Lookup(name); o.Exported() {
			objects = append(objects, o)
		}
	}
	return objects
}

// named returns the type that an object declares, nil if it declares none.
func named(o types.Object) *types.Named {
	if name, ok := o.(*types.TypeName); ok && !name.IsAlias() {
		n, _ := name.Type().(*types.Named)
		return n
	}
	return nil
}

// methods returns the exported methods of a type's name.
func methods(o types.Object) (all []*types.Func) {
	if n := named(o); n != nil {
		for m := range n.Methods() {
			if m.Exported() {
				all = append(all, m)
			}
		}
	}
	return all
}

// declared returns the types in an object's declaration, by name.
func declared(o types.Object) map[string]types.Type {
	n := named(o)
	if n == nil {
		if _, isType := o.(*types.TypeName); isType {
			return nil // an alias
		}
		return map[string]types.Type{o.Name(): o.Type()}
	}
	all := map[string]types.Type{}
	for _, m := range methods(o) {
		all[o.Name()+"."+m.Name()] = m.Type()
	}
	switch u := n.Underlying().(type) {
	case *types.Struct:
		for f := range u.Fields() {
			if f.Exported() {
				all[o.Name()+"."+f.Name()] = f.Type()
			}
		}
	default:
		all[o.Name()] = u
	}
	return all
}

// internals returns the internal types in a type that have no alias.
func internals(t types.Type, aliases map[string]bool) (found []string) {
	seen := map[types.Type]bool{}
	var walk func(types.Type)
	walk = func(t types.Type) {
		t = types.Unalias(t)
		if seen[t] {
			return
		}
		seen[t] = true
		switch u := t.(type) {
		case *types.Named:
			name := types.TypeString(u, nil)
			if o := u.Obj(); o.Pkg() != nil && isInternal(o.Pkg().Path()) && !aliases[name] {
				found = append(found, name)
			}
			for arg := range u.TypeArgs().Types() {
				walk(arg)
			}
		case *types.Signature:
			walk(u.Params())
			walk(u.Results())
		case *types.Tuple:
			for v := range u.Variables() {
				walk(v.Type())
			}
		case *types.Map:
			walk(u.Key())
			walk(u.Elem())
		case *types.Interface:
			for m := range u.Methods() {
				walk(m.Type())
			}
		case *types.Struct:
			for f := range u.Fields() {
				walk(f.Type())
			}
		case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
			walk(u.Elem())
		}
	}
	walk(t)
	slices.Sort(found)
	return slices.Compact(found)
}
