package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// suite is a folder of cases and what they share.
type suite struct {
	registry *registry
	mesh     map[string]any // mesh.yaml
	cases    []*bodyCase
	statuses []*statusCase
}

// bodyCase is a case.yaml, as far as it matters.
type bodyCase struct {
	Name    string
	Request struct {
		Type string // cds, lds, rds or sds
		Path string
	}
	MeshConfig      map[string]any
	Configs         []string
	ExpectedStatus  int
	Expected        string
	ExpectedNoMixer string
	dir             string
}

// load reads a folder. No cases at all are an error.
func load(dir string) (*suite, error) {
	s := &suite{registry: &registry{}}
	var list struct{ Cases []*statusCase }
	err := errors.Join(
		readYAML(filepath.Join(dir, "registry.yaml"), s.registry),
		readYAML(filepath.Join(dir, "mesh.yaml"), &s.mesh),
		optional(readYAML(filepath.Join(dir, "status-cases.yaml"), &list)),
	)
	if err != nil {
		return nil, err
	}
	s.statuses = list.Cases
	files, err := filepath.Glob(filepath.Join(dir, "cases", "*", "case.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no case in %s: want cases/NAME/case.yaml", dir)
	}
	for _, file := range files {
		c := &bodyCase{dir: filepath.Dir(file), ExpectedStatus: http.StatusOK}
		if err := readYAML(file, c); err != nil {
			return nil, err
		}
		s.cases = append(s.cases, c)
	}
	return s, nil
}

// optional forgives a file that is not there.
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
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// checkBody runs one case; the error tells the first difference.
func (s *suite) checkBody(ctx context.Context, c *bodyCase) error {
	objects, refused, err := s.objects(c)
	if err != nil {
		return err
	}
	got, err := s.answer(ctx, c, objects)
	if err == nil {
		err = c.compare(got)
	}
	if err != nil && refused != nil {
		err = fmt.Errorf("%w (stored although invalid: %w)", err, refused)
	}
	return err
}

// objects are the registry and the case's own; refused tells which of them
// validation would not take.
func (s *suite) objects(c *bodyCase) (objects []*schema.Object, refused, err error) {
	if objects, err = s.registry.objects(); err != nil {
		return nil, nil, err
	}
	for _, name := range c.Configs {
		obj, invalid, err := readObject(filepath.Join(c.dir, name), s.registry.ConfigDefaults.Namespace)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		objects, refused = append(objects, obj), errors.Join(refused, invalid)
	}
	return objects, refused, nil
}

// answer is the body that a control plane over the objects gives.
func (s *suite) answer(ctx context.Context, c *bodyCase, objects []*schema.Object) ([]byte, error) {
	settings, err := s.settings(c.MeshConfig)
	if err != nil {
		return nil, err
	}
	status, body, err := ask(ctx, settings, objects, nil, c.Request.Path)
	if err == nil && status != c.ExpectedStatus {
		err = fmt.Errorf("status: want %d, got %d: %s", c.ExpectedStatus, status, shorten(body))
	}
	return body, err
}

// compare takes the body without Mixer, which does not exist here, if it is
// another.
func (c *bodyCase) compare(got []byte) error {
	file := cmp.Or(c.ExpectedNoMixer, c.Expected)
	want, err := os.ReadFile(filepath.Join(c.dir, file))
	if err != nil {
		return err
	}
	return compare(want, got)
}

// settings are mesh.yaml with the case's own values over it. Management ports
// were part of Pilot's registry.
func (s *suite) settings(own map[string]any) (*mesh.Settings, error) {
	all := maps.Clone(s.mesh)
	maps.Copy(all, own)
	all["mixerCheckServer"], all["mixerReportServer"] = "", ""
	if ports := s.registry.ManagementPorts; ports != nil {
		all["managementPorts"] = ports
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	settings, problems := mesh.ParseSettings(text, "mesh.yaml")
	if err := problems.Err(); err != nil {
		return nil, err
	}
	settings.Domain = s.registry.ConfigDefaults.Domain
	return settings, nil
}
