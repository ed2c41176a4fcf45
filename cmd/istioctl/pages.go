package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/store"
)

const (
	// pageSize is the number of objects in a request, as in kubectl.
	pageSize = 500
	// listTries is how often a paged list is started, if the server forgets its
	// revision before the last page is read.
	listTries = 5
)

// chunkSize is the number of objects per request that the user asked for.
type chunkSize int64

func (n *chunkSize) add(cmd *cobra.Command) {
	cmd.Flags().Int64Var((*int64)(n), "chunk-size", pageSize, "number of objects in a request, all of one revision; 0 means all")
}

func (n chunkSize) check() error {
	if n < 0 {
		return usagef("--chunk-size %d: must be 0 (all at once) or more", n)
	}
	return nil
}

// listAll reads the selection in pages, all of it at one revision. If the server forgets
// that revision too often in between, list reads everything in one request.
func listAll(ctx context.Context, s *session, c *client.Client, what client.Selection, size chunkSize) (list *client.ListWithStatus, err error) {
	for range listTries {
		list, err = readPages(ctx, s, c, what, size)
		if !errors.Is(err, store.ErrExpired) {
			return list, err
		}
	}
	return readPages(ctx, s, c, what, 0)
}

func readPages(ctx context.Context, s *session, c *client.Client, what client.Selection, size chunkSize) (*client.ListWithStatus, error) {
	defer s.clearProgress()
	whole := &client.ListWithStatus{}
	for page, err := range c.Pages(ctx, what, store.ListOptions{Limit: int(size)}) {
		if err != nil {
			return nil, err
		}
		whole.Revision, whole.Items = page.Revision, append(whole.Items, page.Items...)
		if page.Remaining != 0 {
			s.progress(fmt.Sprintf("%d objects", len(whole.Items)))
		}
	}
	return whole, nil
}
