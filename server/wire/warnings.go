package wire

import (
	"fmt"
	"net/http"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/internal/terminal"
	"github.com/pilot-api/pilot-api/store"
)

// Bounds of the warnings in one answer: a client's limit on header bytes must not
// turn a successful write into a failure.
const (
	maxWarnings     = 10
	maxWarningBytes = 1 << 10 // of one warning
)

// Warn sends warnings as Kubernetes clients expect them.
func Warn(w http.ResponseWriter, warnings diag.List) {
	for i, p := range warnings {
		text := oneLine(p.Coded())
		if i == maxWarnings {
			text = fmt.Sprintf("%d more warnings", len(warnings)-i)
		}
		AddWarning(w, text)
		if i == maxWarnings {
			return
		}
	}
}

// AddWarning adds a Warning header, which clients show to people.
func AddWarning(w http.ResponseWriter, text string) {
	if header, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
		w.Header().Add("Warning", header)
	}
}

// WarnOfUnreadable warns of the stored values that an answer about a scope leaves
// out, so that nobody takes the answer for complete.
func WarnOfUnreadable(w http.ResponseWriter, reads store.Reader, scope store.Scope) {
	var warnings diag.List
	for _, u := range store.UnreadableIn(reads, scope) {
		warnings = append(warnings, u.Problem())
	}
	Warn(w, warnings)
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
