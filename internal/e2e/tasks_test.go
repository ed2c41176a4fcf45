package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// task is a folder of examples/tasks, and what is to be seen once each of its
// files is applied, in this order.
type task struct {
	name    string
	atEdge  bool // Whether ports of the router are opened.
	lessons []lesson
}

type lesson struct {
	file string // Without .yaml.
	see  func(*testing.T, *taskWorld)
}

// TestTasks: what the tasks promise is what an Envoy does.
func TestTasks(t *testing.T) {
	outside.Slow(t)
	t.Parallel()
	w := openTaskWorld(t)
	for _, task := range tasks {
		t.Run(task.name, func(t *testing.T) {
			w.atEdge = task.atEdge
			for _, l := range task.lessons {
				t.Run(l.file, func(t *testing.T) {
					w.learn(t, task.name, l.file)
					l.see(t, w)
				})
			}
			w.forget(t, task.name)
		})
	}
}

// TestTasksComplete: each file is tried, and on the page of the tasks.
func TestTasksComplete(t *testing.T) {
	t.Parallel()
	tried := map[string]bool{filepath.Join(tasksDir, "mesh.yaml"): true}
	page, err := os.ReadFile(filepath.Join(root, "docs", "tasks.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		for _, l := range task.lessons {
			tried[filepath.Join(tasksDir, task.name, l.file+".yaml")] = true
			if link := "(../examples/tasks/" + task.name + "/" + l.file + ".yaml)"; !strings.Contains(string(page), link) {
				t.Errorf("docs/tasks.md has no link %s", link)
			}
		}
	}
	for _, pattern := range []string{"*.*", "*/*"} {
		files, err := filepath.Glob(filepath.Join(tasksDir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if !tried[file] {
				t.Errorf("%s is not tried", file)
			}
			delete(tried, file)
		}
	}
	for file := range tried {
		t.Errorf("%s is tried and does not exist", file)
	}
}

// TestTasksValid: istioctl validate has nothing to say against them.
func TestTasksValid(t *testing.T) {
	t.Parallel()
	istioctl := programs(t).Istioctl
	files, err := filepath.Glob(filepath.Join(tasksDir, "*", "*.yaml"))
	if err != nil || len(files) < len(tasks) {
		t.Fatalf("%d files; %v", len(files), err)
	}
	args := []string{"validate", "-f", filepath.Join(root, "examples", "bookshop", "services.yaml")}
	for _, file := range files {
		args = append(args, "-f", file)
	}
	out, err := exec.CommandContext(t.Context(), istioctl, args...).CombinedOutput()
	if err != nil || strings.Contains(string(out), "warning") {
		t.Errorf("%v\n%s", err, out)
	}
}

// rowSeen tries a row as those of the bookshop are tried.
func rowSeen(ask func(int) Ask, did func(*Traffic) (did, wrong string)) func(*testing.T, *taskWorld) {
	return func(t *testing.T, w *taskWorld) {
		t.Helper()
		v, err := w.Try(t.Context(), Row{Ask: ask, Did: did})
		if err != nil {
			t.Fatal(err)
		}
		t.Log(v.Did)
		if v.Wrong != "" {
			t.Errorf("%s: %s", v.Did, v.Wrong)
		}
	}
}

var tasks = []task{
	{"request-routing", false, []lesson{
		{"1-everyone-v1", rowSeen(get("reviews"), always("v1"))},
		{"2-jason-v2", rowSeen(halfJason("reviews", endUser), byCaller("v2", "v1"))},
	}},
	{"fault-injection", false, []lesson{
		{"1-slow-for-jason", rowSeen(halfJason("ratings", endUser), delayed)},
		{"2-broken-for-jason", rowSeen(halfJason("ratings", endUser), byCaller("status 500", "v1"))},
	}},
	{"traffic-shifting", false, []lesson{
		{"1-tenth-v3", rowSeen(get("reviews"), shares(map[string]float64{"v1": .9, "v3": .1}))},
		{"2-half-v3", rowSeen(get("reviews"), shares(map[string]float64{"v1": .5, "v3": .5}))},
		{"3-all-v3", rowSeen(get("reviews"), always("v3"))},
	}},
	{"tcp-shifting", false, []lesson{
		{"1-all-v1", seeTill(map[string]float64{"v1": 1})},
		{"2-fifth-v2", seeTill(map[string]float64{"v1": .8, "v2": .2})},
	}},
	{"request-timeouts", false, []lesson{{"1-half-a-second", seeTimeout}}},
	{"circuit-breaking", false, []lesson{
		{"1-one-at-a-time", seeOverload},
		{"2-leave-out-who-fails", seeEjection},
	}},
	{"locality-failover", false, []lesson{{"1-next-zone", seeFailover}}},
	{"locality-distribution", false, []lesson{{"1-shares", rowSeen(get("critics"), shares(map[string]float64{"v1": .7, "v3": .3}))}}},
	{"mirroring", false, []lesson{
		{"1-copy-to-v3", rowSeen(get("reviews"), copied(Requests, Requests))},
		{"2-copy-of-a-quarter", rowSeen(get("reviews"), copied(bounds(Requests, .25)))},
	}},
	{"ingress-hosts-and-paths", true, []lesson{{"1-two-hosts", seeTwoHosts}}},
	{"deny-by-default", true, []lesson{
		{"1-nothing", seeNothingAllowed},
		{"2-products", seeProductsAllowed},
	}},
	{"jwt-at-the-gateway", true, []lesson{
		{"1-verified", seeTokenVerified},
		{"2-required", seeTokenRequired},
	}},
	{"secure-gateways", true, []lesson{
		{"1-simple", seeSimple},
		{"2-mutual", seeMutual},
		{"3-two-hosts", seeTwoCertificates},
	}},
	{"rotated-certificates", true, []lesson{{"1-told-by-the-server", seeTold}}},
	{"sni-passthrough", true, []lesson{{"1-printer", seePrinter}}},
	{"egress-hosts", false, []lesson{
		{"1-library", seeLibrary},
		{"2-library-in-time", func(t *testing.T, w *taskWorld) {
			w.outward(t, question{url: library, to: elsewhereAt, header: hanging}).has(t, http.StatusGatewayTimeout)
		}},
	}},
	{"egress-tls-origination", false, []lesson{
		{"1-simple", seeOrigination("TLS for library.example.com")},
		{"2-mutual", seeOrigination("TLS for library.example.com by shop.example.com")},
		{"3-wrong-name", seeNothingSent},
	}},
	{"wildcard-egress", false, []lesson{{"1-any-wiki", seeWiki}}},
}
