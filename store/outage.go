package store

import (
	"context"
	"fmt"
	"time"

	"github.com/pilot-api/pilot-api/schema"
)

// Outage is a period in which a store has not answered.
type Outage struct {
	// Since is the time of its last answer.
	Since time.Time
	// Revision is that of the last known state.
	Revision int64
}

// String returns the outage as a sentence for people.
func (o Outage) String() string {
	return fmt.Sprintf("the store has not answered for %s (an etcd cluster answers only with a majority of its members)",
		time.Since(o.Since).Round(time.Second))
}

// LastKnown is a part of each warning about an answer with the last known state, given
// because the store does not answer.
const LastKnown = "this is the last known state"

// Warning returns the warning for an answer with the last known state.
func (o Outage) Warning() string {
	return fmt.Sprintf("the store has not answered for %s: %s, of revision %d", time.Since(o.Since).Round(time.Second), LastKnown, o.Revision)
}

// Follower is a Reader that reads from a copy of another store.
type Follower interface {
	// Outage returns the present outage of the other store. ok is false if it answers.
	// During an outage, linearizable reads fail at once, and reads of Any succeed.
	Outage() (o Outage, ok bool)
}

// HistoryAtHand is History from any available state, however old, if h supports that.
func HistoryAtHand(ctx context.Context, h Historian, key schema.Key) ([]Version, error) {
	if at, ok := h.(HistorianAtHand); ok {
		return at.HistoryAtHand(ctx, key)
	}
	return h.History(ctx, key)
}

// HistorianAtHand is a Historian that can answer while a store has no majority.
type HistorianAtHand interface {
	// HistoryAtHand is History from any available state, however old.
	HistoryAtHand(ctx context.Context, key schema.Key) ([]Version, error)
}

// OutageOf returns the present outage of the store that r reads from, if r reports one.
func OutageOf(r Reader) (o Outage, ok bool) {
	if f, follows := r.(Follower); follows {
		return f.Outage()
	}
	return Outage{}, false
}

// CheckAnswers returns ErrUnavailable at once if the store that r reads from does not
// answer.
func CheckAnswers(r Reader) error {
	if o, out := OutageOf(r); out {
		return &Error{Kind: ErrUnavailable, Detail: o.String()}
	}
	return nil
}

// CheckWritable is CheckAnswers before a write: its error says that nothing was written.
func CheckWritable(r Reader) error {
	if o, out := OutageOf(r); out {
		return &Error{Kind: ErrUnavailable, Detail: "nothing was written: " + o.String()}
	}
	return nil
}
