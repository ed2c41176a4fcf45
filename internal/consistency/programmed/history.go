// Package programmed checks what clients were told about proxies: that proxies run an object,
// and which revision a proxy runs. It compares the answers with what simulated proxies recorded
// about themselves (docs/decisions/013-consistency.md). It starts no programs:
// internal/consistency/soak makes the histories.
package programmed

import (
	"fmt"
	"time"

	"github.com/pilot-api/pilot-api/internal/consistency"
	"github.com/pilot-api/pilot-api/schema"
)

// History is a history of what proxies had, and of what clients were told about that. Each
// write of an object has a number, which its effect on proxies shows: a mark. Times are since
// the start of the history, on one monotonic clock.
type History struct {
	Writes   []Write
	Proxies  []*Proxy
	Deaths   []Death // in the order of their times
	Statuses []Status
	Shown    []Shown
}

// Write is one write of an object. The numbers of the writes of an object increase.
type Write struct {
	Key          schema.Key
	Number       int
	Deleted      bool
	Private      bool // only proxies of the namespace of the object have it
	Call, Return time.Duration
	Outcome      consistency.Outcome // OK, Refused or Unknown
	Revision     int64               // 0 if it is not known
}

// hides reports whether proxies of a namespace have no mark of the object after the write.
func (w *Write) hides(namespace string) bool {
	return w.Deleted || w.Private && w.Key.Namespace != namespace
}

// Proxy is what one simulated proxy did.
type Proxy struct {
	Name, Namespace string
	Streams         []Stream // in the order of their times
	// Had are the changes of what the proxy had, by object. The proxy notes a change before it
	// acks it.
	Had     map[schema.Key][]Had
	Refused []Refusal
}

// Had is a change: from a time on, a proxy had the mark of a write. The number is 0 if it
// had none.
type Had struct {
	At     time.Duration
	Number int
	// Anew means that the proxy has begun anew, and has nothing.
	Anew bool
}

// Refusal is a NACK of a response with the mark of a write. A proxy never takes a mark that
// it has refused.
type Refusal struct {
	Key    schema.Key
	Number int
	At     time.Duration
}

// Stream is one connection of a proxy to a server.
type Stream struct {
	Server int
	// Begin is when the proxy began to connect, From when it had the first response, or 0, and
	// To when the stream ended.
	Begin, From, To time.Duration
	End             StreamEnd
	Why             error // of a broken stream
}

// StreamEnd is how a stream ended.
type StreamEnd string

const (
	Open   StreamEnd = "open"
	Closed StreamEnd = "closed" // by the proxy
	Broken StreamEnd = "broken" // by the server, or with it
	Silent StreamEnd = "silent" // nothing passes, and nobody is told
)

// Death is the end of a server. Back is when it was started again, 0 if it was not.
type Death struct {
	Server   int
	At, Back time.Duration
}

// Status is a status of an object in an answer.
type Status struct {
	Server       string
	Key          schema.Key
	Number       int // the write that the object in the answer is from
	True         bool
	Running      int
	Fresh        bool // computed after the request
	Message      string
	Call, Return time.Duration
}

func (s *Status) String() string {
	return fmt.Sprintf("%s..%s %s of %s by %s: %d running, programmed %t (%s), fresh %t",
		seconds(s.Call), seconds(s.Return), s.Key, mark(s.Number), s.Server, s.Running, s.True, s.Message, s.Fresh)
}

// Shown is a connected proxy in an answer.
type Shown struct {
	Server, Proxy string
	Revision      int64 // that it runs
	Call, Return  time.Duration
}

func mark(number int) string { return fmt.Sprintf("write %d", number) }

func seconds(d time.Duration) string { return fmt.Sprintf("%.4fs", d.Seconds()) }
