package get_test

import (
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/simulated"
)

// events are the first two columns of a table, without its header.
func events(text string) []string {
	var got []string
	for _, line := range strings.Split(strings.TrimSpace(text), "\n")[1:] {
		columns := strings.Fields(clitest.Blanks.ReplaceAllString(line, " "))
		got = append(got, columns[0]+" "+columns[1])
	}
	return got
}

func TestWatchShowsEveryChangeOnce(t *testing.T) {
	server := clitest.Start(t)
	clitest.Apply(t, server.URL(), clitest.Rule("a", "v1"))
	clitest.Apply(t, server.URL(), clitest.Rule("b", "v1"))
	out, interrupt := clitest.Watch(t, server.URL(), "watch", "routerules")
	out.Wait(t, 3) // The header and both rules.
	clitest.Apply(t, server.URL(), clitest.Rule("a", "v2"))
	if _, stderr, code := clitest.Run(t, server.URL(), "", "delete", "rr", "b"); code != cli.ExitDone {
		t.Fatal(stderr)
	}
	out.Wait(t, 5)
	if code := interrupt(); code != cli.ExitDone {
		t.Errorf("interrupted watch: exit %d", code)
	}
	want := []string{"ADDED a", "ADDED b", "MODIFIED a", "DELETED b"}
	if diff := cmp.Diff(want, events(out.String())); diff != "" {
		t.Errorf("events (-want +got):\n%s\n%s", diff, out)
	}
}

// TestWatchOnASlowScreen: every change is shown in order, also those that came
// while an earlier one was being written.
func TestWatchOnASlowScreen(t *testing.T) {
	server := clitest.Start(t)
	clitest.Apply(t, server.URL(), clitest.Rule("a", "v1"))
	clitest.Apply(t, server.URL(), clitest.Rule("b", "v1"))
	out, interrupt := clitest.Watch(t, server.URL(), "watch", "routerules")
	out.Wait(t, 3)
	release := out.Hold() // Nothing can be written.
	for _, version := range []string{"v2", "v3", "v4"} {
		clitest.Apply(t, server.URL(), clitest.Rule("a", version))
	}
	_, stderr, code := clitest.Run(t, server.URL(), "", "delete", "rr", "b")
	clitest.Apply(t, server.URL(), clitest.Rule("c", "v1"))
	release()
	if code != cli.ExitDone {
		t.Fatal(stderr)
	}
	want := []string{"ADDED a", "ADDED b", "MODIFIED a", "MODIFIED a", "MODIFIED a", "DELETED b", "ADDED c"}
	out.Wait(t, 1+len(want))
	interrupt()
	if diff := cmp.Diff(want, events(out.String())); diff != "" {
		t.Errorf("events (-want +got):\n%s\n%s", diff, out)
	}
}

func TestWatchGoesOnAfterADisconnect(t *testing.T) {
	for _, tc := range []struct {
		name   string
		forget bool
	}{
		{"resumes", false},
		{"tells the difference when its revision is gone", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := clitest.Start(t)
			clitest.Apply(t, server.URL(), clitest.Rule("a", "v1"))
			clitest.Apply(t, server.URL(), clitest.Rule("b", "v1"))
			out, interrupt := clitest.Watch(t, server.URL(), "watch", "routerules")
			out.Wait(t, 3)
			server.Stop()
			other := httptest.NewServer(clitest.NewServer(server.Store).Handler())
			defer other.Close()
			clitest.Apply(t, other.URL, clitest.Rule("b", "v2"))
			clitest.Apply(t, other.URL, clitest.Rule("c", "v1"))
			if tc.forget {
				server.Compact()
			}
			server.Start()
			out.Wait(t, 5)
			interrupt()
			want := []string{"ADDED a", "ADDED b", "MODIFIED b", "ADDED c"}
			if diff := cmp.Diff(want, events(out.String())); diff != "" {
				t.Errorf("events (-want +got):\n%s\n%s", diff, out)
			}
		})
	}
}

