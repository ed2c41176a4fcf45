// Package history knows what proxies may have been sent that is not in force any more:
// the views of recent snapshots, and of those before the start (ViewHistory), and the
// clusters that the views of one key have lost (RecentClusters). In come snapshots as
// they begin and end; out come views that a proxy may be at. What no proxy asks for is
// not compiled, nor what the present mesh leaves no room for, and all of it is forgotten
// after PastFor.
//
// Read in this order: viewhistory.go, paststate.go, recentclusters.go.
package history
