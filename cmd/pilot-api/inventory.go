package main

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/server/replica"
	"github.com/pilot-api/pilot-api/store/etcd/roster"
)

// inventory keeps the proxies of this replica in etcd, and knows those of the others from
// there. So a replica that starts knows who was connected to it before, and all know who
// was connected to one that died (docs/decisions/036-inventory.md).
type inventory struct {
	roster  *roster.Roster
	peers   replica.Peers
	alone   bool // no other replica shares the store: all pages are this one's
	proxies *discovery.Publisher
	log     *slog.Logger

	written [inventoryPages]string
	changes uint64 // of the proxies, when they were last written
	at      time.Time

	turn sync.Mutex // held while others is made anew

	mu     sync.Mutex
	others othersProxies // replaced as a whole; the holder of turn reads it without the lock
}

type inventoryPage struct{ proxies []discovery.Presence }

const (
	inventoryPages = 64
	// inventoryPace is the time between two looks at what has changed, inventoryRefresh
	// that after which revisions are written although nobody came or went.
	inventoryPace    = time.Second
	inventoryRefresh = 5 * time.Minute
	// inventoryTimeout bounds the requests to etcd of one look.
	inventoryTimeout = 5 * time.Second
)

func newInventory(of *roster.Roster, peers replica.Peers, alone bool, log *slog.Logger) *inventory {
	return &inventory{roster: of, peers: peers, alone: alone, log: log}
}

// load remembers the proxies that were connected to this replica before its start. It
// returns the revision of what it has read, 0 if etcd does not answer.
func (i *inventory) load(ctx context.Context, proxies *discovery.Publisher) (revision int64) {
	i.proxies = proxies
	ctx, cancel := context.WithTimeout(ctx, inventoryTimeout)
	defer cancel()
	revision, err := i.roster.Load(ctx)
	if err != nil {
		i.log.Warn("the proxies of before are not known: they are not waited for", "error", err)
		return 0
	}
	self := i.peers.Self()
	var known []discovery.Presence
	for name, texts := range i.roster.Pages() {
		if name != self && !i.alone {
			continue
		}
		for _, text := range texts {
			known = append(known, i.decode(text)...)
		}
		if name != self {
			i.clear(ctx, name)
		}
	}
	proxies.Remember(known)
	return revision
}

// clear removes the pages of an earlier name.
func (i *inventory) clear(ctx context.Context, name string) {
	for page := range inventoryPages {
		if err := i.roster.Put(ctx, name, page, ""); err != nil {
			return // It is tried again at the next start.
		}
	}
}

func (i *inventory) decode(text string) (all []discovery.Presence) {
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		i.log.Warn("a page of the roster of proxies cannot be read", "error", err)
	}
	return all
}

// run follows the other replicas and writes what has changed until ctx ends, and then once
// more.
func (i *inventory) run(ctx context.Context, revision int64) error {
	var following sync.WaitGroup
	following.Go(func() { _ = i.roster.Follow(ctx, revision) })
	defer following.Wait()
	tick := time.NewTicker(inventoryPace)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			i.look(context.WithoutCancel(ctx), true)
			return ctx.Err()
		case <-tick.C:
			i.look(ctx, false)
		}
	}
}

func (i *inventory) look(ctx context.Context, last bool) {
	ctx, cancel := context.WithTimeout(ctx, inventoryTimeout)
	defer cancel()
	i.readOthers(ctx)
	changes := i.proxies.RosterChanges()
	if changes == i.changes && time.Since(i.at) < inventoryRefresh && !last {
		return
	}
	if err := i.write(ctx); err != nil {
		i.log.Debug("the roster of proxies is not written", "error", err)
		return
	}
	i.changes, i.at = changes, time.Now()
}

