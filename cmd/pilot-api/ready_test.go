package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/testbed"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
)

// readyz is the code of /readyz?verbose and what it says of one check.
func readyz(t *testing.T, addr, check string) (code int, line string) {
	t.Helper()
	resp, err := http.Get("http://" + addr + "/readyz?verbose")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "]"+check+" ") {
			return resp.StatusCode, strings.TrimSpace(line)
		}
	}
	t.Fatalf("nothing is said of %s:\n%s", check, text)
	return 0, ""
}

// becomes waits until /readyz has a code, and returns the line of a check.
func becomes(t *testing.T, addr string, code int, check string) string {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		got, line := readyz(t, addr, check)
		if got == code {
			return line
		}
		time.Sleep(20 * time.Millisecond)
	}
	_, line := readyz(t, addr, check)
	t.Fatalf("/readyz did not become %d: %s", code, line)
	return ""
}

// linkTo lies between a program and its etcd.
func linkTo(t *testing.T, member *etcdtest.Server) *testbed.Link {
	t.Helper()
	link, err := testbed.NewLink(member.Endpoint(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(link.Close)
	return link
}

// TestReadyWithoutEtcd: the program is not ready while its etcd is away, but
// alive, and ready again by itself.
func TestReadyWithoutEtcd(t *testing.T) {
	outside.Slow(t)
	member := etcdtest.Start(t)
	front := linkTo(t, member)
	addr := freeAddress(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		done <- Main(ctx, []string{"--listen", addr, "--grpc-listen", "127.0.0.1:0", "--etcd-endpoints", "http://" + front.Addr(), "--log-level", "error"}, io.Discard, io.Discard)
	}()
	waitReady(t, addr)
	front.Set(testbed.Silent)
	if line := becomes(t, addr, http.StatusServiceUnavailable, "store"); line != "[-]store failed: the store does not answer" {
		t.Errorf("%q", line)
	}
	resp, err := http.Get("http://" + addr + "/livez")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("/livez without etcd: %v, %v", resp, err)
	}
	front.Set(testbed.Open)
	if line := becomes(t, addr, http.StatusOK, "store"); line != "[+]store ok" {
		t.Errorf("%q", line)
	}
	stop()
	if code := <-done; code != exitDone {
		t.Errorf("exit code %d", code)
	}
}

// TestReadyWhenFull: a full store is not ready and says why; deletes alone make
// it so again.
func TestReadyWhenFull(t *testing.T) {
	outside.Slow(t)
	p := startProgram(t, t.TempDir(), "--quota-bytes", "16777216")
	var kept []string
	code, line := 0, ""
	for i := 0; code != http.StatusServiceUnavailable && t.Context().Err() == nil; i++ {
		// It may be refused earlier, by a machine that is too busy to count.
		if name := fmt.Sprintf("rule-%d", i); p.post(name, 500_000) {
			kept = append(kept, name)
		}
		code, line = readyz(t, p.addr, "quota")
	}
	if !strings.Contains(line, "takes deletes only") || len(kept) < 20 {
		t.Errorf("%q with %d objects", line, len(kept))
	}
	for _, name := range kept {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, p.URL+rulesPath+"/"+name, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("delete in a full store: %v, %v", resp, err)
		}
		resp.Body.Close()
	}
	if line := becomes(t, p.addr, http.StatusOK, "quota"); line != "[+]quota ok" {
		t.Errorf("%q", line)
	}
	if !p.post("again", 500_000) {
		t.Error("nothing can be created after everything was deleted")
	}
}

