package manifest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// Manifest is one checked object and its origin.
type Manifest struct {
	*schema.Object
	doc schema.Document
	// whole is true if the document is this object, and not a List that contains it.
	whole bool
}

// Text returns the text to send: the author's document, or only the object if it was in a
// List.
func (m Manifest) Text() client.Text {
	t := client.Text{Kind: m.Kind, Namespace: m.Meta.Namespace, Name: m.Meta.Name}
	if m.whole {
		t.Body = m.doc.Text
		return t
	}
	t.Body, t.ContentType = m.Written(), "application/json"
	return t
}

// As returns the manifest with another object in place of its own. Its Text is then that
// object, and not the author's document.
func (m Manifest) As(o *schema.Object) Manifest { return Manifest{Object: o, doc: m.doc} }

// isWhole distinguishes a document with one object from a List of one.
func isWhole(doc schema.Document, objects []*schema.Object) bool {
	var head metav1.TypeMeta
	return len(objects) == 1 && yaml.Unmarshal(doc.Text, &head) == nil && head.Kind == objects[0].Kind.Kind
}

// Read reads and checks all files. If any of them has errors, it returns all errors
// together, and the caller must send nothing. It prints warnings.
func Read(ctx context.Context, s *cli.Session, f Files, preconditions ...Precondition) ([]Manifest, error) {
	found, _, err := ReadWithWarnings(ctx, s, f, preconditions...)
	return found, err
}

// ReadWithWarnings is Read that also returns the warnings that it printed.
func ReadWithWarnings(ctx context.Context, s *cli.Session, f Files, preconditions ...Precondition) ([]Manifest, diag.List, error) {
	docs, err := Documents(ctx, s, f)
	if err != nil {
		return nil, nil, err
	}
	found, problems, err := Check(ctx, s, docs)
	if err != nil {
		return nil, nil, err
	}
	for _, unmet := range preconditions {
		problems = append(problems, unmet(found)...)
	}
	s.ShowProblems(problems)
	if errs := problems.Errors(); len(errs) > 0 {
		return nil, nil, fmt.Errorf("%s; nothing was sent", cli.Count(len(errs), "error"))
	}
	if len(found) == 0 {
		return nil, nil, f.NoObjects()
	}
	return found, problems, nil
}

// Check decodes and validates documents, each on its own. The error is ctx's.
func Check(ctx context.Context, s *cli.Session, docs []schema.Document) ([]Manifest, diag.List, error) {
	var found []Manifest
	var problems diag.List
	for _, doc := range docs {
		objects, list, err := doc.Objects(ctx, s.Namespace)
		if err != nil {
			return nil, nil, errors.New(s.Explain(ctx, err))
		}
		problems = append(problems, list...)
		whole := isWhole(doc, objects)
		for _, o := range objects {
			m := Manifest{o, doc, whole}
			problems = append(problems, misplaced(s, m)...)
			found = append(found, m)
		}
	}
	return found, problems, nil
}

// Problem returns a problem of the object, with its position.
func (m Manifest) Problem(severity diag.Severity, reason diag.Reason, field, message string) diag.Problem {
	return diag.Problem{
		Severity: severity, Reason: reason, Code: diag.CodeOf(reason), Object: m.Key().Ref(),
		Field: field, Message: message, Position: m.Place(),
	}
}

// misplaced finds an object whose namespace is not that of the command line.
func misplaced(s *cli.Session, m Manifest) diag.List {
	if !s.NamespaceGiven || m.Meta.Namespace == s.Namespace {
		return nil
	}
	return diag.List{m.Problem(diag.Error, diag.FieldInvalid, "metadata.namespace",
		fmt.Sprintf("the object is in namespace %q, the command line says %q", m.Meta.Namespace, s.Namespace))}
}

// Place returns the position of the object in its file.
func (m Manifest) Place() *diag.Position { return place(m.doc) }

func place(doc schema.Document) *diag.Position {
	return &diag.Position{File: doc.File, Line: doc.Line, Column: 1}
}

// ReferencedFirst moves objects before those that may refer to them, and otherwise
// keeps the order of the files. So the warnings about a write check references against
// all files. Deletes use the opposite order.
func ReferencedFirst(list []Manifest) {
	slices.SortStableFunc(list, func(a, b Manifest) int {
		return schema.ReferenceRank(a.Object) - schema.ReferenceRank(b.Object)
	})
}

// Joined returns the objects as one stream of documents.
func Joined(list []Manifest) []byte {
	var out bytes.Buffer
	for _, m := range list {
		out.WriteString("---\n")
		out.Write(m.Written())
		out.WriteString("\n")
	}
	return out.Bytes()
}
