package store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// Causes that distinguish two failures with the same reason. The first cause is that of
// Kubernetes.
const (
	causeFuture metav1.CauseType = metav1.CauseTypeResourceVersionTooLarge
	causeSlow   metav1.CauseType = "WatcherTooSlow"
	causeUnsure metav1.CauseType = "OutcomeUnknown"
	// causeOp names the operation of a transaction that failed.
	causeOp metav1.CauseType = "OperationFailed"
)

// reasonFull has no counterpart in Kubernetes, whose API server answers 500 when etcd
// is full. It has no retry time, so clients report the failure instead of retrying
// forever.
const reasonFull metav1.StatusReason = "InsufficientStorage"

// statusRow describes how one kind of failure is sent over the wire. The reasons and
// codes are those of the Kubernetes API conventions. If there is a cause, it is part of
// the match.
type statusRow struct {
	kind   error
	code   int32
	reason metav1.StatusReason
	cause  metav1.CauseType
	// retry is the number of seconds after which to retry; 0 means not to retry.
	// Kubernetes clients repeat even a create if there is a retry time, so only
	// failures that certainly wrote nothing may have one.
	retry int32
}

// statusTable is used for encoding and decoding. The first row that matches counts.
var statusTable = []statusRow{
	{kind: ErrNotFound, code: http.StatusNotFound, reason: metav1.StatusReasonNotFound},
	{kind: ErrExists, code: http.StatusConflict, reason: metav1.StatusReasonAlreadyExists},
	{kind: ErrConflict, code: http.StatusConflict, reason: metav1.StatusReasonConflict},
	{kind: ErrInvalid, code: http.StatusUnprocessableEntity, reason: metav1.StatusReasonInvalid},
	{kind: ErrSlow, code: http.StatusGone, reason: metav1.StatusReasonExpired, cause: causeSlow},
	{kind: ErrExpired, code: http.StatusGone, reason: metav1.StatusReasonExpired},
	{kind: ErrFuture, code: http.StatusGatewayTimeout, reason: metav1.StatusReasonTimeout, cause: causeFuture, retry: 1},
	{kind: ErrOutcomeUnknown, code: http.StatusGatewayTimeout, reason: metav1.StatusReasonTimeout, cause: causeUnsure},
	{kind: ErrUnavailable, code: http.StatusServiceUnavailable, reason: metav1.StatusReasonServiceUnavailable, retry: 1},
	{kind: ErrTooLarge, code: http.StatusRequestEntityTooLarge, reason: metav1.StatusReasonRequestEntityTooLarge},
	{kind: ErrUnreadable, code: http.StatusInternalServerError, reason: metav1.StatusReasonStoreReadError},
	{kind: ErrFull, code: http.StatusInsufficientStorage, reason: reasonFull},
	{kind: context.DeadlineExceeded, code: http.StatusGatewayTimeout, reason: metav1.StatusReasonTimeout},
	{kind: ErrUnavailable, code: http.StatusGatewayTimeout, reason: metav1.StatusReasonServerTimeout, retry: 1},
	{kind: ErrUnavailable, code: http.StatusTooManyRequests, reason: metav1.StatusReasonTooManyRequests, retry: 1},
	// A request that the server cannot parse is invalid to the caller.
	{kind: ErrInvalid, code: http.StatusBadRequest, reason: metav1.StatusReasonBadRequest},
}

// ToStatus converts an error to the Status for a client: its kind becomes the reason and
// code, and its field errors become causes. Error.Cause is for logs and never included. An
// error of no kind of this package is an internal error without any detail.
func ToStatus(err error) *metav1.Status {
	status := &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Reason:   metav1.StatusReasonInternalError,
		Code:     http.StatusInternalServerError,
		Message:  "internal error",
	}
	// An Error's own kind decides, not the kind of its Cause.
	e := &Error{Kind: err}
	errors.As(err, &e)
	for _, row := range statusTable {
		if errors.Is(e.Kind, row.kind) {
			row.fill(status, e)
			break
		}
	}
	return status
}

// ToTxnStatus is ToStatus for an error of a transaction. It names the operation that
// failed, if the error has one, and field paths within the list of operations.
func ToTxnStatus(err error) *metav1.Status {
	status := ToStatus(err)
	var e *Error
	if !errors.As(err, &e) || e.Key == (schema.Key{}) || status.Details == nil {
		return status
	}
	at := opField(e.Index)
	for i, c := range status.Details.Causes {
		if c.Field != "" {
			status.Details.Causes[i].Field = at + opObject + c.Field
		}
	}
	InOp(status, e.Index, e.Kind.Error())
	return status
}

// InOp adds the failed operation of a transaction to a failure: in its message, and as a
// cause.
func InOp(status *metav1.Status, index int, why string) {
	at := opField(index)
	status.Message = at + ": " + status.Message
	if status.Details == nil {
		status.Details = &metav1.StatusDetails{}
	}
	status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Type: causeOp, Field: at, Message: why})
}

