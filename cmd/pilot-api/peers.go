package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/pilot-api/pilot-api/security/authn"
	"github.com/pilot-api/pilot-api/server/replica"
	"github.com/pilot-api/pilot-api/store/etcd/register"
)

// replicas are the peers of this replica, and the key by which they prove themselves.
type replicas interface {
	replica.Peers
	// key returns nil if there are no other replicas.
	key() *authn.ReplicaKey
}

// peers adapts the replicas to the server's interface.
type peers struct {
	*register.Register
	shared *authn.ReplicaKey
	via    *replica.Client
}

func (p peers) Self() string           { return p.Register.Self().Name }
func (p peers) key() *authn.ReplicaKey { return p.shared }

// Others returns all replicas except this one.
func (p peers) Others(ctx context.Context) ([]replica.Replica, error) {
	all, err := p.List(ctx)
	if err != nil {
		return nil, err
	}
	var others []replica.Replica
	for _, r := range all {
		if r.Name != p.Self() {
			others = append(others, replica.Replica{Name: r.Name, URL: r.URL, Missing: r.Missing, Via: p.via})
		}
	}
	return others, nil
}

// alone is the name of a server that shares its store with no other.
type alone string

func (a alone) Self() string                                    { return string(a) }
func (alone) Others(context.Context) ([]replica.Replica, error) { return nil, nil }
func (alone) CutOff() (since time.Time, is bool)                { return }
func (alone) key() *authn.ReplicaKey                            { return nil }

// replicas returns this replica's peers, and a function that keeps this replica
// registered until its context ends. With proofs of users, the replicas prove themselves by a
// key that they share in the store.
func (b backend) replicas(o options, self register.Replica, reg prometheus.Registerer, log *slog.Logger) (replicas, func(context.Context) error, error) {
	if b.embedded != nil {
		return alone(self.Name), func(context.Context) error { return nil }, nil
	}
	p := peers{Register: register.New(b.client, o.etcdPrefix, self, log)}
	stay := p.Run
	if o.access.isAsked() {
		p.shared = &authn.ReplicaKey{}
		stay = func(ctx context.Context) error {
			together, ctx := errgroup.WithContext(ctx)
			together.Go(func() error { return p.Run(ctx) })
			together.Go(func() error {
				secret, err := register.SharedKey(ctx, b.client, o.etcdPrefix, register.ReplicaKey)
				if err == nil {
					p.shared.Set(secret)
				}
				return err
			})
			return together.Wait()
		}
	}
	sign := func(r *http.Request) {
		if p.shared != nil {
			r.Header.Set("Authorization", "Bearer "+p.shared.Token(self.Name))
		}
	}
	var err error
	if p.via, err = replica.NewClient(o.access.peerCA, sign); err != nil {
		return nil, nil, fmt.Errorf("--peer-ca: %w", err)
	}
	registerReplicaMetrics(reg, p.Register)
	return p, stay, nil
}

// advertised describes how other replicas reach this one: at --advertise, or at the
// listener's address. The machine's name replaces an unspecified address. It is also a
// part of the replica's name, because several machines may have the same address.
func (o *options) advertised(listener net.Addr) register.Replica {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	address := o.advertise
	if address == "" {
		address = listener.String()
		if at, port, err := net.SplitHostPort(address); err == nil && net.ParseIP(at).IsUnspecified() {
			address = net.JoinHostPort(host, port)
		}
	}
	name := address
	if at, _, err := net.SplitHostPort(address); err != nil || at != host {
		name = host + "/" + address
	}
	scheme := "http://"
	if o.access.tls.CertificateFile != "" {
		scheme = "https://"
	}
	return register.Replica{Name: name, URL: scheme + address, Host: host, Instance: rand.Text()[:8]}
}

// validateAdvertise refuses addresses that other replicas cannot reach.
func (o *options) validateAdvertise() error {
	if o.advertise == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(o.advertise)
	if err != nil || port == "" || port == "0" {
		return fmt.Errorf("%w: --advertise %q: must be HOST:PORT, as in 10.1.0.1:8080", errUsage, o.advertise)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return fmt.Errorf("%w: --advertise %s: must be an address at which other replicas reach this one, and not all that it may have", errUsage, o.advertise)
	}
	return nil
}