func TestWatchTellsALossOnce(t *testing.T) {
	server := clitest.Start(t)
	clitest.Apply(t, server.URL(), clitest.Rule("a", "v1"))
	out, errs, interrupt := clitest.WatchBoth(t, server.URL(), "watch", "routerules")
	out.Wait(t, 2)
	server.Stop()
	errs.Wait(t, 1)
	server.Start()
	errs.Wait(t, 2)
	clitest.Apply(t, server.URL(), clitest.Rule("b", "v1"))
	out.Wait(t, 3)
	interrupt()
	want := regexp.MustCompile(`^connection to ` + server.URL() + ` lost, retrying: .+\nconnected again\n$`)
	if !want.MatchString(errs.String()) {
		t.Errorf("stderr %q, want %s", errs, want)
	}
}

func TestWatchWaitsForWhatIsNotThereYet(t *testing.T) {
	server := clitest.Start(t)
	out, errs, interrupt := clitest.WatchBoth(t, server.URL(), "watch", "rr", "later")
	errs.Wait(t, 1)
	clitest.Apply(t, server.URL(), clitest.Rule("later", "v1"))
	out.Wait(t, 2)
	interrupt()
	if want := "routerule/later does not exist yet in namespace default\n"; errs.String() != want {
		t.Errorf("stderr %q, want %q", errs, want)
	}
	_, stderr, code := clitest.Run(t, server.URL(), "", "get", "rr", "never", "-w")
	if want := "error: routerule/never not found in namespace default\n"; code != cli.ExitFailed || stderr != want {
		t.Errorf("get -w: exit %d: %q, want %q", code, stderr, want)
	}
}

func TestGetWatchShowsRows(t *testing.T) {
	server := clitest.Start(t)
	clitest.Apply(t, server.URL(), clitest.Rule("a-long-name", "v1"))
	out, interrupt := clitest.Watch(t, server.URL(), "get", "rr", "a-long-name", "-w")
	out.Wait(t, 2)
	clitest.Apply(t, server.URL(), clitest.Rule("other", "v1"))
	clitest.Apply(t, server.URL(), clitest.Rule("a-long-name", "v2"))
	out.Wait(t, 3)
	interrupt()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for _, line := range lines[1:] {
		if !strings.HasPrefix(line, "a-long-name   reviews") {
			t.Errorf("row %q", line)
		}
	}
	if column := strings.Index(lines[0], "DESTINATION"); column != len("a-long-name   ") {
		t.Errorf("columns are not aligned:\n%s", out)
	}
}

// TestWatchShowsProgress checks that the proxies that run an object are a column, and
// that a row follows when there are more of them, without a change of the object.
func TestWatchShowsProgress(t *testing.T) {
	outside.Slow(t)
	for _, tc := range []struct {
		verb []string
		what string // happened, as the first column
	}{
		{[]string{"get", "rr", "-w"}, ""},
		{[]string{"get", "rr", "-w", "-o", "wide"}, ""},
		{[]string{"watch", "rr", "-o", "wide"}, "MODIFIED "},
	} {
		t.Run(strings.Join(tc.verb, " "), func(t *testing.T) {
			live, publisher := clitest.Followed(t.Cleanup)
			api := httptest.NewServer(live.Handler())
			t.Cleanup(api.Close)
			clitest.Apply(t, api.URL, simulated.Reviews)
			clitest.Apply(t, api.URL, clitest.Rule("a-long-name", "v1"))
			if _, stderr, code := clitest.Run(t, api.URL, "", "wait", "rr", "a-long-name"); code != cli.ExitDone {
				t.Fatal(stderr)
			}
			out, interrupt := clitest.Watch(t, api.URL, tc.verb...)
			out.Wait(t, 2)
			p, err := simulated.Connect(publisher, simulated.Node(1))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Leave)
			out.WaitFor(t, tc.what+"a-long-name reviews .* 1/1 ")
			p.Hold()
			clitest.Apply(t, api.URL, clitest.Rule("a-long-name", "v2"))
			out.WaitFor(t, tc.what+"a-long-name reviews .*v2.* 0/1 ")
			p.Accept()
			out.WaitFor(t, tc.what+"a-long-name reviews .*v2.* 1/1 ")
			interrupt()
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			column := strings.Index(lines[0], "PROGRAMMED")
			if column < 0 {
				t.Fatalf("no column:\n%s", out)
			}
			for i, line := range lines[1:] {
				if line == lines[i] || column >= len(line) || line[column-1] != ' ' || line[column] == ' ' {
					t.Errorf("row %q below %q", line, lines[i])
				}
			}
		})
	}
}
