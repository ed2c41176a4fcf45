package history

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/ir"
)

// RecentClusters are the clusters that the views of an entry had until a short while ago. A
// proxy whose stream was cut meanwhile may still route by them; in the state of the
// world it does not say so.
type RecentClusters struct {
	mu             sync.Mutex
	turned         time.Time
	recent, before map[string]*ir.Cluster // that went since turned, and in the PastFor before that
}

// maxRecentClusters bounds the clusters remembered of an entry.
const maxRecentClusters = 1 << 12

// Note takes down what a view has no more.
func (l *RecentClusters) Note(gone []*ir.Cluster) {
	if len(gone) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn()
	if l.recent == nil {
		l.recent = map[string]*ir.Cluster{}
	}
	for _, c := range gone {
		if len(l.recent) < maxRecentClusters {
			l.recent[c.Name] = c
		}
	}
}

// View is one with those clusters and nothing else, nil where there are none.
func (l *RecentClusters) View() *compiled.View {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn()
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

// turn forgets.
func (l *RecentClusters) turn() {
	switch since := time.Since(l.turned); {
	case since > 2*PastFor:
		l.before, l.recent, l.turned = nil, nil, time.Now()
	case since > PastFor:
		l.before, l.recent, l.turned = l.recent, nil, time.Now()
	}
}
