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

// SpaceAlarm follows whether an external etcd refuses every put because its space
// quota is used up.
type SpaceAlarm struct {
	client *clientv3.Client
	raised atomic.Bool
}

// NewSpaceAlarm makes one; Run lets it work. The client stays the caller's.
func NewSpaceAlarm(client *clientv3.Client) *SpaceAlarm { return &SpaceAlarm{client: client} }

// Raised reports what etcd said last. When it cannot be asked, that stays.
func (a *SpaceAlarm) Raised() bool { return a.raised.Load() }

// Run asks until ctx ends, and returns its error.
func (a *SpaceAlarm) Run(ctx context.Context) error {
	tick := time.NewTicker(alarmInterval)
	defer tick.Stop()
	for {
		if raised, err := a.ask(ctx); err == nil {
			a.raised.Store(raised)
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
func (a *SpaceAlarm) ask(ctx context.Context) (bool, error) {
	err := errors.New("no endpoint")
	for _, endpoint := range a.client.Endpoints() {
		one, cancel := context.WithTimeout(ctx, alarmTimeout)
		var status *clientv3.StatusResponse
		status, err = a.client.Status(one, endpoint)
		cancel()
		if err == nil {
			return strings.Contains(strings.Join(status.Errors, " "), etcdserverpb.AlarmType_NOSPACE.String()), nil
		}
	}
	return false, err
}
