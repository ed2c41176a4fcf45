package yardstick_test

import (
	"io"
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// BenchmarkBareWrite is what the system takes to send an event of a watch to one of a
// thousand connections, without a server: the least that an event can cost where each
// watcher has a connection of its own.
func BenchmarkBareWrite(b *testing.B) {
	const connections, eventBytes = 1000, 1300
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(b)
	defer listener.Close()
	conns := make([]net.Conn, connections)
	for i := range conns {
		go func() {
			reader, err := net.Dial("tcp", listener.Addr().String())
			if err == nil {
				_, _ = io.Copy(io.Discard, reader)
			}
		}()
		conns[i] = must(listener.Accept())(b)
		defer conns[i].Close()
	}
	event := make([]byte, eventBytes)
	runtime.LockOSThread() // Only what this thread does counts, not the readers.
	defer runtime.UnlockOSThread()
	before := threadTime(b)
	for i := range b.N {
		if _, err := conns[i%connections].Write(event); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64((threadTime(b)-before).Nanoseconds())/1000/float64(b.N), "us/event")
}

// threadTime is what this thread has taken of a processor.
func threadTime(b *testing.B) time.Duration {
	const thisThread = 1 // RUSAGE_THREAD
	var usage syscall.Rusage
	if err := syscall.Getrusage(thisThread, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
