package server

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
)

// Objects carry a status on their way out, which is stored nowhere: how they stand
// with the proxies (docs/decisions/019-feedback.md).

// statusBoard has the status of all objects as of a moment ago. It looks when
// somebody asks, and while somebody watches.
type statusBoard struct {
	look  func() *discovery.Standings
	peers *peerBoard // of the other replicas, nil for none

	mu        sync.Mutex
	looked    time.Time
	standings *discovery.Standings
	posted    map[schema.Key]*posting
	version   uint64        // counts the looks that found something
	news      []schema.Key  // that the last of them found
	changed   chan struct{} // closed by the next one
	watchers  int
	stop      chan struct{} // ends the looking for watchers
}

// posting is what the board says of an object.
type posting struct {
	resourceVersion string
	status          schema.Status
	text            []byte
	version         uint64 // of the board, when this came
}

// statusAge is how old the board may be, and how often watchers are told.
const statusAge = 250 * time.Millisecond

func newStatusBoard(look func() *discovery.Standings, peers *peerBoard) *statusBoard {
	return &statusBoard{look: look, peers: peers, posted: map[schema.Key]*posting{}, changed: make(chan struct{})}
}

// of is the status of an object, and as JSON.
func (b *statusBoard) of(o *schema.Object) (schema.Status, []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lookLocked()
	if p := b.posted[o.Key()]; p != nil && p.resourceVersion == o.Meta.ResourceVersion {
		return p.status, p.text
	}
	status := pending(o, b.standings.Revision)
	return status, textOf(status)
}

// since are the objects whose status has changed since a version of the board,
// and the present one.
func (b *statusBoard) since(version uint64) (keys []schema.Key, present uint64, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case version == b.version:
	case version+1 == b.version:
		keys = b.news
	default:
		for key, p := range b.posted {
			if p.version > version {
				keys = append(keys, key)
			}
		}
	}
	return keys, b.version, b.changed
}

// watch has the board looked at until the returned function is called.
func (b *statusBoard) watch() (done func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.watchers++; b.watchers == 1 {
		b.stop = make(chan struct{})
		go b.keepLooking(b.stop)
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.watchers--; b.watchers == 0 {
			close(b.stop)
		}
	}
}

func (b *statusBoard) keepLooking(stop <-chan struct{}) {
	tick := time.NewTicker(statusAge)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			b.mu.Lock()
			b.lookLocked()
			b.mu.Unlock()
		}
	}
}

// lookLocked brings the board up to date, unless that was done just now.
func (b *statusBoard) lookLocked() {
	if b.standings != nil && time.Since(b.looked) < statusAge {
		return
	}
	others := b.peers.look()
	b.standings = b.look()
	b.looked = time.Now()
	next := make(map[schema.Key]*posting, len(b.standings.Objects))
	var news []schema.Key
	for _, o := range b.standings.Objects {
		key := o.Key()
		p := post(o, others.add(b.standings.Of(key.Ref(), o.Revision()), key.Ref(), o.Revision()), b.posted[key])
		if p != b.posted[key] {
			p.version = b.version + 1
			news = append(news, key)
		}
		next[key] = p
	}
	b.posted = next
	if len(news) > 0 {
		b.version++
		b.news = news
		close(b.changed)
		b.changed = make(chan struct{})
	}
}

// post is what the board says of an object; before itself where that is the same.
func post(o *schema.Object, standing fleetStanding, before *posting) *posting {
	status := statusOfStanding(o, standing)
	if before != nil && before.resourceVersion == o.Meta.ResourceVersion && sameStatus(before.status, status) {
		return before
	}
	now := metav1.Now().Rfc3339Copy()
	for i := range status.Conditions {
		status.Conditions[i].LastTransitionTime = now
		if before != nil && before.status.Conditions[i].Status == status.Conditions[i].Status {
			status.Conditions[i].LastTransitionTime = before.status.Conditions[i].LastTransitionTime
		}
	}
	return &posting{resourceVersion: o.Meta.ResourceVersion, status: status, text: textOf(status)}
}

func textOf(s schema.Status) []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // It is texts and numbers.
	}
	return text
}

