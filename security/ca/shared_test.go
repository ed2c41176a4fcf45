package ca_test

import (
	"context"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/security/ca"
	"github.com/pilot-api/pilot-api/store/etcd/document"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
)

func sealer(t testing.TB) *ca.Sealer {
	t.Helper()
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	s, err := ca.NewSealer(base64.StdEncoding.EncodeToString(key) + "\n")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestServersShareOneAuthority: of servers that start at once one makes the authority, all of
// them sign by it, and one that starts later does too. A server with another key knows the
// roots, signs nothing, and says why. The private key is not in the store.
func TestServersShareOneAuthority(t *testing.T) {
	client := etcdtest.Start(t).Client()
	log := slog.New(slog.DiscardHandler)
	run := func(s *ca.Sealer) *ca.CA {
		c := newCA(t, ca.Options{})
		shared := ca.NewShared(c, document.New(client, "/test", "ca", log), ca.StoreKey{Sealer: s}, log)
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = shared.Run(ctx) }()
		t.Cleanup(func() { stop(); <-ended })
		return c
	}
	known := func(c *ca.CA) *ca.Trust {
		for {
			trust, changed := c.Trust()
			if trust != nil {
				return trust
			}
			<-changed
		}
	}
	ours := sealer(t)
	first, second := run(ours), run(ours)
	third := run(ours)
	text := request(t, onCurve(t, elliptic.P256()), nil)
	roots := known(first).RootsPEM()
	for _, c := range []*ca.CA{first, second, third} {
		if known(c).RootsPEM() != roots {
			t.Error("servers have different roots")
		}
		issued, err := c.Sign(t.Context(), text, reviews, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := issued.Leaf().CheckSignatureFrom(known(first).Roots[0]); err != nil {
			t.Error(err)
		}
	}
	stranger := run(sealer(t))
	if known(stranger).RootsPEM() != roots {
		t.Error("a server with another key has other roots")
	}
	if _, err := stranger.Sign(t.Context(), text, reviews, 0); !errors.Is(err, ca.ErrNoIssuer) || !strings.Contains(err.Error(), "--ca-store-key") {
		t.Error(err)
	}
	stored, err := client.Get(t.Context(), "/test/ca")
	if err != nil || len(stored.Kvs) != 1 || strings.Contains(string(stored.Kvs[0].Value), "PRIVATE") {
		t.Errorf("stored: %v, %v", stored, err)
	}
}

// TestALostStoreKey: a server without the key makes one only if there is no authority yet. An
// authority that is there stays, signs nothing, and says what to do. With a new key its root is
// replaced, also after a revocation.
func TestALostStoreKey(t *testing.T) {
	client := etcdtest.Start(t).Client()
	log := slog.New(slog.DiscardHandler)
	run := func(key ca.StoreKey) (*ca.CA, *ca.Shared) {
		c := newCA(t, ca.Options{})
		shared := ca.NewShared(c, document.New(client, "/test", "ca", log), key, log)
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = shared.Run(ctx) }()
		t.Cleanup(func() { stop(); <-ended })
		for trust, changed := c.Trust(); trust == nil; trust, changed = c.Trust() {
			<-changed
		}
		return c, shared
	}
	made := 0
	missing := func(s *ca.Sealer) ca.StoreKey {
		return ca.StoreKey{Name: "/data/ca-store.key", Make: func() (*ca.Sealer, error) { made++; return s, nil }}
	}
	first, shared := run(missing(sealer(t)))
	text := request(t, onCurve(t, elliptic.P256()), nil)
	issued, err := first.Sign(t.Context(), text, reviews, 0)
	if err == nil {
		err = shared.Revoke(t.Context(), issued.Serial(), false)
	}
	if err != nil || made != 1 {
		t.Fatalf("%v, %d keys", err, made)
	}
	lost, lostShared := run(missing(sealer(t)))
	if made != 1 {
		t.Error("a key is made beside an authority that it cannot open")
	}
	const says = "/data/ca-store.key is missing: put its copy back and restart"
	_, err = lost.Sign(t.Context(), text, reviews, 0)
	for what, err := range map[string]error{"a certificate": err, "a revocation": lostShared.Revoke(t.Context(), issued.Serial(), false), "a new root": lostShared.Rotate(t.Context(), ca.Add)} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s without the key: %v", what, err)
		}
	}
	if s := lost.Status(); !strings.Contains(s.Lack, says) || len(s.Authorities) != 1 || s.Next != ca.Add {
		t.Errorf("the status without the key: %+v", s)
	}
	fresh, freshShared := run(ca.StoreKey{Sealer: sealer(t)})
	for _, step := range []ca.Step{ca.Add, ca.Sign} {
		if err := freshShared.Rotate(t.Context(), step); err != nil {
			t.Fatalf("%s with a new key: %v", step, err)
		}
	}
	if _, err := fresh.Sign(t.Context(), text, reviews, 0); err != nil {
		t.Error(err)
	}
	if trust, _ := fresh.Trust(); len(trust.Lists) != 2 {
		t.Errorf("%d lists of revoked certificates for two roots", len(trust.Lists))
	}
}

// TestADamagedDocument: nothing is signed, until it is whole again.
func TestADamagedDocument(t *testing.T) {
	client := etcdtest.Start(t).Client()
	log := slog.New(slog.DiscardHandler)
	if _, err := client.Put(t.Context(), "/test/ca", "{"); err != nil {
		t.Fatal(err)
	}
	c := newCA(t, ca.Options{})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = ca.NewShared(c, document.New(client, "/test", "ca", log), ca.StoreKey{Sealer: sealer(t)}, log).Run(ctx)
	}()
	defer func() { stop(); <-ended }()
	trust, changed := c.Trust()
	if trust == nil {
		<-changed
	}
	text := request(t, onCurve(t, elliptic.P256()), nil)
	if _, err := c.Sign(t.Context(), text, reviews, 0); !errors.Is(err, ca.ErrNoIssuer) {
		t.Error(err)
	}
	_, changed = c.Trust()
	if _, err := client.Delete(t.Context(), "/test/ca"); err != nil {
		t.Fatal(err)
	}
	<-changed
	if _, err := c.Sign(t.Context(), text, reviews, 0); err != nil {
		t.Error(err)
	}
	before := c.Status()
	_, changed = c.Trust()
	if _, err := client.Put(t.Context(), "/test/ca", "{"); err != nil {
		t.Fatal(err)
	}
	<-changed
	if after := c.Status(); after.Next != before.Next || after.Next != ca.Add || len(after.Authorities) != 1 || !strings.Contains(after.Lack, "cannot be read") {
		t.Errorf("damaged while it is in use: %+v, before: %+v", after, before)
	}
}
