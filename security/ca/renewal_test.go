package ca_test

import (
	"context"
	"crypto/elliptic"
	"fmt"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/security/ca"
	"github.com/pilot-api/pilot-api/store/etcd/document"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
)

// counted is a document whose writes are counted.
type counted struct {
	*document.Document
	updates int
}

// Update counts the calls, each of which may write.
func (c *counted) Update(ctx context.Context, change func(string) (string, error)) (string, error) {
	c.updates++
	return c.Document.Update(ctx, change)
}

// renewal is a mesh whose workloads renew their certificates by an authority in etcd.
type renewal struct {
	*ca.CA
	document *counted
	sealer   *ca.Sealer
	requests []string
}

const renewingWorkloads = 10_000

func newRenewal(t testing.TB, workloads int) *renewal {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	r := &renewal{CA: newCA(t, ca.Options{}), document: &counted{Document: document.New(etcdtest.Start(t).Client(), "/test", "ca", log)}, sealer: sealer(t)}
	shared := ca.NewShared(r.CA, r.document, ca.StoreKey{Sealer: r.sealer}, log)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = shared.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	for {
		trust, changed := r.Trust()
		if trust != nil {
			break
		}
		<-changed
	}
	for range workloads {
		r.requests = append(r.requests, request(t, onCurve(t, elliptic.P256()), nil))
	}
	return r
}

// renew signs a certificate for each workload, and returns the bytes of requests and answers.
func (r *renewal) renew(t testing.TB) (bytes int) {
	t.Helper()
	for i, text := range r.requests {
		issued, err := r.Sign(t.Context(), text, ca.Account{Namespace: "shop", Name: fmt.Sprint("a", i)}, 24*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		bytes += len(text)
		for _, one := range issued.PEM() {
			bytes += len(one)
		}
	}
	return bytes
}

// TestRenewalsWriteSeldom checks that the renewal of many workloads costs etcd a few writes, and
// not one for each certificate.
func TestRenewalsWriteSeldom(t *testing.T) {
	r := newRenewal(t, 500)
	before := r.document.updates
	r.renew(t)
	first := r.document.updates - before
	r.awaitCover(t)
	before = r.document.updates
	if r.renew(t); first == 0 || r.document.updates != before {
		t.Errorf("the first renewal asked etcd %d times, the second one %d times; want some, and none", first, r.document.updates-before)
	}
}

// awaitCover waits until the CA knows the end that the first certificate recorded.
func (r *renewal) awaitCover(t *testing.T) {
	t.Helper()
	for {
		_, changed := r.Trust()
		if time.Until(r.Status().Authorities[0].LastEnd) > 24*time.Hour {
			return
		}
		<-changed
	}
}

// BenchmarkRenewal measures what the renewal of the certificates of 10,000 workloads costs the
// server, without the connections on which they ask.
func BenchmarkRenewal(b *testing.B) {
	r := newRenewal(b, renewingWorkloads)
	bytes, before := 0, processorTime(b)
	for b.Loop() {
		bytes = r.renew(b)
	}
	used := processorTime(b) - before
	b.ReportMetric(float64(bytes)/renewingWorkloads, "bytes/workload")
	b.ReportMetric(used.Seconds()/float64(b.N), "cpu-s/op")
	b.ReportMetric(float64(renewingWorkloads)*float64(b.N)/used.Seconds(), "certificates/cpu-s")
}

// processorTime returns how long processors have worked for this process. Other programs do not
// change it, as they do the time that passes.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
