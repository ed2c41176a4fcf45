package client

import (
	"cmp"
	"context"
	"slices"

	"github.com/pilot-api/pilot-api/store"
)

// multiKindWatch joins the streams of all kinds into one watch. An event is held
// until every stream has told that it is past the event's revision; those that
// are not are asked for progress. So the order of revisions holds across kinds
// and a transaction stays one batch, for the price of one request a kind for
// each burst of changes.
type multiKindWatch struct {
	streams []*stream
	in      chan part
	out     chan store.Batch

	seen    []int64 // by stream
	pending pendingEvents

	store.TerminalError
}

// part is what one stream brings: a batch or its end.
type part struct {
	stream int
	batch  store.Batch
	ended  bool
}

func (c *Client) watchAll(ctx context.Context, scope store.Scope, after int64) (store.Watcher, error) {
	ctx, cancel := context.WithCancel(ctx)
	m := &multiKindWatch{in: make(chan part), out: make(chan store.Batch)}
	for i, kind := range kindsIn(scope) {
		scope.Kind = kind
		s := c.newStream(scope, after)
		if err := s.start(ctx); err != nil {
			cancel()
			return nil, err
		}
		m.streams = append(m.streams, s)
		m.seen = append(m.seen, after)
		go m.forward(ctx, i, s)
	}
	go func() {
		defer close(m.out)
		m.End(m.run(ctx))
		cancel()
	}()
	return m, nil
}

func (m *multiKindWatch) Batches() <-chan store.Batch { return m.out }

func (m *multiKindWatch) RequestProgress(ctx context.Context) error {
	for _, s := range m.streams {
		if err := s.RequestProgress(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (m *multiKindWatch) forward(ctx context.Context, i int, s *stream) {
	send := func(p part) {
		select {
		case m.in <- p:
		case <-ctx.Done():
		}
	}
	for b := range s.out {
		send(part{stream: i, batch: b})
	}
	send(part{stream: i, ended: true})
}

func (m *multiKindWatch) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case p := <-m.in:
			if p.ended {
				return m.streams[p.stream].Err()
			}
			if err := m.take(ctx, p); err != nil {
				return err
			}
		}
	}
}

func (m *multiKindWatch) take(ctx context.Context, p part) error {
	m.seen[p.stream] = p.batch.Revision
	if err := m.pending.add(p.batch.Events...); err != nil {
		return err
	}
	slices.SortStableFunc(m.pending.events, func(a, b store.Event) int {
		return cmp.Compare(a.Object.Revision(), b.Object.Revision())
	})
	if err := m.askLaggards(ctx); err != nil {
		return err
	}
	return m.handOver(ctx)
}

func (m *multiKindWatch) askLaggards(ctx context.Context) error {
	waiting := m.pending.events
	if len(waiting) == 0 {
		return nil
	}
	newest := waiting[len(waiting)-1].Object.Revision()
	for i, s := range m.streams {
		if m.seen[i] >= newest {
			continue
		}
		if err := s.RequestProgress(ctx); err != nil {
			return err
		}
	}
	return nil
}

// handOver sends what every stream is past. The batch may well be empty: it
// still answers a request for progress.
func (m *multiKindWatch) handOver(ctx context.Context) error {
	floor := slices.Min(m.seen)
	n, _ := slices.BinarySearchFunc(m.pending.events, floor+1, func(e store.Event, revision int64) int {
		return cmp.Compare(e.Object.Revision(), revision)
	})
	select {
	case m.out <- store.Batch{Revision: floor, Events: m.pending.take(n)}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
