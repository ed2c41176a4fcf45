package server

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// watchPlaces bounds the watches at one time. At the bound, a client that has fewer
// watches than another takes the place of the oldest of the client that has the most,
// whose watch ends as it does at its timeout: it can go on from where it was. Clients are
// told apart by address. It is safe for concurrent use.
type watchPlaces struct {
	most int

	mu  sync.Mutex
	all int
	of  map[string]*list.List // of *watchPlace by client, the oldest first; none is empty
}

// watchPlace is that of one watch.
type watchPlace struct {
	client string
	at     *list.Element
	ended  chan struct{} // closed when the watch must end
}

func newWatchPlaces(most int) *watchPlaces {
	return &watchPlaces{most: most, of: map[string]*list.List{}}
}

// watchShare is the part of all connections that watches may have. The others are for
// requests that are soon answered: health, metrics, reads, polls.
func watchShare(connections int) int { return max(1, connections/4*3) }

// take is nil where there is no place for the client.
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
	own := p.of[client]
	if own == nil {
		own = list.New()
		p.of[client] = own
	}
	place := &watchPlace{client: client, ended: make(chan struct{})}
	place.at = own.PushBack(place)
	p.all++
	return place
}

// makeRoomLocked ends a watch of the client that has the most, unless that would leave it
// fewer than the one that asks gets.
func (p *watchPlaces) makeRoomLocked(asks string) bool {
	most, greediest := 0, ""
	for client, own := range p.of {
		if own.Len() > most {
			most, greediest = own.Len(), client
		}
	}
	own := 0
	if l := p.of[asks]; l != nil {
		own = l.Len()
	}
	if most < own+2 {
		return false
	}
	oldest := p.of[greediest].Front().Value.(*watchPlace)
	p.leaveLocked(oldest)
	close(oldest.ended)
	return true
}

// leave gives a place free.
func (p *watchPlaces) leave(place *watchPlace) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaveLocked(place)
}

func (p *watchPlaces) leaveLocked(place *watchPlace) {
	if place.at == nil {
		return
	}
	own := p.of[place.client]
	own.Remove(place.at)
	place.at = nil
	if p.all--; own.Len() == 0 {
		delete(p.of, place.client)
	}
}
