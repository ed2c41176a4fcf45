package status

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

func textOf(s schema.Status) []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // Strings and numbers always encode.
	}
	return text
}

// sameStatus compares everything except times.
func sameStatus(s, other schema.Status) bool {
	if s.Programmed != other.Programmed {
		return false
	}
	for i, c := range s.Conditions {
		o := other.Conditions[i]
		if c.Status != o.Status || c.Reason != o.Reason || c.Message != o.Message {
			return false
		}
	}
	return true
}

func statusOf(o *schema.Object, s fleetStatus) schema.Status {
	return schema.Status{
		Programmed: s.programmed(),
		Conditions: []metav1.Condition{accepted(o, s.Problems), resolved(o, s.Problems), programmedBy(o, s)},
	}
}

func condition(o *schema.Object, kind string, holds bool, reason, message string) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: o.Meta.Generation}
	if holds {
		c.Status = metav1.ConditionTrue
	}
	return c
}

// accepted returns the condition that everything in the object is honoured. Its
// message says whether a problem stops the whole object or closes a part of it.
func accepted(o *schema.Object, problems diag.List) metav1.Condition {
	if p := unhonoured(problems); p != nil {
		return condition(o, schema.ConditionAccepted, false, reasonOf(*p), tell(*p))
	}
	return condition(o, schema.ConditionAccepted, true, schema.ConditionAccepted, "")
}

// unhonoured returns the problem that keeps an object from being honoured, or nil.
// It prefers problems that are not about references.
func unhonoured(problems diag.List) *diag.Problem {
	var found *diag.Problem
	for _, p := range problems.Unhonoured() {
		if !isReference(p) {
			return &p
		}
		if found == nil {
			found = &p
		}
	}
	return found
}

// resolved returns the condition that everything that the object refers to exists. Of several
// references it tells one that keeps the object from being honoured, as accepted does. So
// equal messages mean that only references are missing.
func resolved(o *schema.Object, problems diag.List) metav1.Condition {
	var found *diag.Problem
	for _, p := range problems {
		if isReference(p) && (found == nil || p.Unhonoured() && !found.Unhonoured()) {
			found = &p
		}
	}
	if found == nil {
		return condition(o, schema.ConditionResolved, true, schema.ConditionResolved, "")
	}
	return condition(o, schema.ConditionResolved, false, reasonOf(*found), tell(*found))
}

// reasonOf returns the name of the problem's message.
func reasonOf(p diag.Problem) string {
	if m, ok := p.Code.Message(); ok {
		return m.Name
	}
	return string(p.Reason)
}

func isReference(p diag.Problem) bool { return p.Reason == diag.NoSuchReference }

func tell(p diag.Problem) string {
	return strings.TrimPrefix(p.Field+": "+p.Message, ": ")
}

// programmedBy returns the condition that all proxies which the object concerns run
// it and do what it says. The proxies of a replica that does not answer are
// unknown, and those of one that is missing do not count.
func programmedBy(o *schema.Object, s fleetStatus) metav1.Condition {
	far := s.programmed().Summary()
	if s.Away > 0 {
		far += fmt.Sprintf(", %d lost the connection and may come back", s.Away)
	}
	switch {
	case len(s.Refusals) > 0:
		r := s.Refusals[0]
		message := r.String()
		if more := len(s.Refusals) - 1; more > 0 {
			message += fmt.Sprintf(" (and %d more)", more)
		}
		return condition(o, schema.ConditionProgrammed, false, schema.ReasonRejected, message)
	case unhonoured(s.Problems) != nil:
		p := unhonoured(s.Problems)
		return condition(o, schema.ConditionProgrammed, false, reasonOf(*p), "not all of it is honoured: "+tell(*p))
	case !s.programmed().Complete() || len(s.behind) > 0:
		return condition(o, schema.ConditionProgrammed, false, schema.ReasonPending, strings.Join(slices.Concat([]string{far}, s.behind, s.silent, s.gone), "; "))
	case len(s.silent) > 0:
		return programmedUnknown(o, schema.ReasonUnknown, slices.Concat([]string{far}, s.silent, s.gone))
	case s.returning > 0:
		return programmedUnknown(o, schema.ReasonNoProxiesYet, slices.Concat([]string{far, fmt.Sprintf("%d proxies that were connected before a start are not back yet", s.returning)}, s.gone))
	case s.Proxies == 0 && len(s.awaited) > 0:
		return programmedUnknown(o, schema.ReasonNoProxiesYet, append(slices.Clone(s.awaited), "proxies that were connected before may be on their way back"))
	case s.Proxies == 0:
		return condition(o, schema.ConditionProgrammed, true, schema.ReasonNoProxies, strings.Join(slices.Concat([]string{"the object concerns no connected proxy"}, s.gone), "; "))
	}
	return condition(o, schema.ConditionProgrammed, true, schema.ConditionProgrammed, strings.Join(slices.Concat([]string{far}, s.gone), "; "))
}

func programmedUnknown(o *schema.Object, reason string, why []string) metav1.Condition {
	c := condition(o, schema.ConditionProgrammed, false, reason, strings.Join(why, "; "))
	c.Status = metav1.ConditionUnknown
	return c
}

// storedOf returns the status that an object has from the store. One that has none yet is
// pending, in the same words at all replicas.
func storedOf(o *schema.Object) (schema.Status, []byte) {
	if s := o.StatusText(); s != nil {
		return s.Status, s.JSON
	}
	status := waiting(o, "the first status of this version has not been written yet")
	return status, textOf(status)
}

// pending returns the status of an object that is newer than the configuration in
// force.
func pending(o *schema.Object, published int64) schema.Status {
	return waiting(o, fmt.Sprintf("the configuration in force is of revision %d", published))
}

// waiting returns the status of an object of which nothing is known yet.
func waiting(o *schema.Object, wait string) schema.Status {
	unknown := func(kind string) metav1.Condition {
		c := condition(o, kind, false, schema.ReasonPending, wait)
		if kind != schema.ConditionProgrammed {
			c.Status = metav1.ConditionUnknown
		}
		c.LastTransitionTime = metav1.NewTime(cmp.Or(o.Meta.CreationTimestamp.Time, time.Unix(0, 0)))
		return c
	}
	return schema.Status{Conditions: []metav1.Condition{unknown(schema.ConditionAccepted), unknown(schema.ConditionResolved), unknown(schema.ConditionProgrammed)}}
}
