package discovery

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/fleet"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/envoy/v3"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// ErrBusy: somebody else has a mesh compiled for a question, and one is at a time.
var ErrBusy = errors.New("another mesh is being compiled for a question")

// Bounds of a preview. It compiles by itself, beside what is published.
const (
	maxPreviewViews   = 200
	maxPreviewChanges = 1000
	maxPreviewBytes   = 32 << 20
	maxPreviewNodes   = 10 // named of each change
)

// Preview is what some objects would change in what proxies are sent.
type Preview struct {
	Revision int64 `json:"revision"` // compared with
	// Proxies are those that were looked at; of the others, NotLookedAt, there is
	// nothing in Changes.
	Proxies     int `json:"proxies"`
	NotLookedAt int `json:"notLookedAt,omitempty"`
	// Changes by type and name. Omitted is how many there are beside.
	Changes []ResourceChange `json:"changes"`
	Omitted int              `json:"omitted,omitempty"`
	// Problems are those that there would be, and are not now; Solved the other way
	// round.
	Problems diag.List `json:"problems"`
	Solved   diag.List `json:"solved"`
	// NotLookedAtInV1 are kinds of proxies that were too many to find out what they would
	// lose: of that there is nothing in Problems and in Solved.
	NotLookedAtInV1 int `json:"notLookedAtInV1,omitempty"`
}

// ResourceChange is one resource as some proxies have it, and as they would.
type ResourceChange struct {
	Type string `json:"type"` // as in ConfigTypes
	Name string `json:"name"`
	// Before and After are v3 messages in proto JSON; nil for none.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
	// Proxies that share it, and the nodes of some.
	Proxies int      `json:"proxies"`
	Nodes   []string `json:"nodes"`
}

// Preview compiles what is published with some objects in place of those stored, and
// without others, and compares. Nothing is published, and no proxy waits for it.
// The error is ErrBusy, ErrNotReady, ErrOverBudget or that of ctx.
func (p *Publisher) Preview(ctx context.Context, objects []*schema.Object, without ...schema.Key) (*Preview, error) {
	return p.preview(ctx, objects, without, false)
}

// PreviewInV1 is a Preview whose problems are also what Envoys of the v1 API would lose,
// in the sense of LostInV1.
func (p *Publisher) PreviewInV1(ctx context.Context, objects []*schema.Object, without ...schema.Key) (*Preview, error) {
	return p.preview(ctx, objects, without, true)
}

func (p *Publisher) preview(ctx context.Context, objects []*schema.Object, without []schema.Key, inV1 bool) (*Preview, error) {
	g, err := p.published()
	if err != nil {
		return nil, err
	}
	if !p.previewing.TryLock() {
		return nil, ErrBusy
	}
	defer p.previewing.Unlock()
	out := &preview{
		Publisher: p, inV1: inV1, changes: map[changeKey]*change{}, sets: map[setID]*xds.Resource{},
		// A snapshot of its own: that which is published is to be followed by others.
		before: mesh.NewSnapshot(g.Mesh.Revision, g.Mesh.Settings, compiled.ObjectsOf(g.Mesh)).WithFiles(g.Mesh.Files),
	}
	out.after = out.before.Next(g.Mesh.Revision, changesBy(g.Mesh, objects, without))
	out.otherServices = len(out.after.ServicesSince(out.before)) > 0
	err = p.recoverPanic("preview", func() error { return out.make(ctx) })
	if err != nil {
		return nil, err
	}
	return out.result(), nil
}

// changesBy puts objects in the place of those of a snapshot, and removes others.
func changesBy(s *mesh.Snapshot, objects []*schema.Object, without []schema.Key) []schema.Change {
	var changes []schema.Change
	for _, o := range objects {
		changes = append(changes, schema.Change{Before: s.Object(o.Key()), After: o})
	}
	for _, key := range without {
		if o := s.Object(key); o != nil {
			changes = append(changes, schema.Change{Before: o})
		}
	}
	return changes
}

type preview struct {
	*Publisher
	inV1          bool // problems are also what is lost in it
	proxiesInV1   []*fleet.Client
	before, after *mesh.Snapshot
	otherServices bool      // after
	now           time.Time // by which certificates expire

	proxies, notLookedAt int
	notLookedAtInV1      int
	changes              map[changeKey]*change
	sets                 map[setID]*xds.Resource // of endpoints
	problems, solved     diag.List
}

// changeKey is what changes have to share to be one.
type changeKey struct {
	configType, name string
	before, after    xds.Digest
}

// crowd are the proxies of one view before and one after.
type crowd struct {
	before, after mesh.View
	was, is       *ir.Config
	clients       []*fleet.Client
}

