package stream

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/explain"
)

// brokenProxy is one about which we make a mistake.
type brokenProxy struct{ Proxy }

func (brokenProxy) ID() string               { return "broken" }
func (brokenProxy) Address() string          { return "" }
func (brokenProxy) View() *compiled.View     { panic("a mistake of ours") }
func (brokenProxy) IsGone() bool             { return false }
func (brokenProxy) Closed(*Stream)           {}
func (brokenProxy) Keep(*Remains)            {}
func (brokenProxy) Remains(*Stream) *Remains { return nil }
func (brokenProxy) NacksChanged()            {}

// TestAMistakeEndsNoProcess: it is an error of the stream, and the proxy is sent nothing.
func TestAMistakeEndsNoProcess(t *testing.T) {
	contain := func(step string, do func() error) (err error) {
		defer func() {
			if recover() != nil {
				err = errors.New("internal error in step " + step)
			}
		}()
		return do()
	}
	encoder := compiled.NewEncoder(1, slog.New(slog.DiscardHandler), contain, func(*compiled.View) {})
	st := New(&Shared{Encoder: encoder, Contents: xds.NewContents(), Convergence: &feedback.Convergence{}}, brokenProxy{}, Delta)
	defer st.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := st.Next(ended); r != nil || err == nil {
		t.Errorf("sent %v, %v", r, err)
	}
	st.clusters.inFlight = []*sentResponse{nil}
	if err := st.Receive(Request{TypeURL: xds.ClusterType, Nonce: "1"}); err == nil {
		t.Error("a request that could not be taken was")
	}
}

// TestTypesAreComplete: each type that a stream has can be shown, inspected, and told in
// metrics. Virtual hosts are only told in metrics, because tables have them.
func TestTypesAreComplete(t *testing.T) {
	all := New(&Shared{}, brokenProxy{}, Delta).subscriptions()
	if n := len(all); n+1 != len(xds.Services()) || n != len(explain.Types) {
		t.Errorf("a stream has %d types, there are %d, of which %d are shown", n, len(xds.Services()), len(explain.Types))
	}
	if xds.ServiceOf(xds.VirtualHostType) == "" {
		t.Error("virtual hosts have no name")
	}
	for _, one := range all {
		if !slices.Contains(explain.Types, xds.NameOf(one.typeURL)) || xds.ServiceOf(one.typeURL) == "" {
			t.Errorf("%s is called %q and %q", one.typeURL, xds.NameOf(one.typeURL), xds.ServiceOf(one.typeURL))
		}
	}
}
