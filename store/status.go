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

// Causes that tell apart two failures with the same reason. The first is the
// one of Kubernetes.
const (
	causeFuture metav1.CauseType = metav1.CauseTypeResourceVersionTooLarge
	causeSlow   metav1.CauseType = "WatcherTooSlow"
	causeUnsure metav1.CauseType = "OutcomeUnknown"
	// causeOp names the operation of a transaction that failed.
	causeOp metav1.CauseType = "OperationFailed"
)

// reasonFull has no counterpart in Kubernetes, whose API server answers 500 when
// etcd is full. Without a time to retry after, clients tell their users instead
// of trying for ever.
const reasonFull metav1.StatusReason = "InsufficientStorage"

// statusRow is one kind of failure as it goes over the wire. The reasons and
// codes are those of the Kubernetes API conventions; a cause, if there is one,
// is part of the match.
type statusRow struct {
	kind   error
	code   int32
	reason metav1.StatusReason
	cause  metav1.CauseType
	// retry is the seconds after which to try again, 0 for "not like this".
	// Kubernetes clients repeat even a create by themselves when they are
	// told, so only what was certainly not done may have it.
	retry int32
}

// statusTable is read both ways, the first row that matches counts.
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
	// A request that the server cannot even read is invalid to the caller.
	{kind: ErrInvalid, code: http.StatusBadRequest, reason: metav1.StatusReasonBadRequest},
}

// ToStatus is an error as a client may see it: its kind as reason and code,
// the object it is about, field errors as causes. What lies behind it (Cause)
// is for logs and never part of it; an error that is no kind of failure of
// this package is an internal error without any detail.
func ToStatus(err error) *metav1.Status {
	status := &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Reason:   metav1.StatusReasonInternalError,
		Code:     http.StatusInternalServerError,
		Message:  "internal error",
	}
	// An Error's own kind decides, not that of what lies behind it.
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

// ToTxnStatus is ToStatus for an error of a transaction: it names the operation
// that failed, if it was one of them, and fields as they are in a list of
// operations.
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

// InOp says in the message and as a cause of a failure which operation of a
// transaction it is of.
func InOp(status *metav1.Status, index int, why string) {
	at := opField(index)
	status.Message = at + ": " + status.Message
	if status.Details == nil {
		status.Details = &metav1.StatusDetails{}
	}
	status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Type: causeOp, Field: at, Message: why})
}

const (
	opsField = "operations["
	opObject = ".object."
)

func opField(index int) string { return opsField + strconv.Itoa(index) + "]" }

// failedOp is the index that ToTxnStatus gave, and 0 otherwise.
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

// publicMessage is the sentence a Kubernetes user knows, with our detail.
func publicMessage(row statusRow, e *Error) string {
	what := e.Key.Name
	if kind, ok := schema.KindByName(e.Key.Kind); ok {
		what = fmt.Sprintf("%s.%s %q", kind.Plural, kind.Group, e.Key.Name)
	}
	detail := e.Detail
	if detail == "" && len(e.Problems) > 0 {
		detail = problemText(e.Problems)
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
		p.Object = diag.Ref{} // Named at the head of the message.
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

// FromStatus is ToStatus read backwards: errors.Is holds for the same kinds on
// the far side of the network, and the causes are Problems again. A Status that
// no row of the table knows becomes an error with its message. It is nil for
// nil and for a success.
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
	// Something between us and the server answered in its own words.
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
	for _, c := range status.Details.Causes {
		if c.Type == causeOp {
			continue
		}
		if _, field, ok := strings.Cut(c.Field, opObject); ok && strings.HasPrefix(c.Field, opsField) {
			c.Field = field
		}
		out = append(out, diag.Problem{
			Severity: diag.Error, Reason: diag.Reason(c.Type),
			Object: diag.Ref{Name: status.Details.Name}, Field: c.Field, Message: c.Message,
		})
	}
	return out
}
