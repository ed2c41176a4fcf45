package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/store"
)

const (
	// PageSize is the number of objects in a request, as in kubectl.
	PageSize = 500
	// listTries is how often a paged list is started, if the server forgets its
	// revision before the last page is read.
	listTries = 5
	// maxList bounds what a whole list takes in memory, in bytes.
	maxList = 1 << 30
)

// ChunkSize is the number of objects per request that the user asked for.
type ChunkSize int64

// Add adds the flag to a command.
func (n *ChunkSize) Add(cmd *cobra.Command) {
	cmd.Flags().Int64Var((*int64)(n), "chunk-size", PageSize, "number of objects in a request, all of one revision; 0 means all")
}

// Check refuses a negative size.
func (n ChunkSize) Check() error {
	if n < 0 {
		return Usagef("--chunk-size %d: must be 0 (all at once) or more", n)
	}
	return nil
}

// Pager lists the objects of a selection in pages, all of them at one revision.
type Pager interface {
	Pages(ctx context.Context, what client.Selection, opts store.ListOptions) iter.Seq2[*client.ListWithStatus, error]
}

// List reads the selection in pages, all of it at one revision. If the server drops that
// revision too often before the last page, List reads everything in one request.
func List(ctx context.Context, s *Session, p Pager, what client.Selection, size ChunkSize) (list *client.ListWithStatus, err error) {
	for range listTries {
		list, err = readPages(ctx, s, p, what, size)
		if !errors.Is(err, store.ErrExpired) {
			return list, err
		}
	}
	return readPages(ctx, s, p, what, 0)
}

func readPages(ctx context.Context, s *Session, p Pager, what client.Selection, size ChunkSize) (*client.ListWithStatus, error) {
	defer s.ClearProgress()
	whole, weight := &client.ListWithStatus{}, 0
	for page, err := range p.Pages(ctx, what, store.ListOptions{Limit: int(size)}) {
		if err != nil {
			return nil, err
		}
		if weight += page.Weight(); weight > maxList {
			return nil, fmt.Errorf("the list takes more than about %d MiB of memory after %d objects: list one kind, or one namespace",
				maxList>>20, len(whole.Items)+len(page.Items))
		}
		whole.Revision, whole.Items = page.Revision, append(whole.Items, page.Items...)
		if page.Remaining != 0 {
			s.Progress(fmt.Sprintf("%d objects", len(whole.Items)))
		}
	}
	return whole, nil
}
