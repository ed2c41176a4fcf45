package register

import (
	"context"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// Leadership is the right of one server to do something for all that share the store, as
// long as its lease lasts. The servers that want it are in line:
//
//	<prefix>/leaders/<task>/<lease>
type Leadership struct {
	client   *clientv3.Client
	session  *concurrency.Session
	election *concurrency.Election
	end      context.CancelFunc // of the session
}

// Lead waits until this server leads a task, which all servers name alike. If the leader is
// lost, that takes up to replicaLease.
func Lead(ctx context.Context, client *clientv3.Client, prefix, task, name string) (*Leadership, error) {
	// The session outlives ctx, so that Resign can end its lease at once.
	lasting, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end)
	session, err := concurrency.NewSession(client, concurrency.WithTTL(int(replicaLease/time.Second)), concurrency.WithContext(lasting))
	if err != nil {
		end()
		return nil, fmt.Errorf("lead %s: %w", task, err)
	}
	l := &Leadership{client, session, concurrency.NewElection(session, strings.TrimRight(prefix, "/")+"/leaders/"+task), end}
	err = l.election.Campaign(ctx, name)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		l.Resign()
		return nil, fmt.Errorf("lead %s: %w", task, err)
	}
	return l, nil
}

// Holds returns a condition of etcd that is true as long as this server leads.
func (l *Leadership) Holds() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(l.election.Key()), "=", l.election.Rev())
}

// Lost is closed when the lease has ended or can no longer be prolonged.
func (l *Leadership) Lost() <-chan struct{} { return l.session.Done() }

// Resign lets the next server lead.
func (l *Leadership) Resign() {
	defer l.end()
	l.session.Orphan()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = l.client.Revoke(ctx, l.session.Lease()) // If it fails, the lease ends by itself.
}
