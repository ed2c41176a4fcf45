package programmed

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/internal/consistency"
	"github.com/pilot-api/pilot-api/schema"
)

const (
	// storedAge is the maximum age of a status that is not fresh, also if the server that
	// writes statuses has died.
	storedAge = 30 * time.Second
	// settled is how long a proxy was on a stream before every replica knows that.
	settled = 10 * time.Second
	// A lost proxy is awaited for 15 seconds after the last sign of life of its server, which
	// may be 4 s older than the death. It is awaited for 30 seconds if the server comes back or
	// is alive. A silent stream is noticed after 10 seconds at the earliest.
	awaitedOfDead  = 9 * time.Second
	awaitedOfBack  = 25 * time.Second
	awaitedOfAlive = 35 * time.Second
	// A server may count a stream for a while after its end: until it is told, or until its
	// pings are not answered.
	countedAfterEnd    = 5 * time.Second
	countedAfterSilent = time.Minute

	forever = time.Duration(math.MaxInt64)
)

// Check returns every answer that claims more than was so.
func (p *History) Check() []consistency.Violation {
	c := &check{History: p, writes: map[schema.Key][]Write{}, counted: map[*Proxy][]interval{}, named: map[string]*Proxy{}}
	for _, w := range p.Writes {
		c.writes[w.Key] = append(c.writes[w.Key], w)
	}
	for _, all := range c.writes {
		slices.SortFunc(all, func(a, b Write) int { return cmp.Compare(a.Number, b.Number) })
	}
	for _, one := range p.Proxies {
		c.counted[one], c.named[one.Name] = c.countedOf(one), one
		c.undisturbed(one)
	}
	for i := range p.Statuses {
		c.status(&p.Statuses[i])
	}
	for i := range p.Shown {
		c.shown(&p.Shown[i])
	}
	return c.found
}

type check struct {
	*History
	found   []consistency.Violation
	writes  map[schema.Key][]Write // by number
	counted map[*Proxy][]interval
	named   map[string]*Proxy
}

func (c *check) violate(rule, format string, args ...any) {
	c.found = append(c.found, consistency.Violation{Rule: rule, Text: fmt.Sprintf(format, args...)})
}

type interval struct{ from, to time.Duration }