// same compares all but times.
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

func statusOfStanding(o *schema.Object, s fleetStanding) schema.Status {
	return schema.Status{
		Programmed: schema.Programmed{Proxies: s.Proxies, Running: s.Running},
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

// accepted: nothing that the object says cannot be honoured. Whether it stops the
// whole object or has a part of it closed, the message says.
func accepted(o *schema.Object, problems diag.List) metav1.Condition {
	for _, p := range problems {
		if p.Severity == diag.Error || p.Reason == diag.NotHonoured || p.Reason == diag.Malformed || p.Reason == diag.Conflict {
			return condition(o, schema.ConditionAccepted, false, string(p.Reason), tell(p))
		}
	}
	return condition(o, schema.ConditionAccepted, true, schema.ConditionAccepted, "")
}

// resolved: what the object refers to is there.
func resolved(o *schema.Object, problems diag.List) metav1.Condition {
	for _, p := range problems {
		if isReference(p) {
			return condition(o, schema.ConditionResolved, false, string(p.Reason), tell(p))
		}
	}
	return condition(o, schema.ConditionResolved, true, schema.ConditionResolved, "")
}

func isReference(p diag.Problem) bool { return p.Reason == diag.NoSuchReference }

func tell(p diag.Problem) string {
	return strings.TrimPrefix(p.Field+": "+p.Message, ": ")
}

// programmedBy: all proxies that the object concerns run it. Of those of a replica that
// does not answer nobody knows.
func programmedBy(o *schema.Object, s fleetStanding) metav1.Condition {
	far := fmt.Sprintf("%d of %d proxies run it", s.Running, s.Proxies)
	switch {
	case len(s.Refusals) > 0:
		r := s.Refusals[0]
		message := fmt.Sprintf("proxy %s refuses its %s: %s", r.Node, r.Type, r.Words)
		if more := len(s.Refusals) - 1; more > 0 {
			message += fmt.Sprintf(" (and %d more)", more)
		}
		return condition(o, schema.ConditionProgrammed, false, schema.ReasonRejected, message)
	case s.Running < s.Proxies || len(s.behind) > 0:
		return condition(o, schema.ConditionProgrammed, false, schema.ReasonPending, strings.Join(slices.Concat([]string{far}, s.behind, s.silent), "; "))
	case len(s.silent) > 0:
		c := condition(o, schema.ConditionProgrammed, false, schema.ReasonUnknown, strings.Join(slices.Concat([]string{far}, s.silent), "; "))
		c.Status = metav1.ConditionUnknown
		return c
	case s.Proxies == 0:
		return condition(o, schema.ConditionProgrammed, true, schema.ReasonNoProxies, "no proxy that is connected is concerned")
	}
	return condition(o, schema.ConditionProgrammed, true, schema.ConditionProgrammed, far)
}

// pending is the status of an object that is newer than the configuration in
// force.
func pending(o *schema.Object, published int64) schema.Status {
	wait := fmt.Sprintf("the configuration in force is of revision %d", published)
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

// statusOf is what an object carries on its way out, nil for nothing.
func (s *Server) statusOf(o *schema.Object) []byte {
	if s.statuses == nil {
		return nil
	}
	_, text := s.statuses.of(o)
	return text
}

// withStatus is an object's JSON with its status. The stored form has none.
func (s *Server) withStatus(o *schema.Object) []byte {
	status := s.statusOf(o)
	if status == nil {
		return o.JSON()
	}
	return appendWithStatus(make([]byte, 0, sizeWithStatus(o, status)), o, status)
}

const statusField = `,"status":`

func sizeWithStatus(o *schema.Object, status []byte) int {
	if status == nil {
		return len(o.JSON())
	}
	return len(o.JSON()) + len(statusField) + len(status)
}

func appendWithStatus(out []byte, o *schema.Object, status []byte) []byte {
	raw := o.JSON()
	if status == nil {
		return append(out, raw...)
	}
	out = append(out, raw[:len(raw)-1]...)
	out = append(out, statusField...)
	out = append(out, status...)
	return append(out, '}')
}
