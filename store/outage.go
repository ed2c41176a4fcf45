package store

import (
	"context"
	"fmt"
	"time"

	"github.com/pilot-api/pilot-api/schema"
)

// Outage is a time in which a store has not answered.
type Outage struct {
	// Since is when it answered last.
	Since time.Time
	// Revision is that of the last known state.
	Revision int64
}

// String returns the outage as a sentence for people.
func (o Outage) String() string {
	return fmt.Sprintf("the store has not answered for %s (an etcd cluster answers only with a majority of its members)",
		time.Since(o.Since).Round(time.Second))
}

// LastKnown is in each warning about an answer that has the last known state because the
// store does not answer.
const LastKnown = "this is the last known state"

// Warning says that an answer has the last known state.
func (o Outage) Warning() string {
	return fmt.Sprintf("the store has not answered for %s: %s, of revision %d", time.Since(o.Since).Round(time.Second), LastKnown, o.Revision)
}

// Follower is a Reader that reads from a copy of another store.
type Follower interface {
	// Outage returns the present outage of the other store. ok is false if it answers.
	// While there is one, linearizable reads fail at once, and those of Any do not.
	Outage() (o Outage, ok bool)
}

// HistoryAtHand is History by whatever state is at hand, if h can give that.
func HistoryAtHand(ctx context.Context, h Historian, key schema.Key) ([]Version, error) {
	if at, ok := h.(HistorianAtHand); ok {
		return at.HistoryAtHand(ctx, key)
	}
	return h.History(ctx, key)
}

// HistorianAtHand is a Historian that can answer while a store has no majority.
type HistorianAtHand interface {
	// HistoryAtHand is History by whatever state is at hand, however old.
	HistoryAtHand(ctx context.Context, key schema.Key) ([]Version, error)
}

// OutageOf returns the present outage of the store that r reads from, if r knows of one.
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
