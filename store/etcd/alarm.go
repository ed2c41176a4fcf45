package etcd

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	alarmInterval = 2 * time.Second
	alarmTimeout  = 2 * time.Second
)

// Alarms follows the alarms of an external etcd. With any alarm raised, etcd refuses
// writes until its operator disarms the alarm. It still answers reads.
type Alarms struct {
	client *clientv3.Client
	raised atomic.Pointer[map[string]bool]
}

// NewAlarms returns Alarms that work once Run is called. The caller closes the client.
func NewAlarms(client *clientv3.Client) *Alarms {
	a := &Alarms{client: client}
	a.raised.Store(&map[string]bool{})
	return a
}

// noSpace and corrupt are the names of etcd's alarms.
var (
	noSpace = etcdserverpb.AlarmType_NOSPACE.String()
	corrupt = etcdserverpb.AlarmType_CORRUPT.String()
)

// NoSpace reports whether the space quota is used up, by etcd's last answer. The result
// stays while etcd does not answer.
func (a *Alarms) NoSpace() bool { return (*a.raised.Load())[noSpace] }

// Corrupt reports whether members found that their data differ, by etcd's last answer.
func (a *Alarms) Corrupt() bool { return (*a.raised.Load())[corrupt] }

// Run asks etcd until ctx ends, and returns ctx's error.
func (a *Alarms) Run(ctx context.Context) error {
	tick := time.NewTicker(alarmInterval)
	defer tick.Stop()
	for {
		if raised, err := a.ask(ctx); err == nil {
			a.raised.Store(&raised)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ask returns the alarms of all members, as reported by the first member that answers.
// A status request costs etcd nothing. A request for the list of alarms would add an
// entry to its log.
func (a *Alarms) ask(ctx context.Context) (map[string]bool, error) {
	err := errors.New("no endpoint")
	for _, endpoint := range a.client.Endpoints() {
		one, cancel := context.WithTimeout(ctx, alarmTimeout)
		var status *clientv3.StatusResponse
		status, err = a.client.Status(one, endpoint)
		cancel()
		if err == nil {
			said := strings.Join(status.Errors, " ")
			return map[string]bool{noSpace: strings.Contains(said, noSpace), corrupt: strings.Contains(said, corrupt)}, nil
		}
	}
	return nil, err
}
