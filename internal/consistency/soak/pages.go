package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/pilot-api/pilot-api/internal/consistency"
)

// continueOf returns where the next page of a list begins. It is empty after the last
// page and for other answers.
func continueOf(answer []byte) string {
	var list struct{ Metadata struct{ Continue string } }
	_ = json.Unmarshal(answer, &list)
	return list.Metadata.Continue
}

// page returns the path of the next page.
func page(op *consistency.Operation, next string) string {
	return path(op.Scope) + "?" + url.Values{"limit": {strconv.Itoa(op.Limit)}, "continue": {next}}.Encode()
}

// takePage adds the next page of a list. All pages have one revision.
func takePage(op *consistency.Operation, now time.Duration, status int, answer []byte, err error) {
	first := *op
	take(op, status, answer, err)
	switch {
	case op.Outcome == consistency.Gone:
		op.Exact, op.Return = first.Revision, now
	case op.Outcome == consistency.OK && op.Revision != first.Revision:
		op.Outcome, op.Detail = consistency.Unexpected, fmt.Sprintf("a page of revision %d", op.Revision)
		op.Revision = first.Revision
	}
}

// readList adds the items of a list and returns its revision.
func readList(op *consistency.Operation, answer []byte) (revision int64, err error) {
	var list struct {
		Metadata struct {
			Revision int64 `json:"resourceVersion,string"`
		}
		Items []document
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return op.Revision, err
	}
	for _, item := range list.Items {
		op.Items = append(op.Items, item.version(op.Scope.Kind.Kind))
	}
	if op.Limit != 0 && len(list.Items) > op.Limit {
		err = fmt.Errorf("%d items of at most %d", len(list.Items), op.Limit)
	}
	return list.Metadata.Revision, err
}
