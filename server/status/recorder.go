package status

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Keeper is a store that keeps statuses, for one of the servers that share it.
type Keeper interface {
	// Lead waits until the store keeps statuses and this server is the one that writes
	// them. The error is ctx's, or one of the store.
	Lead(ctx context.Context) (Writer, error)
}

// Writer writes status revisions. It is for use by one goroutine.
type Writer interface {
	// Known returns the statuses that are stored.
	Known() map[schema.Key]store.StoredStatus
	// Write writes statuses, and removes those of objects that are gone. After an error the
	// Writer must not be used again.
	Write(ctx context.Context, moved []store.StoredStatus, gone []schema.Key) error
	// Lost is closed when another server may write, or soon will.
	Lost() <-chan struct{}
	// Close lets another server write.
	Close()
}

const (
	// recordInterval is the time between two status revisions. A status that has moved and
	// is back after it was never written.
	recordInterval = time.Second
	// recordBurst and recordRate bound the statuses that are written: at once, and in a
	// second after that. They are a tenth of the changes that watches can catch up with, at
	// once and in a minute (cache.DefaultWindow).
	recordBurst = 5000
	recordRate  = recordBurst / 60.
	// recordRetry is the delay after a failure of the store.
	recordRetry = 2 * time.Second
)

// Recorder writes the statuses of a Board to a store that keeps them. Make it with
// NewRecorder.
type Recorder struct {
	board  *Board
	to     Keeper
	log    *slog.Logger
	budget *rate.Limiter
}

// NewRecorder returns a Recorder. It starts nothing.
func NewRecorder(board *Board, to Keeper, log *slog.Logger) *Recorder {
	return &Recorder{board, to, log, rate.NewLimiter(recordRate, recordBurst)}
}

// Run writes statuses whenever this server is the one that may, until ctx ends. It returns
// ctx's error.
func (r *Recorder) Run(ctx context.Context) error {
	said := ""
	for {
		err := r.lead(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && err.Error() != said {
			said = err.Error()
			r.log.Warn("statuses are not written at present", "error", store.Logged(err))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(recordRetry):
		}
	}
}

// lead writes statuses from the time when this server may until it may not.
func (r *Recorder) lead(ctx context.Context) error {
	to, err := r.to.Lead(ctx)
	if err != nil {
		return err
	}
	defer to.Close()
	defer r.board.Watch()()
	w := &recording{Recorder: r, to: to, known: to.Known(), dirty: map[schema.Key]uint64{}, seen: fromStart}
	tick := time.NewTicker(recordInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-to.Lost():
			return nil
		case <-tick.C:
			if err := w.write(ctx); err != nil {
				return err
			}
		}
	}
}

// recording is the work of one Writer.
type recording struct {
	*Recorder
	to    Writer
	known map[schema.Key]store.StoredStatus
	// dirty are the objects whose status may differ from the stored one, with the number of
	// the round in which that began.
	dirty map[schema.Key]uint64
	seen  uint64 // version of the board
	round uint64
}

// fromStart is no version of a board: all statuses may differ from the stored ones.
const fromStart = ^uint64(0)

// move is a status to write. Those with a lower rank come first.
type move struct {
	store.StoredStatus
	rank  int
	since uint64
}

// write makes a status revision if statuses have moved.
func (w *recording) write(ctx context.Context) error {
	w.round++
	keys, seen, _ := w.board.Since(w.seen)
	// This table may be newer than the keys, never older. The next round finds
	// the rest of it.
	table := w.board.Recent()
	if table.Revision() == 0 {
		return nil // Nothing is known before the first publication.
	}
	if w.seen == fromStart {
		keys = slices.Collect(maps.Keys(table.entries))
	}
	w.seen = seen
	w.look(keys)
	moves := w.moves(table)
	if len(moves) == 0 {
		return nil
	}
	moved := make([]store.StoredStatus, len(moves))
	for i, one := range moves {
		moved[i] = one.StoredStatus
	}
	gone := w.gone(table)
	if err := w.to.Write(ctx, moved, gone); err != nil {
		return err
	}
	for _, one := range moved {
		w.known[one.Key] = one
		delete(w.dirty, one.Key)
	}
	for _, key := range gone {
		delete(w.known, key)
	}
	return nil
}

// look adds objects whose status has changed on the board.
func (w *recording) look(keys []schema.Key) {
	for _, key := range keys {
		if _, already := w.dirty[key]; !already {
			w.dirty[key] = w.round
		}
	}
}

// moves returns the statuses that differ from the stored ones, as many as the budget
// allows: first the objects without a status for their present version, then conditions,
// and last mere numbers of proxies.
func (w *recording) moves(table *Table) []move {
	var all []move
	for key, since := range w.dirty {
		is := table.entries[key]
		if kind, _ := schema.KindByName(key.Kind); is == nil || kind == nil || kind.Flat {
			delete(w.dirty, key)
			continue
		}
		one, differs := moveOf(key, is, w.known[key])
		if !differs {
			delete(w.dirty, key) // It has moved back.
			continue
		}
		one.since = since
		all = append(all, one)
	}
	// Objects of neighbouring keys share pages of the store, so those are written together.
	slices.SortFunc(all, func(a, b move) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.since, b.since),
			cmp.Compare(a.Key.Kind, b.Key.Kind), cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	now := time.Now()
	if most := int(w.budget.TokensAt(now)); len(all) > most {
		all = all[:max(most, 0)]
	}
	w.budget.AllowN(now, len(all))
	return all
}

// moveOf returns the status of an object that replaces the stored one, which has no text if
// there is none. A condition that still has its status keeps its time.
func moveOf(key schema.Key, of *entry, was store.StoredStatus) (one move, differs bool) {
	is := short(of)
	one.StoredStatus = store.StoredStatus{Key: key, Of: of.revision(), StatusText: is}
	if was.StatusText == nil {
		return one, true
	}
	conditions := slices.Clone(is.Conditions)
	one.rank = 2
	for i := range conditions {
		c, before := &conditions[i], was.Condition(conditions[i].Type)
		if c.Status != before.Status || c.Reason != before.Reason {
			one.rank = 1
		}
		if c.Status == before.Status && !before.LastTransitionTime.IsZero() {
			c.LastTransitionTime = before.LastTransitionTime
		}
	}
	if was.Of != one.Of {
		one.rank = 0
	} else if len(was.Conditions) == len(conditions) && sameStatus(is.Status, was.Status) {
		return one, false
	}
	if !slices.Equal(conditions, is.Conditions) {
		status := schema.Status{Programmed: is.Programmed, Conditions: conditions}
		one.StatusText = &schema.StatusText{Status: status, JSON: textOf(status)}
	}
	return one, true
}

// short returns the status of an entry with messages that are short enough to be stored.
func short(of *entry) *schema.StatusText {
	out := &schema.StatusText{Status: of.status, JSON: of.text}
	// A byte of a message takes up to six in JSON, and a condition has few other bytes.
	for most := store.MaxStoredStatus / 4; len(out.JSON) > store.MaxStoredStatus; most /= 2 {
		out.Conditions = slices.Clone(out.Conditions)
		for i := range out.Conditions {
			if c := &out.Conditions[i]; len(c.Message) > most {
				c.Message = strings.ToValidUTF8(c.Message[:most], "") + "…"
			}
		}
		out.JSON = textOf(out.Status)
	}
	return out
}

// gone returns the stored objects that do not exist any more.
func (w *recording) gone(table *Table) (keys []schema.Key) {
	for key := range w.known {
		if table.entries[key] == nil {
			keys = append(keys, key)
		}
	}
	return keys
}