// countedOf returns when a proxy counts: while it is connected, and while it is awaited.
func (c *check) countedOf(p *Proxy) (all []interval) {
	for i, s := range p.Streams {
		if s.From == 0 {
			continue
		}
		alive := interval{s.From, s.To}
		switch s.End {
		case Open:
			alive.to = forever
		case Broken:
			alive.to = c.deathWithin(s)
		}
		all = append(all, alive)
		if (s.End == Broken || s.End == Silent) && s.To-s.From >= settled {
			all = append(all, interval{alive.to, endOfAwaited(c.awaitedUntil(s), p.Streams[i+1:])})
		}
	}
	slices.SortFunc(all, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
	merged := all[:0]
	for _, one := range all {
		if n := len(merged); n > 0 && one.from <= merged[n-1].to {
			merged[n-1].to = max(merged[n-1].to, one.to)
			continue
		}
		merged = append(merged, one)
	}
	return merged
}

// deathWithin returns when the server of a broken stream died, at the latest the end of the
// stream.
func (c *check) deathWithin(s Stream) time.Duration {
	for _, d := range c.Deaths {
		if d.Server == s.Server && d.At >= s.From && d.At <= s.To {
			return d.At
		}
	}
	return s.To
}

// awaitedUntil returns until when servers must await the proxy of a stream that is lost.
func (c *check) awaitedUntil(s Stream) time.Duration {
	end := s.To + awaitedOfAlive
	if s.End == Broken {
		end = s.To + awaitedOfDead
	}
	for _, d := range c.Deaths {
		if d.Server != s.Server || d.At < s.From || d.At > end {
			continue
		}
		end = d.At + awaitedOfDead
		if d.Back != 0 && d.Back <= end {
			end = d.Back + awaitedOfBack
		}
	}
	return end
}

// endOfAwaited returns the time at which a lost proxy closes a later stream itself, if that is
// before the end.
func endOfAwaited(end time.Duration, later []Stream) time.Duration {
	for _, s := range later {
		if s.End == Closed {
			return min(end, s.To)
		}
	}
	return end
}

// counts reports whether a proxy counts throughout a time.
func (c *check) counts(p *Proxy, during interval) bool {
	return slices.ContainsFunc(c.counted[p], func(i interval) bool { return i.from <= during.from && during.to <= i.to })
}

// valueAt returns the number of the write that a proxy had at a time.
func (p *Proxy) valueAt(key schema.Key, at time.Duration) int {
	had := p.Had[key]
	i, _ := slices.BinarySearchFunc(had, at, func(h Had, at time.Duration) int {
		if h.At <= at {
			return -1
		}
		return 1
	})
	if i == 0 {
		return 0
	}
	return had[i-1].Number
}

// has reports whether a proxy had a write of an object, or a later one, at a moment of a time.
func (c *check) has(p *Proxy, key schema.Key, number int, during interval) bool {
	hidden := c.hidden(key, number, p.Namespace, during.to)
	is := func(value int) bool { return value >= number || value == 0 && hidden }
	if is(p.valueAt(key, during.from)) {
		return true
	}
	return slices.ContainsFunc(p.Had[key], func(h Had) bool {
		return h.At > during.from && h.At <= during.to && is(h.Number)
	})
}

// hidden reports whether a write of an object, or a later one that was sent before a time,
// hides the object from a namespace.
func (c *check) hidden(key schema.Key, number int, namespace string, before time.Duration) bool {
	return slices.ContainsFunc(c.writes[key], func(w Write) bool {
		return w.Number >= number && w.Call < before && w.Outcome != consistency.Refused && w.hides(namespace)
	})
}

func (c *check) write(key schema.Key, number int) *Write {
	all := c.writes[key]
	i, found := slices.BinarySearchFunc(all, number, func(w Write, n int) int { return cmp.Compare(w.Number, n) })
	if !found || all[i].Outcome == consistency.Refused {
		return nil
	}
	return &all[i]
}

// status requires that what a status says was so.
func (c *check) status(s *Status) {
	w := c.write(s.Key, s.Number)
	if w == nil {
		c.violate("status of nothing", "%s: nobody wrote this", s)
		return
	}
	during := interval{s.Call, s.Return}
	if !s.Fresh {
		during.from = max(s.Call-storedAge, w.Call, 0)
	}
	if s.True {
		for _, p := range c.Proxies {
			if c.counts(p, during) && !c.has(p, s.Key, s.Number, during) {
				c.violate("false programmed", "%s: %s counts all the time, and has %s", s, p.Name, mark(p.valueAt(s.Key, s.Return)))
			}
		}
	}
	if most := c.mostRunning(s, during); s.Running > most {
		c.violate("more running than have it", "%s: at most %d have it", s, most)
	}
}

// mostRunning returns how many streams servers may count that belong to a proxy with the
// write.
func (c *check) mostRunning(s *Status, during interval) (n int) {
	for _, p := range c.Proxies {
		for _, st := range p.Streams {
			if st.Begin <= during.to && st.countedUntil() >= during.from &&
				c.has(p, s.Key, s.Number, interval{st.Begin, min(st.last(), during.to)}) {
				n++
			}
		}
	}
	return n
}

// last returns the time of the end of the stream.
func (s Stream) last() time.Duration {
	if s.End == Open {
		return forever
	}
	return s.To
}

// countedUntil returns until when a server may count the stream.
func (s Stream) countedUntil() time.Duration {
	switch s.End {
	case Open:
		return forever
	case Silent:
		return s.To + countedAfterSilent
	}
	return s.To + countedAfterEnd
}

// shown requires that a proxy runs the revision that it is shown with: it has the last write of
// each object up to that revision, except where it refuses something of the same service.
func (c *check) shown(s *Shown) {
	p, during := c.named[s.Proxy], interval{s.Call, s.Return}
	if p == nil || !p.isOnOneStream(during) {
		return
	}
	for key := range c.writes {
		number := c.lastUpTo(key, s.Revision)
		if number > 0 && !p.refuses(key, during.from) && !p.refuses(key, during.to) && !c.has(p, key, number, during) {
			c.violate("false revision of a proxy", "%s..%s %s is shown by %s with revision %d: of %s it has %s and not %s",
				seconds(s.Call), seconds(s.Return), s.Proxy, s.Server, s.Revision, key, mark(p.valueAt(key, s.Return)), mark(number))
		}
	}
}

// isOnOneStream reports whether servers count one stream of the proxy, all the time.
func (p *Proxy) isOnOneStream(during interval) bool {
	n, throughout := 0, false
	for _, s := range p.Streams {
		if s.Begin <= during.to && s.countedUntil() >= during.from {
			n++
			throughout = s.From != 0 && s.From <= during.from && s.last() >= during.to
		}
	}
	return n == 1 && throughout
}

// lastUpTo returns the last write of an object that is known to be at or before a revision, 0
// if there is none.
func (c *check) lastUpTo(key schema.Key, revision int64) (number int) {
	for _, w := range c.writes[key] {
		if w.Outcome == consistency.OK && w.Revision > 0 && w.Revision <= revision {
			number = w.Number
		}
	}
	return number
}

// refuses reports whether a proxy refuses something of the service of an object: something that
// it has not had in a later form.
func (p *Proxy) refuses(key schema.Key, at time.Duration) bool {
	return slices.ContainsFunc(p.Refused, func(r Refusal) bool {
		return r.At <= at && r.Key.Namespace == key.Namespace && r.Key.Name == key.Name && p.valueAt(r.Key, at) <= r.Number
	})
}

// undisturbed requires that a proxy does not lose what it has accepted, as long as it refuses
// nothing of the same service.
func (c *check) undisturbed(p *Proxy) {
	for key, had := range p.Had {
		for i := 1; i < len(had); i++ {
			before, now := had[i-1], had[i]
			if now.Anew || now.Number >= before.Number || p.refuses(key, now.At-1) {
				continue
			}
			// Another replica may be behind the one that the proxy comes from, and what it does not
			// know it closes while it looks for what the proxy refuses.
			begun := p.begunAt(now.At)
			moved := begun > before.At
			if moved && now.Number == 0 && p.refusedWithin(interval{begun, now.At}) {
				continue
			}
			if now.Number > 0 && !moved || now.Number == 0 && !c.mayBeHidden(key, before.Number, p.Namespace, now.At, moved) {
				c.violate("accepted part disturbed", "%s %s had %s of %s, and then %s", seconds(now.At), p.Name, mark(before.Number), key, mark(now.Number))
			}
		}
	}
}

// refusedWithin reports whether a proxy refused anything in a time.
func (p *Proxy) refusedWithin(during interval) bool {
	return slices.ContainsFunc(p.Refused, func(r Refusal) bool { return r.At >= during.from && r.At <= during.to })
}

func (c *check) mayBeHidden(key schema.Key, number int, namespace string, before time.Duration, moved bool) bool {
	if moved {
		number = 0
	}
	return c.hidden(key, number, namespace, before)
}

// begunAt returns the beginning of the stream at a time.
func (p *Proxy) begunAt(at time.Duration) (begun time.Duration) {
	for _, s := range p.Streams {
		if s.Begin <= at {
			begun = s.Begin
		}
	}
	return begun
}
