package wire

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/internal/terminal"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// harmless returns a Status whose texts cannot steer the terminal of a client that prints
// them. Its causes and message repeat what a request said.
func harmless(status *metav1.Status) *metav1.Status {
	safe := status.DeepCopy()
	safe.Message = terminal.Escape(safe.Message)
	if safe.Details == nil {
		return safe
	}
	safe.Details.Name = terminal.Line(safe.Details.Name)
	for i := range safe.Details.Causes {
		cause := &safe.Details.Causes[i]
		cause.Field, cause.Message = terminal.Line(cause.Field), terminal.Escape(cause.Message)
	}
	return safe
}

// StatusOf returns the Status of any failure. Failures of the request are
// apierrors.StatusErrors already. Any other failure comes from the store, even if its cause
// is a StatusError.
func StatusOf(err error) *metav1.Status {
	status := store.ToStatus(err)
	var known apierrors.APIStatus
	var own *store.Error
	if !errors.As(err, &own) && errors.As(err, &known) {
		st := known.Status()
		status = &st
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return harmless(status)
}

// Refused returns the failure for an object with problems: 400 if its text could
// not be read at all, otherwise 422 with a cause for each field.
func Refused(problems diag.List) error {
	errs := problems.Errors()
	failure := &store.Error{Kind: store.ErrInvalid, Problems: errs}
	for _, p := range errs {
		if p.Reason == diag.Malformed {
			status := store.ToStatus(failure)
			status.Code, status.Reason = http.StatusBadRequest, metav1.StatusReasonBadRequest
			return &apierrors.StatusError{ErrStatus: *status}
		}
		if (p.Object != diag.Ref{}) {
			failure.Key = schema.Key(p.Object)
		}
	}
	return failure
}
