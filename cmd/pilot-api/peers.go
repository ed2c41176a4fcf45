package main

import (
	"context"
	"net"
	"os"

	"github.com/pilot-api/pilot-api/store/etcd"
)

// peers are the replicas as the server wants to know them.
type peers struct{ *etcd.Replicas }

func (p peers) Self() string { return p.Replicas.Self().Name }

// Others leaves out this replica, and who has no address of its own.
func (p peers) Others(ctx context.Context) (map[string]string, error) {
	all, err := p.List(ctx)
	if err != nil {
		return nil, err
	}
	others := map[string]string{}
	for _, r := range all {
		if r.Name != p.Self() {
			others[r.Name] = r.URL
		}
	}
	return others, nil
}

// advertised is where other replicas reach this one: what --advertise says, or
// where it listens, by the name of the machine if that is everywhere.
func (o *options) advertised(listener net.Addr) etcd.Replica {
	address := o.advertise
	if address == "" {
		address = listener.String()
		host, port, err := net.SplitHostPort(address)
		if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
			if name, err := os.Hostname(); err == nil {
				address = net.JoinHostPort(name, port)
			}
		}
	}
	return etcd.Replica{Name: address, URL: "http://" + address}
}
