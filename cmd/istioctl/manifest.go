package main

import (
	"bytes"
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

// manifest is one checked object and its origin.
type manifest struct {
	*schema.Object
	doc schema.Document
	// whole is true if the document is this object, and not a List that contains it.
	whole bool
}

// text returns what is sent: the author's document, or only the object if it was in a
// List.
func (m manifest) text() client.Text {
	t := client.Text{Kind: m.Kind, Namespace: m.Meta.Namespace, Name: m.Meta.Name}
	if m.whole {
		t.Body = m.doc.Text
		return t
	}
	t.Body, t.ContentType = m.Written(), "application/json"
	return t
}

// isWhole distinguishes a document with one object from a List of one.
func isWhole(doc schema.Document, objects []*schema.Object) bool {
	var head metav1.TypeMeta
	return len(objects) == 1 && yaml.Unmarshal(doc.Text, &head) == nil && head.Kind == objects[0].Kind.Kind
}

// readManifests reads and checks all files. If there are errors in any of them, it returns
// them together, and nothing may be sent. It prints warnings.
func readManifests(ctx context.Context, s *session, f fileFlags, preconditions ...precondition) ([]manifest, error) {
	docs, err := readDocuments(ctx, s, f)
	if err != nil {
		return nil, err
	}
	found, problems, err := checkDocuments(ctx, s, docs)
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

// checkDocuments decodes and validates documents, each on its own. The error is ctx's.
func checkDocuments(ctx context.Context, s *session, docs []schema.Document) ([]manifest, diag.List, error) {
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
			problems = append(problems, misplaced(s, m)...)
			found = append(found, m)
		}
	}
	return found, problems, nil
}

func (m manifest) problem(severity diag.Severity, reason diag.Reason, field, message string) diag.Problem {
	return diag.Problem{
		Severity: severity, Reason: reason, Code: diag.CodeOf(reason), Object: m.Key().Ref(),
		Field: field, Message: message, Position: m.place(),
	}
}

// misplaced finds an object whose namespace is not that of the command line.
func misplaced(s *session, m manifest) diag.List {
	if !s.namespaceGiven || m.Meta.Namespace == s.namespace {
		return nil
	}
	return diag.List{m.problem(diag.Error, diag.FieldInvalid, "metadata.namespace",
		fmt.Sprintf("the object is in namespace %q, the command line says %q", m.Meta.Namespace, s.namespace))}
}

// place returns the position of the object in its file.
func (m manifest) place() *diag.Position { return place(m.doc) }

func place(doc schema.Document) *diag.Position {
	return &diag.Position{File: doc.File, Line: doc.Line, Column: 1}
}

// referencedFirst moves objects before those that may refer to them, and otherwise
// keeps the order of the files. So the warnings about a write check references against
// all files. Deletes use the opposite order.
func referencedFirst(list []manifest) {
	slices.SortStableFunc(list, func(a, b manifest) int {
		return schema.ReferenceRank(a.Object) - schema.ReferenceRank(b.Object)
	})
}

// joined returns the objects as one stream of documents.
func joined(list []manifest) []byte {
	var out bytes.Buffer
	for _, m := range list {
		out.WriteString("---\n")
		out.Write(m.Written())
		out.WriteString("\n")
	}
	return out.Bytes()
}
