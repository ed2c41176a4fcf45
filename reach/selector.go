package reach

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/mesh"
)

// Selector selects callers or services. The zero value selects all.
type Selector struct {
	host, namespace, account string
	outside                  bool
}

// ParseSelector reads a selector: a host such as reviews, reviews.default or
// reviews.default.svc.cluster.local, namespace/NAME, account/NAMESPACE/NAME, or outside; "" selects
// all. The last two are only for callers.
func ParseSelector(text string, callers bool) (Selector, error) {
	parts := strings.Split(text, "/")
	switch {
	case text == "":
		return Selector{}, nil
	case text == explain.Outside && callers:
		return Selector{outside: true}, nil
	case len(parts) == 1:
		return Selector{host: strings.ToLower(strings.TrimSuffix(text, "."))}, nil
	case parts[0] == "namespace" && len(parts) == 2 && parts[1] != "":
		return Selector{namespace: parts[1]}, nil
	case parts[0] == "account" && len(parts) == 3 && parts[1] != "" && parts[2] != "" && callers:
		return Selector{namespace: parts[1], account: parts[2]}, nil
	}
	allowed := "a service such as reviews.default, or namespace/NAME"
	if callers {
		allowed = "a service such as reviews.default, namespace/NAME, account/NAMESPACE/NAME, or outside"
	}
	return Selector{}, fmt.Errorf("%q: use %s", text, allowed)
}

// all reports whether it selects everything.
func (s Selector) all() bool { return s == Selector{} }

// takes reports whether a service is selected.
func (s Selector) takes(svc *mesh.Service, domain string) bool {
	if s.host != "" {
		host := strings.ToLower(svc.Hostname)
		return host == s.host || host == s.host+".svc."+domain || host == s.host+"."+svc.Namespace+".svc."+domain
	}
	return !s.outside && (s.namespace == "" || s.namespace == svc.Namespace)
}

// takesAccount reports whether an account of a selected service is selected.
func (s Selector) takesAccount(account string) bool { return s.account == "" || s.account == account }

// The errors of a question.
var (
	// ErrNothing means that a selector selects nothing.
	ErrNothing = errors.New("nothing is selected")
	// ErrTooMuch means that an answer would take too long.
	ErrTooMuch = errors.New("too many calls")
)
