package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// TestRapidReset opens very many streams on one connection and ends each at once. The server keeps
// none of them, and serves others.
func TestRapidReset(t *testing.T) {
	outside.Slow(t)
	streams := freeAddress(t)
	p := startProgram(t, t.TempDir(), "--grpc-listen", streams)
	before := p.metric(t, "", "go_goroutines")
	conn, err := net.Dial("tcp", streams)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _, _ = io.Copy(io.Discard, conn) }()
	framer := http2.NewFramer(conn, nil)
	if err := framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	var head bytes.Buffer
	fields := hpack.NewEncoder(&head)
	for _, f := range []hpack.HeaderField{
		{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"}, {Name: ":authority", Value: streams},
		{Name: ":path", Value: "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"},
		{Name: "te", Value: "trailers"}, {Name: "content-type", Value: "application/grpc"},
	} {
		_ = fields.WriteField(f) // A Buffer never fails.
	}
	sent := 0
	for id := uint32(1); id < 200_000; id += 2 {
		err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: head.Bytes(), EndHeaders: true})
		if err == nil {
			err = framer.WriteRSTStream(id, http2.ErrCodeCancel)
		}
		if err != nil {
			break // The server may end the connection.
		}
		sent++
		if sent%10_000 == 0 {
			if answer, _ := p.ask(t, http.MethodGet, "/healthz", ""); answer.StatusCode != http.StatusOK {
				t.Fatalf("after %d streams: health is %d", sent, answer.StatusCode)
			}
		}
	}
	if sent == 0 {
		t.Fatal("no stream was sent")
	}
	conn.Close()
	<-ended
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		now := p.metric(t, "", "go_goroutines")
		if now < before+100 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v goroutines after %d streams that were ended, %v before", now, sent, before)
		}
	}
	if code, _ := p.send(t, "", http.MethodPost, rulesPath, largeRule("after", 10)); code != http.StatusCreated {
		t.Errorf("a write after %d streams that were ended: %d", sent, code)
	}
}
