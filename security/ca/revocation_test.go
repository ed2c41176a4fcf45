package ca_test

import (
	"context"
	"crypto/elliptic"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/security/ca"
	"github.com/pilot-api/pilot-api/store/etcd/document"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
)

// TestRevokedCertificates checks that a revoked certificate is on a list of every root, also of
// those that come later, that nothing is listed before, and which numbers are refused.
func TestRevokedCertificates(t *testing.T) {
	log, c := slog.New(slog.DiscardHandler), newCA(t, ca.Options{})
	shared := ca.NewShared(c, document.New(etcdtest.Start(t).Client(), "/test", "ca", log), ca.StoreKey{Sealer: sealer(t)}, log)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = shared.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	known := func(revocations int64) *ca.Trust {
		for {
			trust, changed := c.Trust()
			if trust != nil && trust.Revocations >= revocations {
				return trust
			}
			<-changed
		}
	}
	if trust := known(0); len(trust.Lists) > 0 {
		t.Errorf("%d lists at first", len(trust.Lists))
	}
	for _, text := range []string{"", "0", "xyz", "-1", strings.Repeat("f", 33), "12 34"} {
		if err := shared.Revoke(t.Context(), text, false); !errors.Is(err, ca.ErrSerial) {
			t.Errorf("%q: %v", text, err)
		}
	}
	issued, err := c.Sign(t.Context(), request(t, onCurve(t, elliptic.P256()), nil), reviews, 0)
	if err != nil {
		t.Fatal(err)
	}
	digits := issued.Serial()
	for _, foreign := range []string{"1", known(0).Roots[0].SerialNumber.Text(16), digits[1:], digits[:len(digits)-1], strings.Repeat("f", 32), strings.Map(func(c rune) rune {
		return rune("123456789abcdef0"[strings.IndexRune("0123456789abcdef", c)])
	}, digits)} {
		if err := shared.Revoke(t.Context(), foreign, false); !errors.Is(err, ca.ErrForeign) {
			t.Errorf("%s, which is not %s: %v", foreign, digits, err)
		}
	}
	for range 2 { // The second time changes nothing.
		if err := shared.Revoke(t.Context(), strings.ToUpper(issued.Serial()), false); err != nil {
			t.Fatal(err)
		}
	}
	if err := shared.Rotate(t.Context(), ca.Add); err != nil {
		t.Fatal(err)
	}
	trust := known(1)
	for len(trust.Roots) < 2 {
		_, changed := c.Trust()
		if trust = known(1); len(trust.Roots) < 2 {
			<-changed
		}
	}
	if len(trust.Lists) != 2 || trust.Revocations != 1 {
		t.Fatalf("%d lists after %d revocations, want one for each of two roots after one", len(trust.Lists), trust.Revocations)
	}
	for i, list := range trust.Lists {
		if err := list.CheckSignatureFrom(trust.Roots[i]); err != nil {
			t.Error(err)
		}
		if all := list.RevokedCertificateEntries; len(all) != 1 || all[0].SerialNumber.Cmp(issued.Leaf().SerialNumber) != 0 || !list.NextUpdate.Equal(trust.Roots[i].NotAfter) {
			t.Errorf("list %d has %v until %v", i, all, list.NextUpdate)
		}
	}
}

// TestRevocationsAreBounded checks that the lists that all proxies are sent do not grow without
// end.
func TestRevocationsAreBounded(t *testing.T) {
	outside.Slow(t)
	r := newRenewal(t, 1)
	r.renew(t) // Otherwise no revoked certificate could count.
	log := slog.New(slog.DiscardHandler)
	shared := ca.NewShared(r.CA, r.document, ca.StoreKey{Sealer: r.sealer}, log)
	var refused error
	for i := range 1100 {
		if refused = shared.Revoke(t.Context(), fmt.Sprintf("%x", 1+i), true); refused != nil {
			break
		}
	}
	if !errors.Is(refused, ca.ErrTooManyRevoked) {
		t.Errorf("more and more revocations: %v", refused)
	}
}
