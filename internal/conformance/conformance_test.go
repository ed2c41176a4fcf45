package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/v1schema"
)

// recordedCases are those beside the repository.
func recordedCases(t *testing.T) *suite {
	t.Helper()
	s, err := load(outside.Shared(t, "conformance", "pilot-v1"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBodies(t *testing.T) {
	s := recordedCases(t)
	for _, c := range s.cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			if err := s.checkBody(t.Context(), c); err != nil {
				t.Error(err)
			}
		})
	}
}

// Every answer must be one that Envoy takes, whether or not Pilot gave it.
func TestBodiesFitTheSchemas(t *testing.T) {
	s := recordedCases(t)
	for _, c := range s.cases {
		if c.Name == "sds-list-all" {
			continue // For people; Envoy never asks for it.
		}
		t.Run(c.Name, func(t *testing.T) {
			objects, _, err := s.objects(c)
			if err != nil {
				t.Fatal(err)
			}
			body, err := s.answer(t.Context(), c, objects)
			if err != nil {
				t.Fatal(err)
			}
			v1schema.Validate(t, c.Request.Type+"-response", body)
		})
	}
}

func TestStatuses(t *testing.T) {
	s := recordedCases(t)
	for _, c := range s.statuses {
		t.Run(c.Test, func(t *testing.T) {
			if err := s.checkStatus(t.Context(), c); err != nil {
				t.Error(err)
			}
		})
	}
}

// A small folder with what may go wrong gives the whole report.
func TestReport(t *testing.T) {
	files, err := txtar.ParseFile(filepath.Join("testdata", "report.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range files.Files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(filepath.Join(dir, "report"))
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	good, err := report(t.Context(), &got, dir)
	if err != nil || good {
		t.Errorf("good %v, %v; want a report that not all is good", good, err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestNoCases(t *testing.T) {
	if _, err := load(t.TempDir()); err == nil {
		t.Error("an empty folder is no error")
	}
}
