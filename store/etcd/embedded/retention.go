package embedded

import "time"

// retention says how much history an embedded etcd keeps. The bound that is reached
// first applies.
type retention struct {
	revisions int64
	bytes     int64
	age       time.Duration
	quota     int64 // for present state and history together
}

// Percentages of the quota. Above crowded, the keeper drops history in steps that are large
// enough for a compaction. Above urgent, it drops steps of any size.
const (
	crowded = 80
	urgent  = 95
)

// grace is how long even a full store keeps a change, so that followers of the changes
// have received it.
const grace = 2 * time.Second

// horizon returns the revision up to which history should be dropped now, 0 for none.
// used is the space that the database occupies. Each bound may be exceeded a little before
// anything is dropped, because a compaction reads everything that is stored.
func (r retention) horizon(l *ledger, used int64, now time.Time) int64 {
	until := max(r.byCount(l), r.byBytes(l, used), r.byAge(l, now))
	n := 0
	for n < len(l.past) && l.past[n].revision <= until && now.Sub(l.past[n].seen) >= grace {
		n++
	}
	if n == 0 {
		return 0
	}
	return l.past[n-1].revision
}

func (r retention) byCount(l *ledger) int64 {
	n := int64(len(l.past))
	if n <= r.revisions+r.revisions/5 {
		return 0
	}
	return l.past[n-r.revisions-1].revision
}

func (r retention) byAge(l *ledger, now time.Time) int64 {
	until := int64(0)
	if len(l.past) == 0 || now.Sub(l.past[0].seen) <= r.age+r.age/24 {
		return until
	}
	for _, p := range l.past {
		if now.Sub(p.seen) <= r.age {
			break
		}
		until = p.revision
	}
	return until
}

func (r retention) byBytes(l *ledger, used int64) int64 {
	allowed := r.bytes
	if excess := used - r.quota/100*crowded; excess > 0 {
		worth := r.quota / 256
		if used > r.quota/100*urgent {
			worth = 1
		}
		if l.history >= worth {
			allowed = min(allowed, l.history-max(excess, worth))
		}
	}
	if l.history <= allowed || l.history == 0 {
		return 0
	}
	allowed -= allowed / 4
	left, until := l.history, int64(0)
	for _, p := range l.past {
		if left <= allowed {
			break
		}
		left -= p.bytes
		until = p.revision
	}
	return until
}

// worthDefragmenting is the number of free bytes in a database file from which a
// rewrite is worthwhile.
const worthDefragmenting = 1 << 30

// defragmentInterval is the minimum time between two defragmentations.
const defragmentInterval = time.Hour

// shouldDefragment reports whether a database file is so much larger than its content
// that a rewrite, which blocks reads and writes, is worthwhile.
func shouldDefragment(size, used int64) bool {
	return size-used >= worthDefragmenting && used <= size/2
}

// shouldPack reports whether a store that refuses writes should rewrite its file.
// Scattered deletes leave pages that are nearly empty but count as used. The content
// must have shrunk from its largest size since the last rewrite by a part of the quota,
// otherwise a rewrite gains nothing.
func shouldPack(used, content, most, quota int64) bool {
	part := quota / 16
	return used-content >= part && most-content >= part
}
