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
// configuration, and those of them that run this version of it.
type Programmed struct {
	Proxies int `json:"proxies"`
	Running int `json:"running"`
}

// Condition returns the condition of a type, or the zero value.
func (s *Status) Condition(kind string) metav1.Condition {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

// Summary returns the progress in a word, or as 2/3.
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
	return fmt.Sprintf("%d/%d", s.Programmed.Running, s.Programmed.Proxies)
}

// ProgrammedColumn returns the column for Summary, which precedes the age in tables
// with a status.
func ProgrammedColumn(wide bool) metav1.TableColumnDefinition {
	c := metav1.TableColumnDefinition{
		Name: "Programmed", Type: "string",
		Description: "Connected proxies that run this version, of those that it concerns; or Pending, Rejected, or Unknown where a replica does not answer or has just started.",
	}
	if wide {
		c.Priority = 1
	}
	return c
}

// BeforeAge inserts an entry before the last one of a row or of its columns, the
// age.
func BeforeAge[T any](row []T, more T) []T {
	last := len(row) - 1
	return append(row[:last:last], more, row[last])
}
