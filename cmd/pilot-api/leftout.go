package main

import (
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
)

// leftOut are the problems of stored values that a view cannot read.
func leftOut(view *cache.Cache) func() diag.List {
	return func() diag.List {
		var problems diag.List
		for _, u := range view.Unreadable(store.Scope{}) {
			problems = append(problems, u.Problem())
		}
		return problems
	}
}
