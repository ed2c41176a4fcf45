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

// ErrBusy means that a mesh is being compiled for another question. Only one is compiled at
// a time.
var ErrBusy = errors.New("another mesh is being compiled for a question")

// Limits for a preview, which compiles separately from the published configuration.
const (
	maxPreviewViews   = 200
	maxPreviewChanges = 1000
	maxPreviewBytes   = 32 << 20
	maxPreviewNodes   = 10 // nodes that are named for each change
)

// Preview is the change that some objects would make to the configuration of proxies.
type Preview struct {
	Revision int64 `json:"revision"` // of the configuration that it is compared with
	// Proxies is the number of proxies that were examined, and NotLookedAt that of the
	// others. Changes covers only the examined ones.
	Proxies     int `json:"proxies"`
	NotLookedAt int `json:"notLookedAt,omitempty"`
	// Changes by type and name. Omitted is the number of further ones.
	Changes []ResourceChange `json:"changes"`
	Omitted int              `json:"omitted,omitempty"`
	// Problems are the problems that the objects would cause, and Solved those that they
	// would solve.
	Problems diag.List `json:"problems"`
	Solved   diag.List `json:"solved"`
	// NotLookedAtInV1 is the number of kinds of proxies whose losses in v1 were not
	// computed, because there are too many. Problems and Solved do not cover these.
	NotLookedAtInV1 int `json:"notLookedAtInV1,omitempty"`
}

// ResourceChange is one resource as some proxies have it, and as they would have it.
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

// PreviewOptions say what a Preview changes, and what it looks at.
type PreviewOptions struct {
	// Objects take the place of those stored, and Without are left out.
	Objects []*schema.Object
	Without []schema.Key
	// InV1 adds to the problems those of LostInV1.
	InV1 bool
	// Namespaces are those whose proxies are looked at; nil means all.
	Namespaces []string
}

// Preview compiles the published state with some objects replaced and others removed, and
// compares the result with the published configuration. It publishes nothing, and no proxy
// waits for it. The error is ErrBusy, ErrNotReady, ErrOverBudget or that of ctx.
func (p *Publisher) Preview(ctx context.Context, opts PreviewOptions) (*Preview, error) {
	g, err := p.published()
	if err != nil {
		return nil, err
	}
	if !p.previewing.TryLock() {
		return nil, ErrBusy
	}
	defer p.previewing.Unlock()
	out := &preview{
		Publisher: p, inV1: opts.InV1, namespaces: opts.Namespaces, changes: map[changeKey]*change{}, sets: map[setID]*xds.Resource{},
		// This is a snapshot of its own, because the published one must be able to get a
		// successor.
		before: mesh.NewSnapshot(g.Mesh.Revision, g.Mesh.Settings, compiled.ObjectsOf(g.Mesh)).WithFiles(g.Mesh.Files).WithKeys(g.Mesh.Keys),
	}
	out.after = out.before.Next(g.Mesh.Revision, changesBy(g.Mesh, opts.Objects, opts.Without))
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
	inV1          bool // problems include what is lost in v1
	namespaces    []string
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

// changeKey has what two changes must share to be shown as one.
type changeKey struct {
	configType, name string
	before, after    xds.Digest
}

// crowd has the proxies with the same views before and after.
type crowd struct {
	before, after mesh.Traits
	was, is       *ir.Config
	clients       []*fleet.Client
}

func (p *preview) make(ctx context.Context) error {
	crowds := p.crowds()
	if p.inV1 {
		// Both times have the same proxies. Otherwise what one of them does not look at
		// would seem to be missing.
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

// problemsAt returns the problems of the present snapshot of a compiler.
func (p *preview) problemsAt(ctx context.Context, c compiler, at *mesh.Snapshot) (diag.List, error) {
	lost, err := lostInV1(ctx, c, at, p.proxiesInV1)
	return slices.Concat(at.Problems, c.Problems(), lost, p.expiries.Of(at, p.now)), err
}

// problemsBeside returns the problems of a list that another one lacks.
func problemsBeside(list, other diag.List) diag.List {
	known := map[diag.Problem]bool{}
	for _, p := range other {
		known[feedback.Unplaced(p)] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(p diag.Problem) bool { return known[feedback.Unplaced(p)] })
}

// crowds returns the connected proxies in crowds, the largest first.
func (p *preview) crowds() []*crowd {
	byViews := map[[2]string]*crowd{}
	for _, c := range p.fleet.Connected() {
		if p.namespaces != nil && !slices.Contains(p.namespaces, p.before.Settings.NamespaceOf(c.Proxy)) {
			continue
		}
		before, after := c.TraitsIn(p.before), c.TraitsIn(p.after)
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

// compare records the changes for a crowd. Listeners at a proxy's own address are those of
// its first proxy.
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

// resourceOf returns nil for a part that does not exist or is left out.
func resourceOf[Part any](part *Part, encode func(*Part) *xds.Resource) *xds.Resource {
	if part == nil {
		return nil
	}
	if r := encode(part); r.Shell != nil {
		return r
	}
	return nil
}

// changedParts calls hand with the parts that are not the same value, nil for a missing
// one.
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

// endpoints returns nil for a set that Envoy would refuse.
func (p *preview) endpoints(of *mesh.Snapshot, key string) *xds.Resource {
	id := setID{of, key}
	r, made := p.sets[id]
	if !made {
		r, _ = p.encoder.V3.EncodeEndpoints(key, compiled.MembersOf(of, key), v3.Endpoints)
		p.sets[id] = r
	}
	return r
}

// setID identifies a set of endpoints at one of the two times.
type setID struct {
	snapshot *mesh.Snapshot
	key      string
}

// note counts a change for a crowd, if the two resources differ.
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

// change is a change with the resources that it is encoded from.
type change struct {
	ResourceChange
	was, is *xds.Resource
}

// encoded returns the change with its messages.
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

// compareChanges sorts changes for readers.
func compareChanges(a, b *ResourceChange) int {
	return cmp.Or(
		cmp.Compare(slices.Index(xds.ConfigTypes, a.Type), slices.Index(xds.ConfigTypes, b.Type)),
		strings.Compare(a.Name, b.Name), cmp.Compare(b.Proxies, a.Proxies), slices.Compare(a.Nodes, b.Nodes))
}

// Add adds the preview of the same objects by another replica, for the proxies of that
// replica.
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

// isSame reports whether two changes are the same, for different proxies.
func (c ResourceChange) isSame(other ResourceChange) bool {
	return c.Type == other.Type && c.Name == other.Name && sameMessage(c.Before, other.Before) && sameMessage(c.After, other.After)
}

// sameMessage reports whether two messages are the same. One of them may have been encoded
// again on its way.
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
