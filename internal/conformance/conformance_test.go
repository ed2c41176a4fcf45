package main

import (
	"bytes"
	stdcmp "cmp"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/v1schema"
)

// recordedCases are Pilot's answers, where they are to be had.
func recordedCases(t *testing.T) *suite {
	t.Helper()
	dir := outside.Shared(t, "conformance", "pilot-v1")
	s, err := load(dir, dir)
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

// smallFolder unpacks a folder of cases in which much goes wrong.
func smallFolder(t *testing.T) string {
	t.Helper()
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
	return dir
}

func TestReport(t *testing.T) {
	dir := smallFolder(t)
	want, err := os.ReadFile(filepath.Join(dir, "report"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := load(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if s.report(t.Context(), &got) {
		t.Error("all is good, want a report that not all is")
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

// Cases alone, and even one case, go with what other folders share.
func TestBareCases(t *testing.T) {
	dir := smallFolder(t)
	for _, bare := range []string{"cases", "cases/good"} {
		s, err := load(filepath.Join(dir, bare), dir)
		if err != nil {
			t.Fatal(err)
		}
		good := s.cases[slices.IndexFunc(s.cases, func(c *bodyCase) bool { return c.Name == "good" })]
		if err := s.checkBody(t.Context(), good); err != nil || len(s.statuses) > 0 {
			t.Errorf("%s: %v, %d status cases", bare, err, len(s.statuses))
		}
	}
}

func TestNoCases(t *testing.T) {
	if _, err := load(t.TempDir(), smallFolder(t)); err == nil {
		t.Error("an empty folder is no error")
	}
}

// Where Pilot was recorded both with Mixer and without, one body makes the
// other.
func TestWithoutMixer(t *testing.T) {
	for _, c := range recordedCases(t).cases {
		with, err := os.ReadFile(filepath.Join(c.dir, c.Expected))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(c.dir, stdcmp.Or(c.ExpectedNoMixer, c.Expected)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := withoutMixer(with)
		if err == nil {
			err = compare(want, got)
		}
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}
