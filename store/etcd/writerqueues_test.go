package etcd_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// TestUpdateFuncTakesTurns checks that a writer that waits for another's change waits
// only until its deadline, and has then written nothing.
func TestUpdateFuncTakesTurns(t *testing.T) {
	s := etcd.New(etcdtest.Start(t).Client(), etcd.DefaultPrefix, quiet)
	made, err := s.Create(t.Context(), storetest.Rule(t, "default", "a", 1))
	if err != nil {
		t.Fatal(err)
	}
	begun, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		_, err := s.UpdateFunc(t.Context(), made.Key(), func(*schema.Object) (*schema.Object, error) {
			close(begun)
			<-goOn
			return storetest.Rule(t, "default", "a", 2), nil
		})
		ended <- err
	}()
	<-begun
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.UpdateFunc(over, made.Key(), func(*schema.Object) (*schema.Object, error) {
		t.Error("called out of turn")
		return nil, errors.New("no")
	})
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("without a turn: %v", err)
	}
	close(goOn)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := s.UpdateFunc(t.Context(), made.Key(), func(o *schema.Object) (*schema.Object, error) { return o, nil }); err != nil {
		t.Errorf("when the other is done: %v", err)
	}
}
