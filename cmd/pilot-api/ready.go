package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/server/replica"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
)

const (
	// mostLag is how long the cache may lack a change of the store.
	mostLag = 5 * time.Second
	// quotaWarning is the used part of the quota, in percent, above which
	// /readyz reports it.
	quotaWarning = 80
	// diskWarning is the number of bytes that should be free on the disk.
	diskWarning = 512 << 20
)

// readiness returns the checks of /readyz in the order in which the parts start. The
// checks read states that are tracked anyway, so probes cost nothing.
func readiness(b backend, lag *cache.Probe, known *accessKnown, proxies *discovery.Publisher, others replica.Peers) []server.Check {
	check := func(name string, f func() error) server.Check {
		return server.Check{Name: name, Run: func(context.Context) error { return f() }}
	}
	checks := []server.Check{check("store", func() error { return storeAnswers(lag.Lag()) })}
	if b.embedded == nil {
		checks = append(checks,
			check("quota", func() error { return hasSpace(b.alarms) }),
			check("corruption", func() error { return isSound(b.alarms) }),
			check("replicas", func() error { return isRegistered(others) }))
	} else {
		checks = append(checks,
			check("quota", func() error { return quotaHolds(b.embedded.Usage()) }),
			check("disk", func() error { return diskHasRoom(b.embedded.Usage()) }))
	}
	return append(checks,
		check("cache-lag", func() error { return cacheFollows(lag.Lag()) }),
		check("access", func() error {
			if !known.is() {
				return errors.New("the roles and accounts have not been read yet")
			}
			return nil
		}),
		check("discovery", func() error {
			if !proxies.Ready() {
				return errors.New("the first snapshot has not been compiled yet")
			}
			return nil
		}))
}

func storeAnswers(l cache.Lag) error {
	switch {
	case !l.Known:
		return errors.New("the store has not answered yet")
	case l.Err != nil:
		return errors.New("the store does not answer")
	}
	return nil
}

func cacheFollows(l cache.Lag) error {
	switch {
	case !l.Synced:
		return errors.New("the cache has not read the store yet")
	case l.Behind > mostLag:
		return fmt.Errorf("the cache is %d revisions behind the store, for %s now", l.Revisions, l.Behind.Round(time.Second))
	}
	return nil
}

func hasSpace(alarms *etcd.Alarms) error {
	if alarms.NoSpace() {
		return errors.New("etcd refuses writes, because its space quota is used up: compact, defragment, then disarm its alarm")
	}
	return nil
}

func isSound(alarms *etcd.Alarms) error {
	if alarms.Corrupt() {
		return errors.New("etcd refuses writes, because the data of its members differ: replace those that are wrong, then disarm its alarm")
	}
	return nil
}

// isRegistered reports a replica that is missing from the register. The store itself
// may still answer.
func isRegistered(p replica.Peers) error {
	if since, is := p.CutOff(); is {
		return server.Degraded("not in the register of replicas since " + since.Format(time.TimeOnly) + ": the others do not count its proxies")
	}
	return nil
}

// quotaHolds fails when an object may be refused for lack of space. History does not
// count, because it gives way. Writes in flight do not count either, because they may
// be counted already: new writes wait until that is known.
func quotaHolds(u embedded.Usage) error {
	used := u.InUse - u.History - u.OnItsWay
	switch {
	case used+schema.MaxObjectBytes > u.Quota:
		return fmt.Errorf("the store is full and takes deletes only: %d of %d bytes are used (--quota-bytes)", used, u.Quota)
	case used > u.Quota/100*quotaWarning:
		return server.Degraded(fmt.Sprintf("%d of %d bytes are used (--quota-bytes)", used, u.Quota))
	}
	return nil
}

func diskHasRoom(u embedded.Usage) error {
	if u.DiskFree < diskWarning {
		return server.Degraded(fmt.Sprintf("%d bytes are free on the disk of --data-dir; when it is full, the server ends", u.DiskFree))
	}
	return nil
}
