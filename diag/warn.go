package diag

import "fmt"

// Warn returns the same warning for each origin of a piece of generated
// configuration. For a piece without origins it returns one warning without an
// object.
func Warn(reason Reason, origins []Ref, format string, args ...any) List {
	if len(origins) == 0 {
		origins = []Ref{{}}
	}
	message := fmt.Sprintf(format, args...)
	out := make(List, len(origins))
	for i, o := range origins {
		out[i] = Problem{Severity: Warning, Reason: reason, Object: o, Message: message}
	}
	return out
}
