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
	// pageSize is how many objects are asked for at once, as by kubectl.
	pageSize = 500
	// listTries is how often a list in pages is begun whose revision the server
	// forgets before the last page is read.
	listTries = 5
)

// chunkSize is how many objects a person wants to be asked for at once.
type chunkSize int64

func (n *chunkSize) add(cmd *cobra.Command) {
	cmd.Flags().Int64Var((*int64)(n), "chunk-size", pageSize, "ask for so many objects at once, all of one revision; 0 asks for all")
}

func (n chunkSize) check() error {
	if n < 0 {
		return usagef("--chunk-size %d: must be 0 (all at once) or more", n)
	}
	return nil
}

// list reads in pages what is selected, all of it at one revision. If the server
// forgets that revision in between too often, it is asked for all at once.
func (s *session) list(ctx context.Context, c *client.Client, what client.Selection, size chunkSize) (list *client.StatedList, err error) {
	for range listTries {
		list, err = s.pages(ctx, c, what, size)
		if !errors.Is(err, store.ErrExpired) {
			return list, err
		}
	}
	return s.pages(ctx, c, what, 0)
}

func (s *session) pages(ctx context.Context, c *client.Client, what client.Selection, size chunkSize) (*client.StatedList, error) {
	defer s.clearProgress()
	whole := &client.StatedList{}
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
