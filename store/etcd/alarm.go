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

// Alarms follows what an external etcd has raised. Either way it takes no write
// until its operator has disarmed the alarm; it still reads.
type Alarms struct {
	client *clientv3.Client
	raised atomic.Pointer[map[string]bool]
}

// NewAlarms makes them; Run lets them work. The client stays the caller's.
func NewAlarms(client *clientv3.Client) *Alarms {
	a := &Alarms{client: client}
	a.raised.Store(&map[string]bool{})
	return a
}

// The alarms that there are.
var (
	noSpace = etcdserverpb.AlarmType_NOSPACE.String()
	corrupt = etcdserverpb.AlarmType_CORRUPT.String()
)

// NoSpace reports whether the space quota is used up, by what etcd said last. When
// it cannot be asked, that stays.
func (a *Alarms) NoSpace() bool { return (*a.raised.Load())[noSpace] }

// Corrupt reports whether members found that their data differ, likewise.
func (a *Alarms) Corrupt() bool { return (*a.raised.Load())[corrupt] }

// Run asks until ctx ends, and returns its error.
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

// ask has the first member that answers tell the alarms of all. A status costs
// etcd nothing, other than a list of alarms, which is an entry in its log.
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
