package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/server/replica"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
)

// others are the other replicas of a store.
type others []replica.Replica

func (others) Self() string                                        { return "here" }
func (o others) Others(context.Context) ([]replica.Replica, error) { return o, nil }
func (others) CutOff() (time.Time, bool)                           { return time.Time{}, false }

// unknownAtFirst are others that are not known for some time.
type unknownAtFirst struct {
	others
	failures int
}

func (u *unknownAtFirst) Others(context.Context) ([]replica.Replica, error) {
	if u.failures--; u.failures >= 0 {
		return nil, errors.New("the register cannot be read")
	}
	return nil, nil
}

// TestStatusRevisionsSayWhyTheyWait checks that a setting that cannot be made yet is in the log,
// once for one reason, and is made later.
func TestStatusRevisionsSayWhyTheyWait(t *testing.T) {
	var log strings.Builder
	objects := etcd.New(etcdtest.Start(t).Client(), etcd.DefaultPrefix, slog.New(slog.DiscardHandler))
	err := settleStatuses(t.Context(), options{statusRevisions: statusesOn}, objects, &unknownAtFirst{failures: 2}, slog.New(slog.NewTextHandler(&log, nil)))
	if kept, unread := objects.KeepsStatuses(t.Context()); err != nil || unread != nil || !kept {
		t.Errorf("kept is %t, %v, %v", kept, err, unread)
	}
	if strings.Count(log.String(), "level=WARN") != 1 || !strings.Contains(log.String(), "the register cannot be read") {
		t.Errorf("the log is %q", log.String())
	}
}

// TestStatusRevisionsAreOneSetting checks that --status-revisions is a setting of the store: it
// outlives the server, a server without the flag does as the store says, and none changes it
// while another runs.
func TestStatusRevisionsAreOneSetting(t *testing.T) {
	objects := etcd.New(etcdtest.Start(t).Client(), etcd.DefaultPrefix, slog.New(slog.DiscardHandler))
	running, missing := replica.Replica{Name: "far"}, replica.Replica{Name: "far", Missing: time.Now()}
	for _, tc := range []struct {
		flag   string
		others others
		kept   bool // afterwards
		fails  bool
	}{
		{"", nil, false, false},
		{statusesOff, others{running}, false, false},
		{statusesOn, others{running}, false, true},
		{statusesOn, others{missing}, true, false},
		{"", others{running}, true, false},
		{statusesOn, others{running}, true, false},
		{statusesOff, others{missing, running}, true, true},
		{"", nil, true, false},
		{statusesOff, nil, false, false},
	} {
		err := settleStatuses(t.Context(), options{statusRevisions: tc.flag}, objects, tc.others, slog.New(slog.DiscardHandler))
		if (err != nil) != tc.fails || err != nil && !strings.Contains(err.Error(), "the replica far runs on the same store") {
			t.Errorf("%q beside %v: %v", tc.flag, tc.others, err)
		}
		if kept, err := objects.KeepsStatuses(t.Context()); kept != tc.kept || err != nil {
			t.Errorf("after %q beside %v it is %t, %v", tc.flag, tc.others, kept, err)
		}
	}
	for flag, fails := range map[string]bool{"": false, statusesOn: false, statusesOff: false, "yes": true} {
		if err := (&options{statusRevisions: flag}).validateStatuses(); errors.Is(err, errUsage) != fails {
			t.Errorf("--status-revisions %q: %v", flag, err)
		}
	}
}
