package objects

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// match is the condition that If-Match sets for the written object; the zero match
// sets none. Only the resourceVersion of a tag counts, which the store compares
// when it performs the write. The status in a tag does not count, because no write
// changes it.
type match struct {
	asked    bool
	revision string // "" means any
}

// onlyNew reports whether a PUT must create its object and not replace one.
func onlyNew(r *http.Request) bool { return r.Header["If-None-Match"] != nil }

var (
	// ownTag matches a tag of an object in any format and compression.
	ownTag = regexp.MustCompile(`^"([0-9]+)-[0-9a-z]+(-[a-z]+)*"$`)
	anyTag = regexp.MustCompile(`^(W/)?"[^",]*"$`)
)

func ifMatch(r *http.Request) (match, error) {
	headers := r.Header.Values("If-Match")
	if len(headers) == 0 {
		return match{}, nil
	}
	tag := strings.TrimSpace(strings.Join(headers, ","))
	own := ownTag.FindStringSubmatch(tag)
	switch {
	case tag == "*":
		return match{asked: true}, nil
	case own != nil:
		return match{true, own[1]}, nil
	case anyTag.MatchString(tag): // A weak tag matches nothing, by RFC 9110.
		return match{}, errUnmatched
	}
	return match{}, wire.BadRequest("If-Match: must be one ETag or *, found %q", tag)
}

// reasonUnmatched is the reason of a 412.
const reasonUnmatched metav1.StatusReason = "PreconditionFailed"

var (
	errUnmatched = wire.Failure(http.StatusPreconditionFailed, reasonUnmatched, "If-Match: the object is not the one with this ETag any more: get it again")
	errThere     = wire.Failure(http.StatusPreconditionFailed, reasonUnmatched, "If-None-Match: the object is there already")
)

// with combines the match with the resourceVersion that the request states
// elsewhere.
func (m match) with(revision string) (string, error) {
	switch {
	case m.revision == "":
		return revision, nil
	case revision != "" && revision != m.revision:
		return "", errUnmatched
	}
	return m.revision, nil
}

// of returns obj with the match as its resourceVersion.
func (m match) of(obj *schema.Object) (*schema.Object, error) {
	meta := obj.Meta
	var err error
	if meta.ResourceVersion, err = m.with(meta.ResourceVersion); err != nil || meta.ResourceVersion == obj.Meta.ResourceVersion {
		return obj, err
	}
	return obj.WithMeta(meta)
}

// operate does an operation by function if the match holds. An error of the function is
// not one of the match.
func (m match) operate(ctx context.Context, writes store.Interface, op store.Op) (*schema.Object, error) {
	if !m.asked {
		return store.Single(writes.Txn(ctx, []store.Op{op}))
	}
	change := op.Change
	op.Pre.ResourceVersion = m.revision
	op.Change = func(stored *schema.Object) (*schema.Object, error) {
		if stored == nil {
			return nil, errUnmatched
		}
		next, err := change(stored)
		if err != nil {
			err = changeError{err}
		}
		return next, err
	}
	done, err := store.Single(writes.Txn(ctx, []store.Op{op}))
	var own changeError
	switch {
	case errors.As(err, &own):
		return nil, own.error
	case op.Verb == store.OpApply && errors.Is(err, store.ErrNotFound):
		return nil, errUnmatched
	}
	return done, m.failed(err)
}

// changeError is an error of a store.Change.
type changeError struct{ error }

func (e changeError) Unwrap() error { return e.error }

// failed converts the error of a write that had the match as its precondition.
func (m match) failed(err error) error {
	if m.revision != "" && errors.Is(err, store.ErrConflict) {
		return errUnmatched
	}
	return err
}
