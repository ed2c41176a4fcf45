package pastviews

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/ir"
)

// RecentClusters has the clusters that the views of an entry have lost recently. A proxy
// that lost its stream in between may still route to them. A state-of-the-world proxy does
// not report this.
type RecentClusters struct {
	mu             sync.Mutex
	rotated        time.Time
	recent, before map[string]*ir.Cluster // lost since rotated, and lost in the PastFor before that
}

// maxRecentClusters bounds the lost clusters of an entry.
const maxRecentClusters = 1 << 12

// Note records the clusters that next has lost.
func (l *RecentClusters) Note(gone []*ir.Cluster) {
	if len(gone) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rotate()
	if l.recent == nil {
		l.recent = map[string]*ir.Cluster{}
	}
	for _, c := range gone {
		if len(l.recent) < maxRecentClusters {
			l.recent[c.Name] = c
		}
	}
}

// View returns a view with only those clusters, or nil if there are none.
func (l *RecentClusters) View() *compiled.View {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rotate()
	all := maps.Clone(l.before)
	if all == nil {
		all = map[string]*ir.Cluster{}
	}
	maps.Copy(all, l.recent)
	if len(all) == 0 {
		return nil
	}
	return &compiled.View{Config: &ir.Config{Clusters: slices.SortedFunc(maps.Values(all), compiled.ByClusterName)}}
}

// rotate forgets the clusters that were lost too long ago.
func (l *RecentClusters) rotate() {
	switch since := time.Since(l.rotated); {
	case since > 2*PastFor:
		l.before, l.recent, l.rotated = nil, nil, time.Now()
	case since > PastFor:
		l.before, l.recent, l.rotated = l.recent, nil, time.Now()
	}
}
