package cli

import (
	"bytes"
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/store"
)

// endlessPages is a Pager whose pages have no end and a size each.
type endlessPages struct {
	size  int
	given int
}

func (p *endlessPages) Pages(context.Context, client.Selection, store.ListOptions) iter.Seq2[*client.ListWithStatus, error] {
	status := bytes.Repeat([]byte("x"), p.size) // All pages share it.
	return func(yield func(*client.ListWithStatus, error) bool) {
		page := &client.ListWithStatus{Revision: 7, Remaining: -1, Items: []client.ObjectWithStatus{{Raw: status}}}
		for p.given < 1000 && yield(page, nil) {
			p.given++
		}
	}
}

// TestListIsBounded checks that pages without end do not fill the memory.
func TestListIsBounded(t *testing.T) {
	pages := &endlessPages{size: maxList / 16}
	_, err := List(t.Context(), &Session{Program: &Program{Stderr: &bytes.Buffer{}}}, pages, client.Selection{}, PageSize)
	if err == nil || !strings.Contains(err.Error(), "memory after 17 objects") || pages.given > 16 {
		t.Errorf("error %v after %d pages", err, pages.given)
	}
}