// write writes the pages that have changed.
func (i *inventory) write(ctx context.Context) error {
	var pages [inventoryPages][]discovery.Presence
	for _, p := range i.proxies.Roster() {
		h := fnv.New32a()
		_, _ = h.Write([]byte(p.Node.ID))
		at := h.Sum32() % inventoryPages
		pages[at] = append(pages[at], p)
	}
	for page, proxies := range pages {
		text := ""
		if len(proxies) > 0 {
			encoded, err := json.Marshal(proxies)
			if err != nil {
				return err
			}
			text = string(encoded)
		}
		if text == i.written[page] {
			continue
		}
		if err := i.roster.Put(ctx, i.peers.Self(), page, text); err != nil {
			return err
		}
		i.written[page] = text
	}
	return nil
}

// readOthers takes in what the other replicas know. A page is decoded once.
func (i *inventory) readOthers(ctx context.Context) {
	if len(i.pagesOfOthers()) == 0 {
		i.turn.Lock()
		defer i.turn.Unlock()
		i.takeInLocked(nil)
		return
	}
	_, _ = i.listOthers(ctx) // After an error, what was known stays.
}

// listOthers returns the other replicas. When it returns, Lost and Has already follow from the
// list: the proxies of a replica that is not waited for any more are awaited at once.
func (i *inventory) listOthers(ctx context.Context) ([]replica.Replica, error) {
	i.turn.Lock()
	defer i.turn.Unlock()
	others, err := i.peers.Others(ctx)
	if err == nil {
		i.takeInLocked(others)
	}
	return others, err
}

// peersInInventory are the other replicas, of which the inventory knows as soon as anybody does.
type peersInInventory struct {
	replica.Peers
	known *inventory
}

func (p peersInInventory) Others(ctx context.Context) ([]replica.Replica, error) {
	return p.known.listOthers(ctx)
}

func (i *inventory) pagesOfOthers() map[string][]string {
	all := i.roster.Pages()
	delete(all, i.peers.Self())
	return all
}

// takeInLocked brings what the other replicas know up to date with the list of them.
func (i *inventory) takeInLocked(others []replica.Replica) {
	next := othersProxies{pages: map[string]*inventoryPage{}, there: map[discovery.Node]bool{}, lost: map[discovery.Node]discovery.Presence{}}
	missing := map[string]time.Time{}
	for _, o := range others {
		missing[o.Name] = o.Missing
	}
	for name, texts := range i.pagesOfOthers() {
		since, known := missing[name]
		for _, text := range texts {
			page := i.page(text)
			next.pages[text] = page
			for _, p := range page.proxies {
				next.add(p, since, known)
			}
		}
	}
	maps.DeleteFunc(next.lost, func(node discovery.Node, _ discovery.Presence) bool { return next.there[node] })
	i.mu.Lock()
	defer i.mu.Unlock()
	i.others = next
}

// page returns a page of another replica, decoded.
func (i *inventory) page(text string) *inventoryPage {
	if known := i.others.pages[text]; known != nil {
		return known
	}
	return &inventoryPage{i.decode(text)}
}

// othersProxies has the proxies that other replicas know.
type othersProxies struct {
	pages map[string]*inventoryPage             // by text
	there map[discovery.Node]bool               // connected to another replica
	lost  map[discovery.Node]discovery.Presence // known to a replica that is not there
}

// add adds a proxy from a page of a replica. The replica is missing since a time, zero if
// it is there, or not known any more.
func (o *othersProxies) add(p discovery.Presence, missing time.Time, known bool) {
	if known && missing.IsZero() {
		if p.Connected {
			o.there[p.Node] = true
		}
		return
	}
	if (p.Connected || p.Awaited) && known {
		p.LastSeen = missing
	}
	p.Connected, p.Lost = false, p.Lost || p.Connected
	if before, is := o.lost[p.Node]; !is || p.LastSeen.After(before.LastSeen) {
		o.lost[p.Node] = p
	}
}

// Has reports whether a proxy is connected to another replica.
func (i *inventory) Has(node discovery.Node) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.others.there[node]
}

// Lost returns the proxies that were known to a replica that is not there any more.
func (i *inventory) Lost() []discovery.Presence {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := make([]discovery.Presence, 0, len(i.others.lost))
	for _, p := range i.others.lost {
		all = append(all, p)
	}
	return all
}
