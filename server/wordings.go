package server

import (
	"hash/maphash"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
)

// wording is a status and its JSON, shared by all objects with the same status.
type wording struct {
	status schema.Status
	text   []byte
}

// wordings interns the statuses of a board, because most objects share their status
// with many others. It is for one goroutine at a time.
type wordings struct {
	known map[uint64]*wording // by hash
	used  int                 // size after the last cleanup
}

func (w *wordings) wordingOf(status schema.Status) *wording {
	key := hashOf(status)
	one := w.known[key]
	if one == nil || one.status.Programmed != status.Programmed || !slices.Equal(one.status.Conditions, status.Conditions) {
		one = &wording{status, textOf(status)}
		w.put(key, one)
	}
	return one
}

func (w *wordings) put(key uint64, one *wording) {
	if w.known == nil {
		w.known = map[uint64]*wording{}
	}
	w.known[key] = one
}

// keep drops, from time to time, the statuses that no posting uses.
func (w *wordings) keep(postings map[schema.Key]*posting) {
	const few = 64
	if len(w.known) < few+2*w.used {
		return
	}
	w.known = nil
	for _, p := range postings {
		w.put(hashOf(p.status), p.wording)
	}
	w.used = len(w.known)
}

var wordingSeed = maphash.MakeSeed()

func hashOf(s schema.Status) uint64 {
	return maphash.Comparable(wordingSeed, struct {
		schema.Programmed
		conditions [3]metav1.Condition
	}{s.Programmed, [3]metav1.Condition(s.Conditions)})
}
