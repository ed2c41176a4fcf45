package overload

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/internal/outside"
)

const networkingAPI = "/apis/networking.istio.io/v1/namespaces/default/"

// TestRoutesThatMultiply: small objects whose lists multiply to millions of routes
// cost neither the server nor those who ask it much, also after a restart.
func TestRoutesThatMultiply(t *testing.T) {
	outside.Slow(t)
	const most = 400 << 20
	p := start(t)
	p.post(t, http.StatusCreated, service)
	for _, text := range slices.Concat(delegates(), servers(), wildcards()) {
		path := "virtualservices"
		switch {
		case strings.HasPrefix(text, "kind: Gateway"):
			path = "gateways"
		case strings.HasPrefix(text, "kind: ServiceEntry"):
			path = "serviceentries"
		}
		if code, err := p.send("POST", networkingAPI+path, []byte(text)); err != nil || code != http.StatusCreated {
			t.Fatalf("got %d, %v", code, err)
		}
	}
	p.asked(t, "root", "edge", "all")
	_, before := p.Memory()
	p.Kill()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := p.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	p.asked(t, "root", "edge", "all")
	_, after := p.Memory()
	if before == 0 {
		outside.Missing(t, "the memory of a process: /proc")
	}
	t.Logf("%d MiB, and %d MiB after a restart", before>>20, after>>20)
	if max(before, after) > most {
		t.Errorf("the process had %d MiB, and %d MiB after a restart, at most %d are allowed", before>>20, after>>20, most>>20)
	}
}

// asked polls as a sidecar and as a router, and looks for the problem of each
// VirtualService that is withheld.
func (p program) asked(t *testing.T, withheld ...string) {
	t.Helper()
	for _, role := range []string{"sidecar", "router"} {
		for _, kind := range []string{"clusters", "listeners"} {
			body := fmt.Appendf(nil, `{"node":{"id":"%s~10.1.0.9~web.default~default.svc.cluster.local"}}`, role)
			if code, err := p.send("POST", "/v3/discovery:"+kind, body); err != nil || code != http.StatusOK {
				t.Fatalf("%s of a %s: %d, %v", kind, role, code, err)
			}
		}
	}
	resp, err := http.Get(p.URL + "/debug/problems")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range withheld {
		if !strings.Contains(string(text), fmt.Sprintf(`"code":"PA0505","object":{"kind":"VirtualService","namespace":"default","name":%q}`, name)) {
			t.Errorf("nobody says that %s is withheld: %.2000s", name, text)
		}
	}
}

// lines repeats a line with its number in it.
func lines(n int, line func(i int) string) string {
	var out strings.Builder
	for i := range n {
		out.WriteString(line(i))
	}
	return out.String()
}

func virtualService(name, rest string) string {
	return "kind: VirtualService\napiVersion: networking.istio.io/v1\nmetadata: {name: " + name + "}\nspec:\n" + rest
}

// delegates come to 1,000,000 routes.
func delegates() []string {
	matches := func(of string) string {
		return "match: [" + lines(10, func(i int) string { return fmt.Sprintf("{headers: {%s: {exact: x%d}}}, ", of, i) }) + "]"
	}
	return []string{
		virtualService("root", "  hosts: [web.default.svc.cluster.local]\n  http:\n"+lines(100, func(int) string {
			return "  - {" + matches("a") + ", delegate: {name: inner}}\n"
		})),
		virtualService("inner", "  http:\n"+lines(100, func(int) string {
			return "  - {" + matches("b") + ", route: [{destination: {host: web}}]}\n"
		})),
	}
}

func routes(n int) string {
	return "  http:\n" + lines(n, func(i int) string {
		return fmt.Sprintf("  - {match: [{uri: {prefix: /p%d}}], route: [{destination: {host: web.default.svc.cluster.local}}]}\n", i)
	})
}

// servers of a Gateway and the routes of a VirtualService come to 4,000,000 routes.
func servers() []string {
	return []string{
		"kind: Gateway\napiVersion: networking.istio.io/v1\nmetadata: {name: edge}\nspec:\n  servers:\n" + lines(1000, func(i int) string {
			return fmt.Sprintf("  - {port: {number: %d, name: http-%d, protocol: HTTP}, hosts: [\"*\"]}\n", 1024+i, i)
		}),
		virtualService("edge", "  hosts: [\"web.example.com\"]\n  gateways: [edge]\n"+routes(4000)),
	}
}

// wildcards come to 2,000,000 routes.
func wildcards() []string {
	return []string{
		"kind: ServiceEntry\napiVersion: networking.istio.io/v1\nmetadata: {name: many}\nspec:\n  hosts: [" + lines(250, func(i int) string {
			return fmt.Sprintf("s%d.many.example.com, ", i)
		}) + "]\n  resolution: STATIC\n  ports: [{number: 80, name: http, protocol: HTTP}, {number: 81, name: http-1, protocol: HTTP}]\n  endpoints: [{address: 10.1.0.1}]\n",
		virtualService("all", "  hosts: [\"*.many.example.com\"]\n"+routes(4000)),
	}
}
