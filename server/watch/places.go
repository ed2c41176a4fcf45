package watch

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// watchPlaces bounds the watches at one time. At the bound, a client that has fewer
// watches than another takes a place of the client that has the most. The oldest
// watch of that client ends as at its timeout, so the client can resume it. Clients
// are distinguished by address. It is safe for concurrent use.
type watchPlaces struct {
	most int

	mu       sync.Mutex
	all      int
	byClient map[string]*list.List // places, oldest first; no list is empty
}

// watchPlace is the place of one watch.
type watchPlace struct {
	client string
	at     *list.Element
	ended  chan struct{} // closed when the watch must end
}

func newWatchPlaces(most int) *watchPlaces {
	return &watchPlaces{most: most, byClient: map[string]*list.List{}}
}

// ShareOf returns how many of all connections may be watches. The rest is for
// short requests: health, metrics, reads, polls.
func ShareOf(connections int) int { return max(1, connections/4*3) }

// take returns a place, or nil if there is none for the client.
func (p *watchPlaces) take(r *http.Request) *watchPlace {
	client, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		client = r.RemoteAddr
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all >= p.most && !p.makeRoomLocked(client) {
		return nil
	}
	own := p.byClient[client]
	if own == nil {
		own = list.New()
		p.byClient[client] = own
	}
	place := &watchPlace{client: client, ended: make(chan struct{})}
	place.at = own.PushBack(place)
	p.all++
	return place
}

// makeRoomLocked ends a watch of the client that has the most, unless that client
// would then have fewer than the one that asks.
func (p *watchPlaces) makeRoomLocked(asks string) bool {
	most, greediest := 0, ""
	for client, own := range p.byClient {
		if own.Len() > most {
			most, greediest = own.Len(), client
		}
	}
	own := 0
	if l := p.byClient[asks]; l != nil {
		own = l.Len()
	}
	if most < own+2 {
		return false
	}
	oldest := p.byClient[greediest].Front().Value.(*watchPlace)
	p.leaveLocked(oldest)
	close(oldest.ended)
	return true
}

// leave releases a place.
func (p *watchPlaces) leave(place *watchPlace) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaveLocked(place)
}

func (p *watchPlaces) leaveLocked(place *watchPlace) {
	if place.at == nil {
		return
	}
	own := p.byClient[place.client]
	own.Remove(place.at)
	place.at = nil
	if p.all--; own.Len() == 0 {
		delete(p.byClient, place.client)
	}
}
