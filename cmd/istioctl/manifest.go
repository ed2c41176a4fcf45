package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// manifest is one checked object and where it came from.
type manifest struct {
	*schema.Object
	doc schema.Document
	// whole: the document is this object, and not a List that it is in.
	whole bool
}

// text is what is sent: the author's own document, or the object alone when it
// was one of a List.
func (m manifest) text() client.Text {
	t := client.Text{Kind: m.Kind, Namespace: m.Meta.Namespace, Name: m.Meta.Name}
	if m.whole {
		t.Body = m.doc.Text
		return t
	}
	t.Body, t.ContentType = m.Written(), "application/json"
	return t
}

// isWhole tells a document with one object from a List of one.
func isWhole(doc schema.Document, objects []*schema.Object) bool {
	var head metav1.TypeMeta
	return len(objects) == 1 && yaml.Unmarshal(doc.Text, &head) == nil && head.Kind == objects[0].Kind.Kind
}

// manifests reads and checks all files. Any error, in any of them, is reported
// with all others and means that nothing may be sent; warnings are printed.
func (s *session) manifests(ctx context.Context, f fileFlags, preconditions ...precondition) ([]manifest, error) {
	docs, err := s.documents(ctx, f)
	if err != nil {
		return nil, err
	}
	found, problems, err := s.check(ctx, docs)
	if err != nil {
		return nil, err
	}
	for _, unmet := range preconditions {
		problems = append(problems, unmet(found)...)
	}
	s.showProblems(problems)
	if errs := problems.Errors(); len(errs) > 0 {
		return nil, fmt.Errorf("%s; nothing was sent", count(len(errs), "error"))
	}
	if len(found) == 0 {
		return nil, f.noObjects()
	}
	return found, nil
}

// check decodes and validates documents, each on its own. The error is ctx's.
func (s *session) check(ctx context.Context, docs []schema.Document) ([]manifest, diag.List, error) {
	var found []manifest
	var problems diag.List
	for _, doc := range docs {
		objects, list, err := doc.Objects(ctx, s.namespace)
		if err != nil {
			return nil, nil, errors.New(s.explain(ctx, err))
		}
		problems = append(problems, list...)
		whole := isWhole(doc, objects)
		for _, o := range objects {
			m := manifest{o, doc, whole}
			problems = append(problems, s.misplaced(m)...)
			found = append(found, m)
		}
	}
	return found, problems, nil
}

func (m manifest) problem(severity diag.Severity, reason diag.Reason, field, message string) diag.Problem {
	return diag.Problem{
		Severity: severity, Reason: reason, Code: diag.CodeOf(reason), Object: m.Key().Ref(),
		Field: field, Message: message, Position: place(m.doc),
	}
}

// misplaced finds an object that says another namespace than the command line.
func (s *session) misplaced(m manifest) diag.List {
	if !s.namespaceGiven || m.Meta.Namespace == s.namespace {
		return nil
	}
	return diag.List{m.problem(diag.Error, diag.FieldInvalid, "metadata.namespace",
		fmt.Sprintf("the object is in namespace %q, the command line says %q", m.Meta.Namespace, s.namespace))}
}

func place(doc schema.Document) *diag.Position {
	return &diag.Position{File: doc.File, Line: doc.Line, Column: 1}
}

// referencedFirst puts objects before those that may refer to them, and keeps the
// order of the files otherwise. So the warnings about a write judge references
// against all files. Deleting goes the other way round.
func referencedFirst(list []manifest) {
	slices.SortStableFunc(list, func(a, b manifest) int {
		return schema.ReferenceRank(a.Object) - schema.ReferenceRank(b.Object)
	})
}

// count is "1 error", "2 errors".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
