package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
)

// Answers add a status to objects, which is not stored: how they stand with the
// proxies (docs/decisions/019-feedback.md).

// statusBoard has the recent status of all objects. It refreshes them on request,
// and regularly while there are watches.
type statusBoard struct {
	*lookout[postings]

	mu       sync.Mutex
	watchers int
	stop     chan struct{} // ends the refreshing for watchers
}

// postings are the statuses at one moment.
type postings struct {
	revision int64 // of the configuration in force
	of       map[schema.Key]*posting
	version  uint64        // counts the refreshes with news
	news     []schema.Key  // objects whose status this version changed
	changed  chan struct{} // closed by the next version
	wordings *wordings     // used during a refresh only
}

// posting is the status of an object.
type posting struct {
	resourceVersion string
	*wording
	version uint64 // version of the board that brought it
	plain   bool   // follows from numbers of proxies alone
}

// newStatusBoard is one of looks at this replica's proxies, of which some may be on
// their way back, and at those of the others, unless peers is nil.
func newStatusBoard(standings *lookout[discovery.ObjectStatuses], back proxyReturn, peers *peerBoard, log *slog.Logger) *statusBoard {
	look := func(before *postings, after time.Time) (*postings, time.Duration) {
		begin := time.Now()
		others := peers.look(after)
		waited := time.Since(begin)
		own := standings.after(context.Background(), after)
		if back.due(own.Objects) {
			others.awaited = append(others.awaited, back.awaited())
		}
		return before.next(own, others), waited
	}
	b := &statusBoard{lookout: newLookout("statuses of objects", log, &postings{changed: make(chan struct{}), wordings: &wordings{}}, look)}
	b.tell = func(before, found *postings) {
		if found.version != before.version {
			close(before.changed)
		}
	}
	return b
}

// of returns the status of an object, and its JSON.
func (b *statusBoard) of(o *schema.Object) (schema.Status, []byte) { return b.recent().status(o) }

func (p *postings) status(o *schema.Object) (schema.Status, []byte) {
	if known := p.of[o.Key()]; known != nil && known.resourceVersion == o.Meta.ResourceVersion {
		return known.status, known.text
	}
	status := pending(o, p.revision)
	return status, textOf(status)
}

// since returns the objects whose status has changed since a version of the board,
// and the present version. changed is closed by the next version.
func (b *statusBoard) since(version uint64) (keys []schema.Key, present uint64, changed <-chan struct{}) {
	p := b.known()
	switch {
	case version == p.version:
	case version+1 == p.version:
		keys = p.news
	default:
		for key, one := range p.of {
			if one.version > version {
				keys = append(keys, key)
			}
		}
	}
	return keys, p.version, p.changed
}

// watch keeps the board refreshed until the returned function is called.
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
			b.recent()
		}
	}
}

// next is the board after a look.
func (p *postings) next(standings *discovery.ObjectStatuses, others peerView) *postings {
	next := &postings{
		revision: standings.Revision, of: make(map[schema.Key]*posting, len(standings.Objects)),
		version: p.version, changed: p.changed, wordings: p.wordings,
	}
	now := metav1.Now().Rfc3339Copy()
	for _, o := range standings.Objects {
		key := o.Key()
		was := p.of[key]
		is := next.post(now, o, others.add(standings.Of(key.Ref(), o.Revision()), key.Ref(), o.Revision()), was)
		if is != was {
			is.version = p.version + 1
			next.news = append(next.news, key)
		}
		next.of[key] = is
	}
	if len(next.news) > 0 {
		next.version, next.changed = p.version+1, make(chan struct{})
		next.wordings.keep(next.of)
	}
	return next
}

// post returns the status of an object. It returns before if that is still right.
func (p *postings) post(now metav1.Time, o *schema.Object, standing fleetStanding, before *posting) *posting {
	plain, known := standing.isPlain(), before != nil && before.resourceVersion == o.Meta.ResourceVersion
	if known && plain && before.plain && before.status.Programmed == standing.programmed() {
		return before // cheap, and the case of most objects
	}
	status := statusOfStanding(o, standing)
	if known && sameStatus(before.status, status) {
		before.plain = plain
		return before
	}
	for i := range status.Conditions {
		c := &status.Conditions[i]
		c.LastTransitionTime = now
		if before != nil && before.status.Conditions[i].Status == c.Status {
			c.LastTransitionTime = before.status.Conditions[i].LastTransitionTime
		}
		if c.LastTransitionTime.Before(&o.Meta.CreationTimestamp) { // It is the time of an earlier object of that name.
			c.LastTransitionTime = o.Meta.CreationTimestamp
		}
	}
	return &posting{resourceVersion: o.Meta.ResourceVersion, wording: p.wordings.wordingOf(status), plain: plain}
}

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

func statusOfStanding(o *schema.Object, s fleetStanding) schema.Status {
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

// resolved returns the condition that everything that the object refers to exists.
func resolved(o *schema.Object, problems diag.List) metav1.Condition {
	for _, p := range problems {
		if isReference(p) {
			return condition(o, schema.ConditionResolved, false, reasonOf(p), tell(p))
		}
	}
	return condition(o, schema.ConditionResolved, true, schema.ConditionResolved, "")
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
// unknown.
func programmedBy(o *schema.Object, s fleetStanding) metav1.Condition {
	far := fmt.Sprintf("%d of %d proxies run it", s.Running, s.Proxies)
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
	case s.Running < s.Proxies || len(s.behind) > 0:
		return condition(o, schema.ConditionProgrammed, false, schema.ReasonPending, strings.Join(slices.Concat([]string{far}, s.behind, s.silent), "; "))
	case len(s.silent) > 0:
		return programmedUnknown(o, schema.ReasonUnknown, slices.Concat([]string{far}, s.silent))
	case s.Proxies == 0 && len(s.awaited) > 0:
		return programmedUnknown(o, schema.ReasonNoProxiesYet, append(slices.Clone(s.awaited), "proxies that were connected before may be on their way back"))
	case s.Proxies == 0:
		return condition(o, schema.ConditionProgrammed, true, schema.ReasonNoProxies, "no proxy that is connected is concerned")
	}
	return condition(o, schema.ConditionProgrammed, true, schema.ConditionProgrammed, far)
}

func programmedUnknown(o *schema.Object, reason string, why []string) metav1.Condition {
	c := condition(o, schema.ConditionProgrammed, false, reason, strings.Join(why, "; "))
	c.Status = metav1.ConditionUnknown
	return c
}

// pending returns the status of an object that is newer than the configuration in
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

// board returns the recent statuses, or nil if objects have none.
func (s *Server) board() *postings {
	if s.statuses == nil {
		return nil
	}
	return s.statuses.recent()
}

// textsOf returns the JSON of the statuses of objs, by index. An entry is nil if
// there is no status.
func (p *postings) textsOf(objs []*schema.Object) [][]byte {
	texts := make([][]byte, len(objs))
	if p == nil {
		return texts
	}
	for i, o := range objs {
		_, texts[i] = p.status(o)
	}
	return texts
}

// stateOf returns the state that a list of a revision shows.
func (p *postings) stateOf(revision string) listState {
	if p == nil {
		return listState{revision: revision}
	}
	return listState{revision: revision, board: p.version, published: p.revision}
}

// withStatus returns an object's JSON with its status. Do not change it: it may be
// shared. The stored JSON has no status.
func (s *Server) withStatus(o *schema.Object) []byte {
	if s.statuses == nil {
		return o.JSON()
	}
	return s.frames.of(s.statuses.recent(), o)
}

func withStatus(o *schema.Object, status []byte) []byte {
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