// TestAlarms: an external etcd that refuses writes is noticed before anybody
// writes; who does is told why, and all else goes on.
func TestAlarms(t *testing.T) {
	outside.Slow(t)
	member := etcdtest.Start(t)
	client := member.Client()
	front := linkTo(t, member)
	p := startProgram(t, t.TempDir(), "--etcd-endpoints", "http://"+front.Addr())
	if !p.post("before", 10) {
		t.Fatal("not created")
	}
	maintenance := etcdserverpb.NewMaintenanceClient(client.ActiveConnection())
	for _, c := range []struct {
		alarm       etcdserverpb.AlarmType
		check, says string
		code        int
	}{
		{etcdserverpb.AlarmType_NOSPACE, "quota", "space quota is used up", http.StatusInsufficientStorage},
		{etcdserverpb.AlarmType_CORRUPT, "corruption", "members differ", http.StatusServiceUnavailable},
	} {
		t.Run(c.check, func(t *testing.T) {
			raise := etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_ACTIVATE, Alarm: c.alarm}
			if _, err := maintenance.Alarm(t.Context(), &raise); err != nil {
				t.Fatal(err)
			}
			if line := becomes(t, p.addr, http.StatusServiceUnavailable, c.check); !strings.Contains(line, c.says) {
				t.Errorf("%q", line)
			}
			metric := fmt.Sprintf("pilot_store_alarm{alarm=%q} ", c.alarm)
			if _, text := p.answer(t, "/metrics"); !strings.Contains(text, metric+"1\n") {
				t.Errorf("no %s1", metric)
			}
			resp, err := http.Post(p.URL+rulesPath, "application/json", strings.NewReader(largeRule("refused", 10)))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != c.code || !strings.Contains(string(text), c.says) {
				t.Errorf("a create is answered %s: %s, %v", resp.Status, text, err)
			}
			for _, path := range []string{rulesPath + "/before", rulesPath, "/v1/registration"} {
				if code, text := p.answer(t, path); code != http.StatusOK {
					t.Errorf("%s: %d %s", path, code, text)
				}
			}
			if _, err := client.AlarmDisarm(t.Context(), &clientv3.AlarmMember{}); err != nil {
				t.Fatal(err)
			}
			becomes(t, p.addr, http.StatusOK, c.check)
			if _, text := p.answer(t, "/metrics"); !strings.Contains(text, metric+"0\n") {
				t.Errorf("no %s0", metric)
			}
			if !p.post("after-"+c.check, 10) {
				t.Error("nothing can be created after the alarm")
			}
		})
	}
}

// cutOff is a replica that is, or is not.
type cutOff struct {
	alone
	since time.Time
}

func (c cutOff) CutOff() (time.Time, bool) { return c.since, !c.since.IsZero() }

func TestChecks(t *testing.T) {
	const mib = 1 << 20
	behind := func(d time.Duration) error {
		return cacheFollows(cache.Lag{Known: true, Synced: true, Revisions: 7, Behind: d})
	}
	usage := func(used, history, onItsWay int64) error {
		return quotaHolds(embedded.Usage{InUse: used * mib, History: history * mib, OnItsWay: onItsWay * mib, Quota: 100 * mib})
	}
	for _, c := range []struct {
		name     string
		err      error
		degraded bool
		says     string
	}{
		{"not asked yet", storeAnswers(cache.Lag{}), false, "not answered yet"},
		{"no answer", storeAnswers(cache.Lag{Known: true, Err: errors.New("secret")}), false, "the store does not answer"},
		{"answers", storeAnswers(cache.Lag{Known: true}), false, ""},
		{"cache not read", cacheFollows(cache.Lag{Known: true}), false, "not read"},
		{"a little behind", behind(4 * time.Second), false, ""},
		{"far behind", behind(7 * time.Second), false, "7 revisions behind the store, for 7s"},
		{"room", usage(70, 0, 0), false, ""},
		{"room that history holds", usage(99, 50, 0), false, ""},
		{"room that writes may have been counted for twice", usage(104, 0, 40), false, ""},
		{"little room", usage(90, 5, 0), true, "of 104857600 bytes"},
		{"no room for a large object", usage(104, 4, 0), false, "deletes only"},
		{"in the register", isRegistered(cutOff{}), false, ""},
		{"cut off", isRegistered(cutOff{since: time.Now()}), true, "not in the register of replicas since"},
		{"disk", diskHasRoom(embedded.Usage{DiskFree: 100 * mib}), true, "disk of --data-dir"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var d server.Degraded
			switch {
			case c.says == "" && c.err != nil, c.says != "" && (c.err == nil || !strings.Contains(c.err.Error(), c.says)):
				t.Errorf("got %v, want %q", c.err, c.says)
			case errors.As(c.err, &d) != c.degraded || c.err != nil && strings.Contains(c.err.Error(), "secret"):
				t.Errorf("got %#v", c.err)
			}
		})
	}
}
