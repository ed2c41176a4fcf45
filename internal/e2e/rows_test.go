package e2e

import (
	"path/filepath"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// bookshop is the setting of the demo.
var bookshop = Bookshop(filepath.Join(root, "examples", "bookshop"))

// The rows of the demo, asserted.
func TestRows(t *testing.T) {
	outside.Slow(t)
	t.Parallel()
	assert(t, open(t, bookshop, proxyPort), Rows)
}

// And all of them hold for an Envoy that knows only what v1 discovery says, with
// requests that come as captured ones do.
func TestRowsOverV1(t *testing.T) {
	outside.Slow(t)
	t.Parallel()
	assert(t, open(t, bookshop, captured), Rows)
}

// And by its HTTP proxy port, unless that is left as Pilot had it.
func TestRowsOverV1AtProxyPort(t *testing.T) {
	outside.Slow(t)
	t.Parallel()
	s := bookshop
	s.Mesh = bookinfo.Mesh
	assert(t, open(t, s, proxyPortOverV1), Rows)
}

// assert tries each row in turn.
func assert(t *testing.T, w *World, rows []Row) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.Title(), func(t *testing.T) {
			v, err := w.Play(t.Context(), row)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(v.Did)
			if v.Wrong != "" {
				t.Errorf("%s: should be %s, but %s", v.Did, row.Should, v.Wrong)
			}
		})
	}
}
