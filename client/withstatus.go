package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// ObjectWithStatus is an object and its status in the proxies.
type ObjectWithStatus struct {
	*schema.Object
	Raw json.RawMessage // the status as the server wrote it; nil for none
}

// Status returns the decoded status, nil if the server sent none.
func (s ObjectWithStatus) Status() (*schema.Status, error) {
	if len(s.Raw) == 0 {
		return nil, nil
	}
	var out schema.Status
	return &out, json.Unmarshal(s.Raw, &out)
}

// ListWithStatus is a store.List with the status of each object.
type ListWithStatus struct {
	Items     []ObjectWithStatus
	Revision  int64
	Remaining int
}

// Objects returns the list without the statuses.
func (l *ListWithStatus) Objects() *store.List {
	list := &store.List{Revision: l.Revision, Remaining: l.Remaining}
	for _, item := range l.Items {
		list.Items = append(list.Items, item.Object)
	}
	return list
}

// Weight estimates the memory of the items, in bytes.
func (l *ListWithStatus) Weight() (weight int) {
	for _, item := range l.Items {
		weight += item.weight()
	}
	return weight
}

// FollowStatuses calls tell with the status of each object in a scope of one kind, and then
// with each changed status, until ctx or the stream ends. It returns an error as Watch
// does. It is not a watch of the objects: it may report a status twice, and does not report
// deletions.
func (c *Client) FollowStatuses(ctx context.Context, scope store.Scope, tell func(ObjectWithStatus)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	query := InScope(scope).query()
	query.Set("watch", "true")
	query.Set("statusEvents", "true")
	resp, err := c.send(ctx, request{method: http.MethodGet, url: c.url(scope.Kind, scope.Namespace, "", query)})
	if err != nil {
		return err
	}
	f := newFrames(resp.Body, cancel)
	defer f.close()
	for {
		fr, err := f.next()
		if err != nil {
			return err
		}
		switch store.EventType(fr.Type) {
		case store.ErrorFrame:
			return fr.failure()
		case store.Added, store.Modified:
			o, err := decodeWithStatus(scope, fr.Object)
			if err != nil {
				return fmt.Errorf("a frame of the watch: %w", err)
			}
			tell(o)
		}
	}
}
