// Package pastviews keeps earlier configuration that proxies may still run: the views of
// recent snapshots, and of snapshots from before the start (Recorder), and the clusters
// that the views of one key have lost (RecentClusters). Callers report the begin and end of
// each snapshot; the package returns the views that a proxy may be at. It compiles a view
// only on request and only if memory allows, and forgets everything after PastFor.
//
// Read in this order: recorder.go, paststate.go, recentclusters.go.
package pastviews
