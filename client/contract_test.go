package client_test

import (
	"net/http/httptest"
	"testing"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/memory"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// behind starts a server over a store and returns a client of it.
func behind(tb testing.TB, s store.Interface) *client.Client {
	tb.Helper()
	srv := httptest.NewServer(server.New(server.Options{Store: store.Strict(s), Reads: s}).Handler())
	tb.Cleanup(srv.Close)
	c, err := client.New(srv.URL, client.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func TestContract(t *testing.T) {
	outside.Slow(t)
	behindHTTP := map[store.Interface]*memory.Store{}
	storetest.Run(t, func(tb testing.TB) store.Interface {
		mem := memory.New()
		c := behind(tb, mem)
		behindHTTP[c] = mem
		return c
	}, storetest.Capabilities{Compact: func(_ testing.TB, s store.Interface, revision int64) {
		behindHTTP[s].Compact(revision)
	}})
}
