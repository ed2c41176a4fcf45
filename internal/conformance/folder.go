package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// suite is a folder of cases and what they share.
type suite struct {
	registry *registry
	mesh     map[string]any // mesh.yaml
	cases    []*bodyCase
	statuses []*statusCase
}

// casePlaces are where cases may be in a folder. The folder may be a case itself.
var casePlaces = []string{"cases/*/case.yaml", "*/case.yaml", "case.yaml"}

// load reads a folder. A registry or mesh configuration that it lacks comes from the
// shared folder. A folder without cases is an error. A case that cannot be read fails on
// its own.
func load(dir, shared string) (*suite, error) {
	s := &suite{registry: &registry{}}
	var list struct{ Cases []*statusCase }
	err := errors.Join(
		readYAML(ownOr(shared, dir, "registry.yaml"), s.registry),
		readYAML(ownOr(shared, dir, "mesh.yaml"), &s.mesh),
		optional(readYAML(filepath.Join(dir, "status-cases.yaml"), &list)),
	)
	if err != nil {
		return nil, err
	}
	s.statuses = list.Cases
	for _, place := range casePlaces {
		files, err := fs.Glob(os.DirFS(dir), place)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			s.cases = append(s.cases, readCase(filepath.Join(dir, file)))
		}
	}
	if len(s.cases) == 0 {
		return nil, fmt.Errorf("no case in %s: want one of %v", dir, casePlaces)
	}
	return s, nil
}

// ownOr returns the path of a file in dir or, if dir has none, in another folder.
func ownOr(other, dir, name string) string {
	own := filepath.Join(dir, name)
	if _, err := os.Stat(own); errors.Is(err, fs.ErrNotExist) {
		return filepath.Join(other, name)
	}
	return own
}

// readCase reads a case.yaml. The default name of a case is that of its folder.
func readCase(file string) *bodyCase {
	c := &bodyCase{dir: filepath.Dir(file), ExpectedStatus: http.StatusOK}
	c.unreadable = readYAML(file, c)
	c.Name = cmp.Or(c.Name, filepath.Base(c.dir))
	return c
}

// optional ignores the error for a file that does not exist.
func optional(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func readYAML(file string, to any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(text, to); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	return nil
}
