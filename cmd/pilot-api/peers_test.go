package main

import (
	"net"
	"net/netip"
	"os"
	"testing"
)

// TestAdvertised: where a replica is reached follows from where it listens, unless that
// is said; its name is no other machine's.
func TestAdvertised(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ listens, advertise, name, url string }{
		{"127.0.0.1:8080", "", host + "/127.0.0.1:8080", "http://127.0.0.1:8080"},
		{"0.0.0.0:8080", "", host + ":8080", "http://" + host + ":8080"},
		{"[::]:8080", "", host + ":8080", "http://" + host + ":8080"},
		{"127.0.0.1:8080", "10.1.0.1:80", host + "/10.1.0.1:80", "http://10.1.0.1:80"},
		{"127.0.0.1:8080", host + ":80", host + ":80", "http://" + host + ":80"},
	} {
		o := options{advertise: c.advertise}
		got := o.advertised(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.listens)))
		if got.Name != c.name || got.URL != c.url || got.Host != host {
			t.Errorf("%s, --advertise %q: %+v", c.listens, c.advertise, got)
		}
		if again := o.advertised(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.listens))); again.Instance == got.Instance {
			t.Errorf("a second start is %+v as well", again)
		}
	}
}
