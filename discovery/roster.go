package discovery

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/fleet"
	"github.com/pilot-api/pilot-api/mesh"
)

// Others know the proxies of the other replicas. The methods are safe for concurrent use.
type Others interface {
	// Has reports whether a proxy is connected to another replica.
	Has(mesh.Node) bool
	// Lost returns the proxies of replicas that no longer exist, except those that are
	// connected to another replica now.
	Lost() []feedback.Presence
}

type noOthers struct{}

func (noOthers) Has(mesh.Node) bool        { return false }
func (noOthers) Lost() []feedback.Presence { return nil }

// Roster returns all proxies that are or were connected to this replica, sorted by node.
func (p *Publisher) Roster() []feedback.Presence {
	return byNode(p.fleet.Roster(p.Revision()))
}

// RosterChanges counts the proxies that came and went on streams.
func (p *Publisher) RosterChanges() uint64 { return p.arrivals.changes.Load() }

// Absent returns the disconnected proxies, sorted by node: those that were connected to
// this replica, or to one that no longer exists, and are connected to none now.
func (p *Publisher) Absent() []feedback.Presence {
	all := slices.DeleteFunc(p.fleet.Absent(), func(one feedback.Presence) bool { return p.opts.Others.Has(one.Node) })
	own := make(map[mesh.Node]bool, len(all))
	for _, one := range all {
		own[one.Node] = true
	}
	for _, one := range p.opts.Others.Lost() {
		if !own[one.Node] && !p.fleet.IsConnected(one.Node) {
			all = append(all, one)
		}
	}
	return byNode(all)
}

func byNode(all []feedback.Presence) []feedback.Presence {
	slices.SortFunc(all, func(a, b feedback.Presence) int { return strings.Compare(a.Node.ID, b.Node.ID) })
	return all
}

// Remember adds proxies that were connected to this replica before it started. Proxies that
// were connected when it stopped are awaited from now on. Call Remember before Run.
func (p *Publisher) Remember(all []feedback.Presence) {
	var end time.Time // of what is remembered
	for _, one := range all {
		if one.LastSeen.After(end) {
			end = one.LastSeen
		}
	}
	for _, one := range all {
		// A server that stops ends all streams before it is gone itself.
		one.Connected = one.Connected || one.Lost && end.Sub(one.LastSeen) < fleet.ReturnTime
		p.fleet.Remember(one)
	}
}

// admitReturning compiles for the proxies that are awaited, as each will need its view. Until
// then nobody knows which objects concern them.
func (p *Publisher) admitReturning(ctx context.Context) {
	for _, node := range p.fleet.Returning() {
		if ctx.Err() != nil {
			return
		}
		if err := p.admitAbsent(node); err != nil {
			p.opts.Log.DebugContext(ctx, "no view for a proxy that is awaited", "node", node.ID, "error", err)
		}
	}
}

func (p *Publisher) admitAbsent(node mesh.Node) error {
	proxy, err := parseNode(node)
	if err != nil {
		return err
	}
	p.encoder.Advancing.RLock()
	defer p.encoder.Advancing.RUnlock()
	g := p.encoder.Current.Load()
	traits := g.Mesh.TraitsOf(proxy)
	c := p.fleet.AdmitAbsent(node, proxy, traits)
	p.letGo()
	if c == nil {
		return nil
	}
	_, err = p.firstView(g, c.Entry(), traits)
	return err
}

// lostReplicaTime is how long after the death of a replica its proxies are awaited.
const lostReplicaTime = 15 * time.Second

// returningFromOthers counts the proxies of replicas that died which are awaited.
func (p *Publisher) returningFromOthers() (n int) {
	for _, one := range p.opts.Others.Lost() {
		if one.Lost && time.Since(one.LastSeen) < lostReplicaTime && !p.fleet.IsConnected(one.Node) {
			n++
		}
	}
	return n
}

func (p *Publisher) lostCount() (n int) {
	for _, one := range p.Absent() {
		if one.Lost {
			n++
		}
	}
	return n
}
