package store_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

var reviews = schema.Key{Kind: "RouteRule", Namespace: "default", Name: "reviews"}

func TestStatusKeepsTheKind(t *testing.T) {
	for _, c := range []struct {
		kind   error
		code   int32
		reason metav1.StatusReason
	}{
		{store.ErrNotFound, http.StatusNotFound, metav1.StatusReasonNotFound},
		{store.ErrExists, http.StatusConflict, metav1.StatusReasonAlreadyExists},
		{store.ErrConflict, http.StatusConflict, metav1.StatusReasonConflict},
		{store.ErrInvalid, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid},
		{store.ErrExpired, http.StatusGone, metav1.StatusReasonExpired},
		{store.ErrFuture, http.StatusGatewayTimeout, metav1.StatusReasonTimeout},
		{store.ErrSlow, http.StatusGone, metav1.StatusReasonExpired},
		{store.ErrUnavailable, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable},
		{store.ErrTooLarge, http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge},
		{store.ErrFull, http.StatusInsufficientStorage, "InsufficientStorage"},
		{context.DeadlineExceeded, http.StatusGatewayTimeout, metav1.StatusReasonTimeout},
		{store.ErrOutcomeUnknown, http.StatusGatewayTimeout, metav1.StatusReasonTimeout},
	} {
		err := fmt.Errorf("wrapped: %w", &store.Error{Kind: c.kind, Key: reviews})
		status := store.ToStatus(err)
		if status.Code != c.code || status.Reason != c.reason || status.Status != metav1.StatusFailure {
			t.Errorf("%v is %d %s", c.kind, status.Code, status.Reason)
		}
		back := store.FromStatus(status)
		for _, other := range []error{
			store.ErrNotFound, store.ErrExists, store.ErrConflict, store.ErrInvalid, store.ErrExpired,
			store.ErrFuture, store.ErrSlow, store.ErrUnavailable, store.ErrTooLarge, store.ErrFull, context.DeadlineExceeded,
			store.ErrOutcomeUnknown,
		} {
			if got, want := errors.Is(back, other), errors.Is(c.kind, other); got != want {
				t.Errorf("%v came back as %v: errors.Is(%v) is %v", c.kind, back, other, got)
			}
		}
	}
}

// TestOnlyWhatWasNotDoneIsToBeRepeated checks which errors have a retry time, because
// client-go repeats even a create if the Status has one.
func TestOnlyWhatWasNotDoneIsToBeRepeated(t *testing.T) {
	for kind, want := range map[error]bool{
		store.ErrUnavailable: true, store.ErrFuture: true,
		store.ErrOutcomeUnknown: false, context.DeadlineExceeded: false, context.Canceled: false, errors.New("any"): false,
	} {
		details := store.ToStatus(kind).Details
		if got := details != nil && details.RetryAfterSeconds > 0; got != want {
			t.Errorf("%v is to be repeated: %v, want %v", kind, got, want)
		}
	}
}

// TestStatusIsThatOfTheOutermostError checks that the Cause of an error, of any kind,
// does not change its Status.
func TestStatusIsThatOfTheOutermostError(t *testing.T) {
	for _, cause := range []error{
		&store.Error{Kind: store.ErrFuture, Cause: context.DeadlineExceeded},
		&store.Error{Kind: store.ErrNotFound, Key: reviews},
		context.DeadlineExceeded,
	} {
		err := fmt.Errorf("wrapped: %w", &store.Error{Kind: store.ErrUnavailable, Detail: "not in time", Cause: cause})
		status := store.ToStatus(err)
		if status.Reason != metav1.StatusReasonServiceUnavailable || status.Message != "not in time" {
			t.Errorf("because of %v: %d %s, %q", cause, status.Code, status.Reason, status.Message)
		}
	}
}