const (
	opsField = "spec.operations["
	opObject = ".object."
)

func opField(index int) string { return opsField + strconv.Itoa(index) + "]" }

// failedOp returns the index that ToTxnStatus set, or 0.
func failedOp(status *metav1.Status) int {
	if status.Details == nil {
		return 0
	}
	for _, c := range status.Details.Causes {
		if c.Type == causeOp {
			index, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(c.Field, opsField), "]"))
			return index
		}
	}
	return 0
}

func (row statusRow) fill(status *metav1.Status, e *Error) {
	status.Reason, status.Code = row.reason, row.code
	status.Message = publicMessage(row, e)
	details := &metav1.StatusDetails{
		Name: e.Key.Name, Causes: causes(e.Problems), RetryAfterSeconds: row.retry,
	}
	if kind, ok := schema.KindByName(e.Key.Kind); ok {
		details.Group, details.Kind = kind.Group, kind.Plural
	}
	if row.cause != "" {
		details.Causes = append(details.Causes, metav1.StatusCause{Type: row.cause, Message: row.kind.Error()})
	}
	if details.Name != "" || details.Kind != "" || len(details.Causes) > 0 || details.RetryAfterSeconds > 0 {
		status.Details = details
	}
}

// publicMessage returns the sentence known from Kubernetes with the error's detail.
func publicMessage(row statusRow, e *Error) string {
	what := e.Key.Name
	if kind, ok := schema.KindByName(e.Key.Kind); ok {
		what = fmt.Sprintf("%s %q", strings.TrimSuffix(kind.Plural+"."+kind.Group, "."), e.Key.Name)
	}
	detail := e.Detail
	if detail == "" && len(e.Problems) > 0 {
		detail = problemText(e.Problems)
	}
	if detail == "" && row.kind == context.DeadlineExceeded {
		detail = "the request took too long"
	}
	switch {
	case what == "" && detail == "":
		return row.kind.Error()
	case what == "":
		return detail
	case detail == "":
		return what + " " + row.kind.Error()
	case row.kind == ErrConflict:
		return "Operation cannot be fulfilled on " + what + ": " + detail
	default:
		return what + " " + row.verb() + ": " + detail
	}
}

func (row statusRow) verb() string {
	if row.kind == ErrInvalid {
		return "is invalid"
	}
	return row.kind.Error()
}

func problemText(problems diag.List) string {
	texts := make([]string, len(problems))
	for i, p := range problems {
		p.Object = diag.Ref{} // The head of the message names it.
		texts[i] = p.String()
	}
	return strings.Join(texts, "; ")
}

func causes(problems diag.List) []metav1.StatusCause {
	var out []metav1.StatusCause
	for _, p := range problems {
		message := p.Message
		if p.Value != "" {
			message += ", found " + p.Value
		}
		out = append(out, metav1.StatusCause{Type: metav1.CauseType(p.Reason), Field: p.Field, Message: message})
	}
	return out
}

// FromStatus decodes the result of ToStatus: errors.Is reports the same kinds on the
// other side of the network, and the causes are Problems again. A Status that matches
// no row of the table becomes an error with its message. The result is nil for nil and
// for a success.
func FromStatus(status *metav1.Status) error {
	if status == nil || status.Status == metav1.StatusSuccess {
		return nil
	}
	row, ok := rowOf(status)
	if !ok {
		return fmt.Errorf("server: %s (%d %s)", status.Message, status.Code, status.Reason)
	}
	return &Error{Kind: row.kind, Index: failedOp(status), Detail: status.Message, Problems: problems(status)}
}

func rowOf(status *metav1.Status) (statusRow, bool) {
	for _, row := range statusTable {
		if row.reason == status.Reason && (row.cause == "" || hasCause(status, row.cause)) {
			return row, true
		}
	}
	// Something between the client and the server answered in its own format.
	for _, row := range statusTable {
		if row.code == status.Code && row.cause == "" && status.Reason == metav1.StatusReasonUnknown {
			return row, true
		}
	}
	return statusRow{}, false
}

func hasCause(status *metav1.Status, cause metav1.CauseType) bool {
	if status.Details == nil {
		return false
	}
	for _, c := range status.Details.Causes {
		if c.Type == cause {
			return true
		}
	}
	return false
}

func problems(status *metav1.Status) diag.List {
	if status.Details == nil || status.Reason != metav1.StatusReasonInvalid {
		return nil
	}
	var out diag.List
	first := failedOp(status)
	for _, c := range status.Details.Causes {
		if c.Type == causeOp {
			continue
		}
		if strings.HasPrefix(c.Field, opsField) {
			field, ok := strings.CutPrefix(c.Field, opField(first)+opObject)
			if !ok {
				continue // The message names the other operations.
			}
			c.Field = field
		}
		out = append(out, diag.Problem{
			Severity: diag.Error, Reason: diag.Reason(c.Type),
			Object: diag.Ref{Name: status.Details.Name}, Field: c.Field, Message: c.Message,
		})
	}
	return out
}
