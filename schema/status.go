package schema

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types of an object's status, and reasons of Programmed.
const (
	ConditionAccepted   = "Accepted"
	ConditionResolved   = "ResolvedRefs"
	ConditionProgrammed = "Programmed"

	ReasonRejected     = "Rejected"     // a proxy rejects it
	ReasonPending      = "Pending"      // some proxies do not run it yet
	ReasonNoProxies    = "NoProxies"    // it concerns no proxy
	ReasonNoProxiesYet = "NoProxiesYet" // it concerns no known proxy, and a replica has just started
	ReasonUnknown      = "Unknown"      // a replica does not answer
)

// Status is the state of an object at the proxies. It is not part of the object:
// the server adds it to answers on request.
type Status struct {
	Programmed Programmed         `json:"programmed"`
	Conditions []metav1.Condition `json:"conditions"`
}

// Programmed counts the connected proxies that have an object in their
// configuration, and those of them that run this version of it. Fetched counts those over
// v1 that have fetched it: whether they run it cannot be known, and they are not among
// Running.
type Programmed struct {
	Proxies int `json:"proxies"`
	Running int `json:"running"`
	Fetched int `json:"fetched,omitempty"`
}

// Summary returns how far the proxies are, in words.
func (p Programmed) Summary() string {
	text := fmt.Sprintf("%d of %d proxies run it", p.Running, p.Proxies)
	if p.Fetched > 0 {
		text += fmt.Sprintf(", %d over v1 fetched it and cannot say whether they use it", p.Fetched)
	}
	return text
}

// Complete reports whether no proxy is known to lack it.
func (p Programmed) Complete() bool { return p.Running+p.Fetched == p.Proxies }

// Condition returns the condition of a type, or the zero value.
func (s *Status) Condition(kind string) metav1.Condition {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

// Summary returns the progress in a word, as 2/3, or with one over v1 as 2/3 +1 fetched.
func (s *Status) Summary() string {
	c := s.Condition(ConditionProgrammed)
	switch {
	case c.Reason == ReasonRejected:
		return ReasonRejected
	case c.Status == metav1.ConditionUnknown:
		return ReasonUnknown
	case c.Reason == ReasonPending && s.Programmed.Proxies == 0:
		return ReasonPending
	}
	text := fmt.Sprintf("%d/%d", s.Programmed.Running, s.Programmed.Proxies)
	if n := s.Programmed.Fetched; n > 0 {
		text += fmt.Sprintf(" +%d fetched", n)
	}
	return text
}

// ProgrammedColumn returns the column for Summary, which precedes the age in tables
// with a status.
func ProgrammedColumn() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{
		Name: "Programmed", Type: "string",
		Description: "Connected proxies that run this version, of those that it concerns; or Pending, Rejected, or Unknown where a replica does not answer or has just started.",
	}
}

// BeforeAge inserts an entry before the last one of a row or of its columns, the
// age.
func BeforeAge[T any](row []T, more T) []T {
	last := len(row) - 1
	return append(row[:last:last], more, row[last])
}