func TestStatusMessages(t *testing.T) {
	cause := errors.New("dial tcp 10.0.0.1:2379: secret")
	problem := diag.Problem{
		Severity: diag.Error, Reason: diag.FieldInvalid, Object: reviews.Ref(),
		Field: "spec.route[0].weight", Value: "101", Message: "must be between 0 and 100",
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{&store.Error{Kind: store.ErrNotFound, Key: reviews}, `routerules.config.istio.io "reviews" not found`},
		{&store.Error{Kind: store.ErrExists, Key: reviews}, `routerules.config.istio.io "reviews" already exists`},
		{&store.Error{Kind: store.ErrConflict, Key: reviews, Detail: "it was changed"},
			`Operation cannot be fulfilled on routerules.config.istio.io "reviews": it was changed`},
		{&store.Error{Kind: store.ErrInvalid, Key: reviews, Problems: diag.List{problem}},
			`routerules.config.istio.io "reviews" is invalid: spec.route[0].weight: must be between 0 and 100, found 101`},
		{&store.Error{Kind: store.ErrUnavailable, Detail: "etcd does not answer", Cause: cause}, "etcd does not answer"},
		{&store.Error{Kind: store.ErrUnavailable, Cause: cause}, "store unavailable"},
		{context.DeadlineExceeded, "the request took too long"},
		{cause, "internal error"},
	} {
		status := store.ToStatus(c.err)
		if status.Message != c.want {
			t.Errorf("%v:\n got %s\nwant %s", c.err, status.Message, c.want)
		}
		if strings.Contains(fmt.Sprint(status), "secret") {
			t.Errorf("%v tells its cause: %v", c.err, status)
		}
	}
}

func TestStatusCarriesProblems(t *testing.T) {
	err := &store.Error{Kind: store.ErrInvalid, Key: reviews, Problems: diag.List{
		{Severity: diag.Error, Reason: diag.FieldRequired, Field: "spec.destination", Message: "is required"},
		{Severity: diag.Error, Reason: diag.FieldUnknown, Field: "spec.rout", Message: "no such field"},
	}}
	status := store.ToStatus(err)
	want := &metav1.StatusDetails{
		Name: "reviews", Group: "config.istio.io", Kind: "routerules",
		Causes: []metav1.StatusCause{
			{Type: "FieldValueRequired", Field: "spec.destination", Message: "is required"},
			{Type: "FieldUnknown", Field: "spec.rout", Message: "no such field"},
		},
	}
	if diff := cmp.Diff(want, status.Details); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
	var back *store.Error
	if !errors.As(store.FromStatus(status), &back) {
		t.Fatal("no *store.Error came back")
	}
	var fields []string
	for _, p := range back.Problems {
		fields = append(fields, p.Field)
	}
	if diff := cmp.Diff([]string{"spec.destination", "spec.rout"}, fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestStatusOfOthers(t *testing.T) {
	for _, c := range []struct {
		status *metav1.Status
		kind   error // nil for an error of no kind
	}{
		{&metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonTooManyRequests, Code: 429}, store.ErrUnavailable},
		{&metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonServerTimeout, Code: 504}, store.ErrUnavailable},
		{&metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonBadRequest, Code: 400}, store.ErrInvalid},
		{&metav1.Status{Status: metav1.StatusFailure, Code: 503, Message: "a proxy's own words"}, store.ErrUnavailable},
		{&metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: 403}, nil},
	} {
		err := store.FromStatus(c.status)
		if err == nil || c.kind != nil && !errors.Is(err, c.kind) {
			t.Errorf("%+v became %v", c.status, err)
		}
	}
	for _, good := range []*metav1.Status{nil, {Status: metav1.StatusSuccess}} {
		if err := store.FromStatus(good); err != nil {
			t.Errorf("%+v became %v", good, err)
		}
	}
}

// TestMessageCostsItsLength checks that the message of many problems is built once, not
// again for each of them.
func TestMessageCostsItsLength(t *testing.T) {
	problems := make(diag.List, 5000)
	for i := range problems {
		problems[i] = diag.Problem{Severity: diag.Error, Reason: diag.FieldInvalid, Field: "spec.a", Message: strings.Repeat("x", 100)}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	status := store.ToStatus(&store.Error{Kind: store.ErrInvalid, Problems: problems})
	runtime.ReadMemStats(&after)
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(20*len(status.Message)); got > most {
		t.Errorf("%d bytes are allocated for a message of %d, want at most %d", got, len(status.Message), most)
	}
}
