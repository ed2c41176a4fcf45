package cache

import (
	"context"
	"testing"

	"github.com/pilot-api/pilot-api/store"
)

// asked is a source that hands over each question for its revision, to be
// answered by the test.
type asked struct {
	store.Reader
	questions chan chan int64
}

func (a asked) Revision(context.Context) (int64, error) {
	answer := make(chan int64)
	a.questions <- answer
	return <-answer, nil
}

// TestQuestionIsJoinedUntilItIsSent: whoever comes after a question was sent
// must not be content with its answer, for there may have been a write between;
// all who come until the next one is sent share that one.
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
