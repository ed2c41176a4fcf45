package wire

import (
	"context"
	"net/url"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// anyParams are query parameters that Kubernetes clients send with any request. pretty has no
// effect here.
var anyParams = []string{"pretty", "timeout"}

// Params returns the query parameters of an endpoint: its own, and those of any request.
func Params(names ...string) []string { return append(slices.Clone(anyParams), names...) }

// KindNamed returns the kind that a field names.
func KindNamed(field, name string) (*schema.Kind, error) {
	if kind, ok := schema.KindByName(name); ok {
		return kind, nil
	}
	return nil, BadRequest("%s: there is no kind %q; %s", field, name, schema.Suggest(name, schema.KindNames(), "there are"))
}

// AtLeastParam converts a resourceVersion to the freshness that it asks for, by the
// Kubernetes rules: unset means the newest, "0" means any, another value means not
// older than that.
func AtLeastParam(q url.Values) (int64, error) {
	n, err := CountParam(q, "resourceVersion")
	if err != nil {
		return 0, BadParam(q, "resourceVersion", "the resourceVersion of an object or a list, or 0")
	}
	if n == 0 && q.Get("resourceVersion") != "" {
		return store.Any, nil
	}
	return n, nil
}

// ListOptions reads resourceVersion together with resourceVersionMatch.
func ListOptions(q url.Values) (store.ListOptions, error) {
	atLeast, err := AtLeastParam(q)
	if err != nil {
		return store.ListOptions{}, err
	}
	match, err := ChoiceParam(q, "resourceVersionMatch",
		string(metav1.ResourceVersionMatchExact), string(metav1.ResourceVersionMatchNotOlderThan))
	switch {
	case err != nil:
		return store.ListOptions{}, err
	case match == "":
		return store.ListOptions{AtLeast: atLeast}, nil
	case q.Get("resourceVersion") == "":
		return store.ListOptions{}, BadRequest("query parameter resourceVersionMatch: only allowed together with resourceVersion")
	case match == string(metav1.ResourceVersionMatchNotOlderThan):
		return store.ListOptions{AtLeast: atLeast}, nil
	case atLeast == store.Any:
		return store.ListOptions{}, BadRequest("query parameter resourceVersionMatch: Exact needs a resourceVersion other than 0")
	}
	return store.ListOptions{Exact: atLeast}, nil
}

// Waiting applies timeout to a read that asks for a revision, because that revision may
// never come. Other reads end with ctx.
func Waiting(ctx context.Context, atLeast int64, timeout time.Duration) (context.Context, context.CancelFunc) {
	if atLeast > 0 {
		return context.WithTimeout(ctx, timeout)
	}
	return ctx, func() {}
}

// BadListOption is the Status 422 of a parameter of a list or a watch, as in Kubernetes.
func BadListOption(param, detail string) error {
	return apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "",
		field.ErrorList{field.Forbidden(field.NewPath(param), detail)})
}