func (p *preview) make(ctx context.Context) error {
	crowds := p.crowds()
	if p.inV1 {
		// The same at both times: what one of them does not look at it would seem to lack.
		p.proxiesInV1, p.notLookedAtInV1 = p.proxiesToCome(p.after, p.before)
	}
	p.now = time.Now()
	c := p.newBeside()
	defer c.Close()
	c.Advance(p.before)
	var err error
	for _, of := range crowds {
		if of.was, _, err = c.ProxyWithin(ctx, of.before); err != nil {
			return err
		}
	}
	before, err := p.problemsAt(ctx, c, p.before)
	if err != nil {
		return err
	}
	c.Advance(p.after)
	for _, of := range crowds {
		if of.is, _, err = c.ProxyWithin(ctx, of.after); err != nil {
			return err
		}
		p.compare(of)
	}
	after, err := p.problemsAt(ctx, c, p.after)
	p.problems, p.solved = problemsBeside(after, before), problemsBeside(before, after)
	return err
}

// problemsAt are those of the snapshot that a compiler is at.
func (p *preview) problemsAt(ctx context.Context, c compiler, at *mesh.Snapshot) (diag.List, error) {
	lost, err := lostInV1(ctx, c, at, p.proxiesInV1)
	return slices.Concat(at.Problems, c.Problems(), lost, p.expiries.Of(at, p.now)), err
}

// problemsBeside are those of a list that another one has not.
func problemsBeside(list, other diag.List) diag.List {
	known := map[diag.Problem]bool{}
	for _, p := range other {
		known[feedback.Unplaced(p)] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(p diag.Problem) bool { return known[feedback.Unplaced(p)] })
}

// crowds are those that are connected, the largest first.
func (p *preview) crowds() []*crowd {
	byViews := map[[2]string]*crowd{}
	for _, c := range p.fleet.Connected() {
		before, after := c.ViewIn(p.before), c.ViewIn(p.after)
		keys := [2]string{before.Key(), after.Key()}
		if byViews[keys] == nil {
			byViews[keys] = &crowd{before: before, after: after}
		}
		byViews[keys].clients = append(byViews[keys].clients, c)
	}
	all := slices.Collect(maps.Values(byViews))
	slices.SortFunc(all, func(a, b *crowd) int {
		return cmp.Or(cmp.Compare(len(b.clients), len(a.clients)), strings.Compare(a.clients[0].Node.ID, b.clients[0].Node.ID))
	})
	for i, of := range all {
		if i < maxPreviewViews {
			p.proxies += len(of.clients)
		} else {
			p.notLookedAt += len(of.clients)
		}
	}
	return all[:min(len(all), maxPreviewViews)]
}

// compare notes what differs for a crowd. Listeners at a proxy's own address are
// those of its first.
func (p *preview) compare(of *crowd) {
	ip := of.clients[0].Proxy.IP
	changedParts(of.was.Clusters, of.is.Clusters, func(c *ir.Cluster) string { return c.Name }, func(was, is *ir.Cluster) {
		p.note(of, "clusters", resourceOf(was, p.cluster), resourceOf(is, p.cluster))
	})
	changedParts(of.was.RouteTables, of.is.RouteTables, func(t *ir.RouteTable) string { return t.Name }, func(was, is *ir.RouteTable) {
		p.note(of, "routes", resourceOf(was, p.encoder.V3.Table), resourceOf(is, p.encoder.V3.Table))
	})
	changedParts(of.was.ListenersAt(ip), of.is.ListenersAt(ip), (*ir.Listener).Address, func(was, is *ir.Listener) {
		p.note(of, "listeners", resourceOf(was, p.listener), resourceOf(is, p.listener))
	})
	changedParts(of.was.Secrets, of.is.Secrets, func(s *ir.Secret) string { return s.Name }, func(was, is *ir.Secret) {
		p.note(of, "secrets", resourceOf(was, p.encoder.V3.Secret), resourceOf(is, p.encoder.V3.Secret))
	})
	p.compareEndpoints(of)
}

func (p *preview) cluster(c *ir.Cluster) *xds.Resource { return p.encoder.V3.Cluster(c, v3.Streamed) }
func (p *preview) listener(l *ir.Listener) *xds.Resource {
	return p.encoder.V3.Listener(l, v3.Streamed)
}

// resourceOf is nil for a part that is not there, or that is left out.
func resourceOf[Part any](part *Part, encode func(*Part) *xds.Resource) *xds.Resource {
	if part == nil {
		return nil
	}
	if r := encode(part); r.Shell != nil {
		return r
	}
	return nil
}

// changedParts hands on the parts that are another value, nil for one that is not
// there.
func changedParts[Part any](was, is []*Part, name func(*Part) string, do func(was, is *Part)) {
	old := map[string]*Part{}
	for _, part := range was {
		old[name(part)] = part
	}
	for _, part := range is {
		if before := old[name(part)]; before != part {
			do(before, part)
		}
		delete(old, name(part))
	}
	for _, gone := range old {
		do(gone, nil)
	}
}

func (p *preview) compareEndpoints(of *crowd) {
	was, is := keySet(of.was), keySet(of.is)
	for key := range was {
		switch {
		case !is[key]:
			p.note(of, "endpoints", p.endpoints(p.before, key), nil)
		case p.otherServices:
			p.note(of, "endpoints", p.endpoints(p.before, key), p.endpoints(p.after, key))
		}
	}
	for key := range is {
		if !was[key] {
			p.note(of, "endpoints", nil, p.endpoints(p.after, key))
		}
	}
}

