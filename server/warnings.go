package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/terminal"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Bounds of the warnings in one answer: a client's limit on header bytes must not
// turn a successful write into a failure.
const (
	maxWarnings     = 10
	maxWarningBytes = 1 << 10 // of one warning
)

// warnOf sends warnings about written objects: those of each object by itself, and
// those that this replica knows from all other objects.
func (s *Server) warnOf(w http.ResponseWriter, r *http.Request, own diag.List, changes ...schema.Change) {
	warn(w, append(own, beside(s.amongOthers(r.Context(), discovery.Written{
		Changes: changes, DryRun: queryOf(r).Get("dryRun") != "",
	}), own)...))
}

// became returns the change of a write that is answered with an object. The object
// exists, or it was marked for deletion, has lost its last finalizer and is gone.
func became(answer *schema.Object) schema.Change {
	if answer.Meta.DeletionTimestamp != nil && len(answer.Meta.Finalizers) == 0 {
		return schema.Change{Before: answer}
	}
	return schema.Change{After: answer}
}

func (s *Server) amongOthers(ctx context.Context, w discovery.Written) diag.List {
	if s.opts.Discovery == nil {
		return nil
	}
	found, _ := s.opts.Discovery.Check(ctx, w)
	return found
}

// beside returns the problems of list that are not in own.
func beside(list, own diag.List) diag.List {
	known := map[diag.Problem]bool{}
	for _, p := range own {
		known[unnamed(p)] = true
	}
	var out diag.List
	for _, p := range list {
		if !known[unnamed(p)] {
			out = append(out, p)
		}
	}
	return out
}

// unnamed returns a problem without the fields that change when the object gets its
// name and is no longer text.
func unnamed(p diag.Problem) diag.Problem {
	p.Object.Name, p.Position = "", nil
	return p
}

// warn sends warnings as Kubernetes clients expect them.
func warn(w http.ResponseWriter, warnings diag.List) {
	for i, p := range warnings {
		text := oneLine(p.Coded())
		if i == maxWarnings {
			text = fmt.Sprintf("%d more warnings", len(warnings)-i)
		}
		addWarning(w, text)
		if i == maxWarnings {
			return
		}
	}
}

func addWarning(w http.ResponseWriter, text string) {
	if header, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
		w.Header().Add("Warning", header)
	}
}

// warnOfUnreadable warns of the stored values that an answer about a scope leaves
// out, so that nobody takes the answer for complete.
func (s *Server) warnOfUnreadable(w http.ResponseWriter, scope store.Scope) {
	var warnings diag.List
	for _, u := range store.UnreadableIn(s.opts.Reads, scope) {
		warnings = append(warnings, u.Problem())
	}
	warn(w, warnings)
}

// oneLine returns a text that fits into a header. It escapes control characters,
// because a warning that contains one would not be sent at all.
func oneLine(text string) string {
	text = terminal.Line(strings.Join(strings.Fields(text), " "))
	if len(text) <= maxWarningBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxWarningBytes], "") + "…"
}
