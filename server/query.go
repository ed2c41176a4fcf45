package server

import (
	"context"
	"net/url"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// anyParams are query parameters that Kubernetes clients send with any request. pretty has no
// effect here.
var anyParams = []string{"pretty", "timeout"}

// params returns the query parameters of an endpoint: its own, and those of any request.
func params(names ...string) []string { return append(slices.Clone(anyParams), names...) }

// kindNamed returns the kind that a field names.
func kindNamed(field, name string) (*schema.Kind, error) {
	if kind, ok := schema.KindByName(name); ok {
		return kind, nil
	}
	return nil, wire.BadRequest("%s: there is no kind %q; %s", field, name, schema.Suggest(name, schema.KindNames(), "there are"))
}

// atLeastParam converts a resourceVersion to the freshness that it asks for, by the
// Kubernetes rules: unset means the newest, "0" means any, another value means not
// older than that.
func atLeastParam(q url.Values) (int64, error) {
	n, err := wire.CountParam(q, "resourceVersion")
	if err != nil {
		return 0, wire.BadParam(q, "resourceVersion", "the resourceVersion of an object or a list, or 0")
	}
	if n == 0 && q.Get("resourceVersion") != "" {
		return store.Any, nil
	}
	return n, nil
}

// listOptions reads resourceVersion together with resourceVersionMatch.
func listOptions(q url.Values) (store.ListOptions, error) {
	atLeast, err := atLeastParam(q)
	if err != nil {
		return store.ListOptions{}, err
	}
	match, err := wire.ChoiceParam(q, "resourceVersionMatch",
		string(metav1.ResourceVersionMatchExact), string(metav1.ResourceVersionMatchNotOlderThan))
	switch {
	case err != nil:
		return store.ListOptions{}, err
	case match == "":
		return store.ListOptions{AtLeast: atLeast}, nil
	case q.Get("resourceVersion") == "":
		return store.ListOptions{}, wire.BadRequest("query parameter resourceVersionMatch: only allowed together with resourceVersion")
	case match == string(metav1.ResourceVersionMatchNotOlderThan):
		return store.ListOptions{AtLeast: atLeast}, nil
	case atLeast == store.Any:
		return store.ListOptions{}, wire.BadRequest("query parameter resourceVersionMatch: Exact needs a resourceVersion other than 0")
	}
	return store.ListOptions{Exact: atLeast}, nil
}

// waiting bounds a read that asks for a revision, which may never come, by timeout. Other
// reads end with ctx.
func waiting(ctx context.Context, atLeast int64, timeout time.Duration) (context.Context, context.CancelFunc) {
	if atLeast > 0 {
		return context.WithTimeout(ctx, timeout)
	}
	return ctx, func() {}
}

func badListOption(param, detail string) error {
	return apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "",
		field.ErrorList{field.Forbidden(field.NewPath(param), detail)})
}
