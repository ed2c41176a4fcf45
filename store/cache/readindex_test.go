package cache

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/memory"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// asked is a source that passes each request for its revision to the test, which
// answers it.
type asked struct {
	store.Reader
	questions chan chan int64
}

func (a asked) Revision(context.Context) (int64, error) {
	answer := make(chan int64)
	a.questions <- answer
	return <-answer, nil
}

// TestQuestionIsJoinedUntilItIsSent checks that a reader does not use the answer to a
// question that was sent before it came, because there may have been a write in
// between. All readers that come before the next question is sent share that one.
func TestQuestionIsJoinedUntilItIsSent(t *testing.T) {
	source := asked{questions: make(chan chan int64)}
	f := newReadIndex(source)
	first := f.join()
	answerFirst := <-source.questions
	second, third := f.join(), f.join()
	if second == first {
		t.Error("joined a question that was sent before")
	}
	if second != third {
		t.Error("two questions are being gathered for")
	}
	select {
	case <-source.questions:
		t.Error("two questions are under way")
	default:
	}
	answerFirst <- 5
	<-first.done
	answerSecond := <-source.questions
	if f.join() == second {
		t.Error("joined the second question after it was sent")
	}
	answerSecond <- 7
	<-second.done
	if first.revision != 5 || second.revision != 7 {
		t.Errorf("answers %d and %d", first.revision, second.revision)
	}
	(<-source.questions) <- 9
}

// knowing is a source that knows its revision without a request.
type knowing struct {
	store.Interface
	now atomic.Int64
}

func (k *knowing) Now(context.Context) (int64, bool) { return k.now.Load(), k.now.Load() > 0 }

func (k *knowing) Create(ctx context.Context, obj *schema.Object) (*schema.Object, error) {
	out, err := k.Interface.Create(ctx, obj)
	if err == nil {
		k.now.Store(out.Revision())
	}
	return out, err
}

func (k *knowing) Revision(context.Context) (int64, error) {
	return 0, errors.New("asked for what is known")
}

// TestKnownRevisionIsNotAskedFor checks that a read waits for the revision that the
// source knows by itself, and sends no request.
func TestKnownRevisionIsNotAskedFor(t *testing.T) {
	source := &knowing{Interface: memory.New()}
	c := New(source, Options{Log: slog.New(slog.DiscardHandler)})
	go c.Run(t.Context())
	for i := range 100 {
		made, err := source.Create(t.Context(), storetest.Rule(t, "default", "a"+strconv.Itoa(i), 1))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Get(t.Context(), made.Key(), store.ReadOptions{}); err != nil {
			t.Fatalf("right after create %d: %v", i, err)
		}
	}
	// Only a request shows whether the source answers at all.
	if _, err := c.readIndex.asked(t.Context()); err == nil {
		t.Error("a question was answered by what is known")
	}
}
