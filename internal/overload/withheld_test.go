package overload

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/testbed"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
)

// multiplying is an object that is small as text, and large as configuration.
type multiplying struct {
	name, kind, spec string
	refused          bool // when it is written
}

// items is a list of n, in which # is the number of each.
func items(n int, item string) string {
	out := make([]string, n)
	for i := range out {
		out[i] = strings.ReplaceAll(item, "#", fmt.Sprint(i+1))
	}
	return "[" + strings.Join(out, ",") + "]"
}

func entrySpec(name string, hosts, ports, addresses int, protocol, rest string) string {
	return fmt.Sprintf(`{"resolution":"STATIC","location":"MESH_INTERNAL","hosts":%s,"ports":%s,"addresses":%s,%s}`,
		items(hosts, `"`+name+`-#.example"`), items(ports, `{"number":#,"name":"p-#","protocol":"`+protocol+`"}`), items(addresses, `"10.7.0.#"`), rest)
}

func endpoints(n int) string { return `"endpoints":` + items(n, `{"address":"10.1.0.1","weight":#}`) }

// multiplied are the objects that are stored before the server starts. With them
// come workloads that the last ones select.
func multiplied() []multiplying {
	out := []multiplying{
		{"largest", "ServiceEntry", entrySpec("largest", 256, 256, 0, "HTTP", endpoints(4000)), true},
		{"small-text", "ServiceEntry", entrySpec("small-text", 100, 100, 0, "HTTP", endpoints(400)), true},
		{"addresses", "ServiceEntry", entrySpec("addresses", 100, 100, 200, "HTTP", endpoints(1)), true},
		{"listeners", "ServiceEntry", entrySpec("listeners", 1, 256, 200, "TCP", endpoints(1)), true},
		{"hosts", "ServiceEntry", entrySpec("hosts", 256, 256, 0, "HTTPS", endpoints(1)), true},
	}
	for i := range 30 {
		name := fmt.Sprintf("selects-%d", i)
		out = append(out, multiplying{name, "ServiceEntry", entrySpec(name, 2, 2, 0, "HTTP", `"workloadSelector":{"labels":{"app":"many"}}`), false})
	}
	return out
}

// TestWithheld: a server with a memory limit starts on objects that multiply to far
// more than it has, serves the others, says what it withholds, and lets it be
// deleted.
func TestWithheld(t *testing.T) {
	const limit = 512 << 20
	data := filepath.Join(t.TempDir(), "data")
	storeUnchecked(t, data)
	p := startOn(t, "--data-dir", data, "--memory-limit", "512Mi")
	p.post(t, http.StatusCreated, service)
	withheld := p.overBudget(t)
	for _, m := range multiplied() {
		if m.refused && !slices.Contains(withheld, m.name) {
			t.Errorf("%s is not withheld; these are: %v", m.name, withheld)
		}
		if m.refused {
			text := fmt.Sprintf(`{"apiVersion":"networking.istio.io/v1","kind":%q,"metadata":{"name":"again"},"spec":%s}`, m.kind, m.spec)
			if code, err := p.send("POST", entries, []byte(text)); err != nil || code != http.StatusUnprocessableEntity {
				t.Errorf("%s was answered %d, %v", m.name, code, err)
			}
		}
	}
	if n := len(withheld); n <= 5 || n >= len(multiplied()) {
		t.Errorf("of %d objects %d are withheld; some selections fit, and not all", len(multiplied()), n)
	}
	poll := []byte(`{"node":{"id":"` + node + `"}}`)
	for _, kind := range []string{"clusters", "listeners"} {
		if code, err := p.send("POST", "/v3/discovery:"+kind, poll); err != nil || code != http.StatusOK {
			t.Errorf("%s are answered %d, %v", kind, code, err)
		}
	}
	if text := p.get(t, "/v1/registration/web.default.svc.cluster.local%7Chttp"); !strings.Contains(text, "10.1.0.1") {
		t.Errorf("the honest service has the endpoints %s", text)
	}
	for _, m := range multiplied() {
		if code, err := p.send("DELETE", entries+"/"+m.name, nil); err != nil || code != http.StatusOK {
			t.Errorf("the end of %s is answered %d, %v", m.name, code, err)
		}
	}
	if left := p.overBudget(t); len(left) > 0 {
		t.Errorf("withheld are still %v", left)
	}
	_, most := p.Memory()
	if most == 0 {
		outside.Missing(t, "the memory of a process: /proc")
	}
	t.Logf("the process had %d MiB at most", most>>20)
	if most > limit {
		t.Errorf("the process had %d MiB, at most %d are allowed", most>>20, limit>>20)
	}
}

// storeUnchecked has a store of an older version, which checked less, hold the objects
// and the workloads that some of them select.
func storeUnchecked(t *testing.T, dir string) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	db, err := embedded.Start(t.Context(), embedded.Options{Dir: dir, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	objects := multiplied()
	for i := range 500 {
		objects = append(objects, multiplying{fmt.Sprintf("w-%d", i), "WorkloadEntry", fmt.Sprintf(`{"address":"10.2.%d.%d","labels":{"app":"many"}}`, i/250, i%250+1), false})
	}
	to := etcd.NewEmbedded(db, etcd.DefaultPrefix, log)
	var writers errgroup.Group
	writers.SetLimit(32)
	for _, m := range objects {
		writers.Go(func() error {
			kind, _ := schema.KindByName(m.kind)
			o, err := schema.New(kind, metav1.ObjectMeta{Name: m.name, Namespace: "default"}, json.RawMessage(m.spec))
			if err == nil {
				_, err = to.Create(t.Context(), o)
			}
			return err
		})
	}
	if err := writers.Wait(); err != nil {
		t.Fatal(err)
	}
}

// overBudget are the names of the objects that are withheld.
func (p program) overBudget(t *testing.T) []string {
	t.Helper()
	var answer struct{ Problems diag.List }
	if err := json.Unmarshal([]byte(p.get(t, "/debug/problems?local=true")), &answer); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, problem := range answer.Problems {
		if problem.Code == diag.OverBudget {
			out = append(out, problem.Object.Name)
		}
	}
	return out
}

func (p program) get(t *testing.T, path string) string {
	t.Helper()
	resp, err := http.Get(p.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v: %s", path, resp.Status, err, text)
	}
	return string(text)
}

// startOn is a pilot-api with flags that say where its data is.
func startOn(t *testing.T, flags ...string) program {
	t.Helper()
	if err := build(); err != nil {
		t.Fatal(err)
	}
	return startAs(t, executable(), flags...)
}

// startAs is a pilot-api by a program that may set its limits before it becomes one.
func startAs(t *testing.T, command string, flags ...string) program {
	t.Helper()
	server, err := testbed.NewServer(t.TempDir(), "pilot-api", command, append(flags, "--log-level", "error")...)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("pilot-api:\n%s", server.Tail())
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := server.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	return program{server}
}
