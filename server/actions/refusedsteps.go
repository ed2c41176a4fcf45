package actions

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/dryrun"
	"github.com/pilot-api/pilot-api/server/intake"
	"github.com/pilot-api/pilot-api/store"
)

// failedTransaction converts the error of a whole transaction for the client.
func failedTransaction(err error) error {
	var e *store.Error
	if !errors.As(err, &e) || e.Cause != nil {
		return err // The cause is for the log.
	}
	return &apierrors.StatusError{ErrStatus: *store.ToTxnStatus(err)}
}

// atOperation adds to an error the operation that cannot be read or does not fit.
func atOperation(err error, index int, key schema.Key) error {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		st := status.Status()
		st.Details = st.Details.DeepCopy() // errNameless is shared.
		store.InOp(&st, index, string(st.Reason))
		return &apierrors.StatusError{ErrStatus: st}
	}
	var e *store.Error
	if errors.As(err, &e) && e.Key == (schema.Key{}) {
		named := *e
		named.Key = key
		err = &named
	}
	return failedTransaction(store.AtIndex(err, index))
}

// refusedSteps returns the error of a transaction that the store refused with err. The
// store stops at the first step that it cannot do; the error names all of them.
func (h *Handler) refusedSteps(ctx context.Context, steps []step, err error) error {
	refused := failedTransaction(err)
	if !refusesStep(refused) {
		return refused
	}
	var status apierrors.APIStatus
	writes, errs, found := dryrun.Unchecked(h.opts.Store, h.opts.MaxTransaction), make([]error, len(steps)), false
	for i, one := range steps {
		_, err := writes.Evaluate(ctx, one.Op)
		switch {
		case err == nil:
			continue
		case !errors.As(err, &status): // The function of a step names it itself.
			err = atOperation(err, i, one.Target())
		}
		if refusesStep(err) {
			errs[i], found = err, true
		}
	}
	var e *store.Error
	if errors.As(err, &e) && e.Key != (schema.Key{}) && e.Index < len(errs) {
		errs[e.Index], found = refused, true // The objects may have changed since.
	}
	if !found {
		return refused
	}
	return together(errs)
}

// refusesStep reports whether an error is about a single operation and the object that
// it is for, and not about the time, the size or the state of the server.
func refusesStep(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch status.Status().Reason {
	case metav1.StatusReasonNotFound, metav1.StatusReasonAlreadyExists, metav1.StatusReasonConflict, metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest:
		return true
	}
	return false
}

// together returns one error for all operations that failed: errs has one for each
// operation, nil for those that did not. The code and reason are those of the first.
// The error names at most intake.MaxErrors operations. An error of another kind than
// refusesStep is returned alone.
func together(errs []error) error {
	var failed []metav1.Status
	for _, err := range errs {
		var status apierrors.APIStatus
		switch {
		case err == nil:
		case refusesStep(err) && errors.As(err, &status):
			failed = append(failed, status.Status())
		default:
			return err
		}
	}
	if len(failed) == 0 {
		return nil
	}
	all := failed[0]
	if len(failed) > 1 {
		all.Message, all.Details = wordsOf(failed), &metav1.StatusDetails{}
		for _, one := range failed[:min(len(failed), intake.MaxErrors)] {
			all.Details.Causes = append(all.Details.Causes, one.Details.Causes...)
		}
	}
	return &apierrors.StatusError{ErrStatus: all}
}

// wordsOf returns the messages of several failed operations.
func wordsOf(failed []metav1.Status) string {
	var texts []string
	for _, one := range failed[:min(len(failed), intake.MaxErrors)] {
		texts = append(texts, one.Message)
	}
	if more := len(failed) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}
