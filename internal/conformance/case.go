package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"

	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// bodyCase is the relevant part of a case.yaml.
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
	unreadable      error
}

// checkBody runs one case. The error describes the first difference. The text of an
// error response is not compared.
func (s *suite) checkBody(ctx context.Context, c *bodyCase) error {
	if c.unreadable != nil {
		return c.unreadable
	}
	objects, refused, err := s.objects(c)
	if err != nil {
		return err
	}
	got, err := s.answer(ctx, c, objects)
	if err == nil && c.ExpectedStatus == http.StatusOK {
		err = c.compare(got)
	}
	if err != nil && refused != nil {
		err = fmt.Errorf("%w (stored although invalid: %w)", err, refused)
	}
	return err
}

// objects returns those of the registry and of the case. refused says which of them
// validation would refuse.
func (s *suite) objects(c *bodyCase) (objects []*schema.Object, refused, err error) {
	if objects, err = s.registry.objects(); err != nil {
		return nil, nil, err
	}
	for _, name := range c.Configs {
		own, invalid, err := readObjects(filepath.Join(c.dir, name), s.registry.ConfigDefaults.Namespace)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		objects, refused = append(objects, own...), errors.Join(refused, invalid)
	}
	return objects, refused, nil
}

// answer returns the body from a control plane over the objects.
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

// settings returns mesh.yaml overridden by the case's own values, for a mesh that keeps
// all quirks of Pilot. Management ports were part of Pilot's registry.
func (s *suite) settings(own map[string]any) (*mesh.Settings, error) {
	all := map[string]any{"v1Compatibility": true}
	maps.Copy(all, s.mesh)
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