func keySet(c *ir.Config) map[string]bool {
	keys := map[string]bool{}
	for _, key := range compiled.EndpointKeys(c.Clusters) {
		keys[key] = true
	}
	return keys
}

// endpoints is nil for a set that Envoy would refuse.
func (p *preview) endpoints(of *mesh.Snapshot, key string) *xds.Resource {
	id := setID{of, key}
	r, made := p.sets[id]
	if !made {
		r, _ = p.encoder.V3.EncodeEndpoints(key, compiled.MembersOf(of, key), v3.Endpoints)
		p.sets[id] = r
	}
	return r
}

// setID is a set of endpoints at one of the two times.
type setID struct {
	of  *mesh.Snapshot
	key string
}

// note counts a change that a crowd shares, if it is one.
func (p *preview) note(of *crowd, configType string, was, is *xds.Resource) {
	one := cmp.Or(was, is)
	if one == nil || was != nil && is != nil && was.Hash == is.Hash {
		return
	}
	key := changeKey{configType: configType, name: one.Name}
	if was != nil {
		key.before = was.Hash
	}
	if is != nil {
		key.after = is.Hash
	}
	c := p.changes[key]
	if c == nil {
		c = &change{was: was, is: is, ResourceChange: ResourceChange{Type: configType, Name: one.Name}}
		p.changes[key] = c
	}
	c.Proxies += len(of.clients)
	for _, client := range of.clients[:min(len(of.clients), maxPreviewNodes-len(c.Nodes))] {
		c.Nodes = append(c.Nodes, client.Node.ID)
	}
}

// change is one with what it is encoded from.
type change struct {
	ResourceChange
	was, is *xds.Resource
}

// encoded has the messages.
func (c *change) encoded() ResourceChange {
	out := c.ResourceChange
	if c.was != nil {
		out.Before = c.was.AppendShown(nil)
	}
	if c.is != nil {
		out.After = c.is.AppendShown(nil)
	}
	return out
}

// compareChanges orders them for readers.
func compareChanges(a, b *ResourceChange) int {
	return cmp.Or(
		cmp.Compare(slices.Index(xds.ConfigTypes, a.Type), slices.Index(xds.ConfigTypes, b.Type)),
		strings.Compare(a.Name, b.Name), cmp.Compare(b.Proxies, a.Proxies), slices.Compare(a.Nodes, b.Nodes))
}

// Add takes in what another replica says of the same objects and its own proxies.
func (p *Preview) Add(other *Preview) {
	p.Proxies += other.Proxies
	p.NotLookedAt += other.NotLookedAt
	p.Omitted += other.Omitted
	size := 0
	for _, c := range p.Changes {
		size += len(c.Before) + len(c.After)
	}
	for _, c := range other.Changes {
		same := slices.IndexFunc(p.Changes, c.isSame)
		switch {
		case same >= 0:
			is := &p.Changes[same]
			is.Proxies += c.Proxies
			is.Nodes = append(is.Nodes, c.Nodes[:min(len(c.Nodes), maxPreviewNodes-len(is.Nodes))]...)
		case len(p.Changes) == maxPreviewChanges || size > maxPreviewBytes:
			p.Omitted++
		default:
			size += len(c.Before) + len(c.After)
			p.Changes = append(p.Changes, c)
		}
	}
	slices.SortFunc(p.Changes, func(a, b ResourceChange) int { return compareChanges(&a, &b) })
	known := map[string]bool{}
	for _, problem := range p.Problems {
		known[problem.String()] = true
	}
	p.Problems = append(p.Problems, slices.DeleteFunc(other.Problems, func(d diag.Problem) bool { return known[d.String()] })...)
}

// isSame reports whether it is the same change, of other proxies.
func (c ResourceChange) isSame(other ResourceChange) bool {
	return c.Type == other.Type && c.Name == other.Name && sameMessage(c.Before, other.Before) && sameMessage(c.After, other.After)
}

// sameMessage reports whether two messages are the same, of which one may have been
// encoded once more on its way.
func sameMessage(a, b json.RawMessage) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	var once, again bytes.Buffer
	json.HTMLEscape(&once, a)
	json.HTMLEscape(&again, b)
	return bytes.Equal(once.Bytes(), again.Bytes())
}

func (p *preview) result() *Preview {
	all := slices.SortedFunc(maps.Values(p.changes), func(a, b *change) int { return compareChanges(&a.ResourceChange, &b.ResourceChange) })
	out := &Preview{
		Revision: p.before.Revision, Proxies: p.proxies, NotLookedAt: p.notLookedAt, Changes: []ResourceChange{},
		Problems: append(diag.List{}, p.problems...), Solved: append(diag.List{}, p.solved...),
		NotLookedAtInV1: p.notLookedAtInV1,
	}
	size := 0
	for i, c := range all {
		if i == maxPreviewChanges || size > maxPreviewBytes {
			out.Omitted = len(all) - i
			break
		}
		encoded := c.encoded()
		size += len(encoded.Before) + len(encoded.After)
		out.Changes = append(out.Changes, encoded)
	}
	return out
}
