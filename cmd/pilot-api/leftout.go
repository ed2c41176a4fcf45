package main

import (
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
)

// leftOut returns a function that lists the problems of stored values that a cache
// cannot read. For some of them the last good state stays in effect.
func leftOut(cached *cache.Cache) func() diag.List {
	return func() diag.List {
		var problems diag.List
		for _, u := range cached.Unreadable(store.Scope{}) {
			if last := cached.LastGood(u.Key); last != nil {
				problems = append(problems, u.FollowedProblem(last))
				continue
			}
			problems = append(problems, u.Problem())
		}
		return problems
	}
}
