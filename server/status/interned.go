package status

import (
	"hash/maphash"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
)

// internedStatus is a status and its JSON, shared by all objects with the same status.
type internedStatus struct {
	status schema.Status
	text   []byte
}

// internedStatuses interns the statuses of tables, because most objects share their status
// with many others. It is for one goroutine at a time.
type internedStatuses struct {
	known map[uint64]*internedStatus // by hash
	used  int                        // size after the last cleanup
}

func (w *internedStatuses) intern(status schema.Status) *internedStatus {
	key := hashOf(status)
	one := w.known[key]
	if one == nil || one.status.Programmed != status.Programmed || !slices.Equal(one.status.Conditions, status.Conditions) {
		one = &internedStatus{status, textOf(status)}
		w.put(key, one)
	}
	return one
}

func (w *internedStatuses) put(key uint64, one *internedStatus) {
	if w.known == nil {
		w.known = map[uint64]*internedStatus{}
	}
	w.known[key] = one
}

// keep drops, from time to time, the statuses that no entry uses.
func (w *internedStatuses) keep(entries map[schema.Key]*entry) {
	const few = 64
	if len(w.known) < few+2*w.used {
		return
	}
	w.known = nil
	for _, p := range entries {
		w.put(hashOf(p.status), p.internedStatus)
	}
	w.used = len(w.known)
}

var internSeed = maphash.MakeSeed()

func hashOf(s schema.Status) uint64 {
	return maphash.Comparable(internSeed, struct {
		schema.Programmed
		conditions [3]metav1.Condition
	}{s.Programmed, [3]metav1.Condition(s.Conditions)})
}
