package storetest

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/store"
)

var createCases = []testCase{
	{name: "sets what is the store's to set", run: func(s *suite) {
		before := s.revision()
		got := s.create(Rule(s, "default", "a", 1))
		if got.Meta.UID == "" || got.Meta.CreationTimestamp.IsZero() || got.Meta.Generation != 1 {
			s.Errorf("uid %q, creationTimestamp %v, generation %d", got.Meta.UID, got.Meta.CreationTimestamp, got.Meta.Generation)
		}
		if got.Revision() <= before || got.Revision() != s.revision() {
			s.Errorf("created at %d, store was at %d and is at %d", got.Revision(), before, s.revision())
		}
		s.wantSame(s.get(got.Key()), got)
	}},
	{name: "keeps labels, annotations and spec", run: func(s *suite) {
		obj := with(s, Rule(s, "default", "a", 7), func(m *metav1.ObjectMeta) {
			m.Labels = map[string]string{"app": "x"}
			m.Annotations = map[string]string{"note": "<&> ü"}
		})
		got := s.get(s.create(obj).Key())
		if got.Meta.Labels["app"] != "x" || got.Meta.Annotations["note"] != "<&> ü" {
			s.Errorf("metadata came back as %+v", got.Meta)
		}
		if !strings.Contains(string(got.SpecJSON()), `"precedence":7`) {
			s.Errorf("spec came back as %s", got.SpecJSON())
		}
	}},
	{name: "of a taken key is ErrExists", run: func(s *suite) {
		first := s.create(Rule(s, "default", "a", 1))
		_, err := s.Create(s.ctx, Rule(s, "default", "a", 2))
		s.wantErr(err, store.ErrExists)
		s.wantSame(s.get(first.Key()), first)
	}},
	{name: "after a delete gives another uid", run: func(s *suite) {
		first := s.create(Rule(s, "default", "a", 1))
		s.delete(first.Key())
		if second := s.create(Rule(s, "default", "a", 1)); second.Meta.UID == first.Meta.UID {
			s.Errorf("both have uid %s", first.Meta.UID)
		}
	}},
}

var updateCases = []testCase{
	{name: "with the stored version replaces", run: func(s *suite) {
		first := s.create(Rule(s, "default", "a", 1))
		second := s.update(at(s, Rule(s, "default", "a", 2), first.Meta.ResourceVersion))
		if second.Revision() <= first.Revision() {
			s.Errorf("revision %d after %d", second.Revision(), first.Revision())
		}
		if second.Meta.UID != first.Meta.UID || !second.Meta.CreationTimestamp.Equal(&first.Meta.CreationTimestamp) {
			s.Errorf("uid or creationTimestamp changed: %+v", second.Meta)
		}
		s.wantSame(s.get(first.Key()), second)
	}},
	{name: "without a version is unconditional", run: func(s *suite) {
		first := s.create(Rule(s, "default", "a", 1))
		s.update(Rule(s, "default", "a", 2))
		third := s.update(Rule(s, "default", "a", 3))
		if third.Meta.Generation != 3 || third.Meta.UID != first.Meta.UID {
			s.Errorf("generation %d, uid %s", third.Meta.Generation, third.Meta.UID)
		}
	}},
	{name: "with a stale version is ErrConflict", run: func(s *suite) {
		first := s.create(Rule(s, "default", "a", 1))
		second := s.update(Rule(s, "default", "a", 2))
		_, err := s.Update(s.ctx, at(s, Rule(s, "default", "a", 3), first.Meta.ResourceVersion))
		s.wantErr(err, store.ErrConflict)
		s.wantSame(s.get(first.Key()), second)
	}},
	{name: "with another uid is ErrConflict", run: func(s *suite) {
		s.create(Rule(s, "default", "a", 1))
		_, err := s.Update(s.ctx, with(s, Rule(s, "default", "a", 2), func(m *metav1.ObjectMeta) { m.UID = "another" }))
		s.wantErr(err, store.ErrConflict)
	}},
	{name: "of nothing is ErrNotFound", run: func(s *suite) {
		_, err := s.Update(s.ctx, Rule(s, "default", "a", 1))
		s.wantErr(err, store.ErrNotFound)
	}},
	{name: "of the spec counts a generation, of metadata none", run: func(s *suite) {
		s.create(Rule(s, "default", "a", 1))
		labelled := s.update(with(s, Rule(s, "default", "a", 1), func(m *metav1.ObjectMeta) {
			m.Labels = map[string]string{"app": "x"}
		}))
		if labelled.Meta.Generation != 1 || labelled.Meta.Labels["app"] != "x" {
			s.Errorf("after new labels: %+v", labelled.Meta)
		}
		if changed := s.update(Rule(s, "default", "a", 2)); changed.Meta.Generation != 2 {
			s.Errorf("generation %d after a new spec", changed.Meta.Generation)
		}
	}},
	{name: "that changes nothing writes nothing", run: func(s *suite) {
		first := s.create(Rule(s, "default", "a", 1))
		revision := s.revision()
		s.wantSame(s.update(first), first)
		s.wantSame(s.update(Rule(s, "default", "a", 1)), first)
		reordered := object(s, "RouteRule", "default", "a",
			`{"route":[{"labels":{"version":"v1"}}],"precedence":1,"destination":{"name":"reviews"}}`)
		s.wantSame(s.update(reordered), first)
		if got := s.revision(); got != revision {
			s.Errorf("revision went from %d to %d", revision, got)
		}
	}},
	{name: "that changes nothing still checks the version", run: func(s *suite) {
		first := s.create(Rule(s, "default", "a", 1))
		s.update(Rule(s, "default", "a", 2))
		_, err := s.Update(s.ctx, at(s, Rule(s, "default", "a", 2), first.Meta.ResourceVersion))
		s.wantErr(err, store.ErrConflict)
	}},
}

var deleteCases = []testCase{
	{name: "returns the last state with the revision of the deletion", run: func(s *suite) {
		first := s.create(Rule(s, "default", "a", 1))
		gone := s.delete(first.Key())
		if gone.Revision() <= first.Revision() || gone.Revision() != s.revision() {
			s.Errorf("deleted at %d, created at %d, store at %d", gone.Revision(), first.Revision(), s.revision())
		}
		s.wantSame(at(s, gone, ""), at(s, first, ""))
		_, err := s.Get(s.ctx, first.Key(), store.ReadOptions{})
		s.wantErr(err, store.ErrNotFound)
	}},
	{name: "of nothing is ErrNotFound", run: func(s *suite) {
		_, err := s.Delete(s.ctx, Rule(s, "default", "a", 1).Key(), store.Preconditions{})
		s.wantErr(err, store.ErrNotFound)
	}},
	{name: "keeps its preconditions", run: func(s *suite) {
		first := s.create(Rule(s, "default", "a", 1))
		second := s.update(Rule(s, "default", "a", 2))
		for _, pre := range []store.Preconditions{
			{UID: "another"},
			{ResourceVersion: first.Meta.ResourceVersion},
			{UID: string(second.Meta.UID), ResourceVersion: first.Meta.ResourceVersion},
		} {
			_, err := s.Delete(s.ctx, first.Key(), pre)
			s.wantErr(err, store.ErrConflict)
		}
		s.wantSame(s.get(first.Key()), second)
		pre := store.Preconditions{UID: string(second.Meta.UID), ResourceVersion: second.Meta.ResourceVersion}
		if _, err := s.Delete(s.ctx, first.Key(), pre); err != nil {
			s.Errorf("with the right preconditions: %v", err)
		}
	}},
}
