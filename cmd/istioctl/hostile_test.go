package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
	"github.com/pilot-api/pilot-api/cmd/istioctl/root"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/simulated"
)

// words stand for hostile ones in what a server is told, and name for a hostile one.
const (
	words = "WORDS"
	name  = "poison"
)

// hostile is a text that sets the title of a terminal, clears it, turns its text
// around and ends lines, in the one-byte and the two-byte way.
const hostile = "\x1b]0;t\a\x1b[2J\r\x7f\u0085\u009b31m\u202e\u2066\u200b\ufeff\u2028\U000e0041"

// poisoned is a server that answers hostile texts in the place of others.
type poisoned struct {
	http.Handler
	texts []string // that are replaced
}

func (p poisoned) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Header.Del("Accept-Encoding")
	p.Handler.ServeHTTP(poisoner{w, p.texts}, r)
}

type poisoner struct {
	http.ResponseWriter
	texts []string
}

func (p poisoner) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p poisoner) Flush() { _ = http.NewResponseController(p.ResponseWriter).Flush() }

func (p poisoner) WriteHeader(code int) {
	p.Header().Del("Content-Length")
	for _, values := range p.Header() {
		for i := range values {
			// A header has no control characters below the space in it.
			values[i] = p.replaced(values[i], "\u009b31m\u202e")
		}
	}
	p.ResponseWriter.WriteHeader(code)
}

func (p poisoner) Write(text []byte) (int, error) {
	var quoted bytes.Buffer
	encoder := json.NewEncoder(&quoted)
	if err := encoder.Encode(hostile); err != nil {
		return 0, err
	}
	by := strings.Trim(quoted.String(), "\"\n")
	if _, err := p.ResponseWriter.Write([]byte(p.replaced(string(text), by))); err != nil {
		return 0, err
	}
	return len(text), nil
}

func (p poisoner) replaced(text, by string) string {
	for _, one := range p.texts {
		text = strings.ReplaceAll(text, one, by)
	}
	return text
}

const hostileNode = "sidecar~10.1.0.9~WORDS.default~default.svc.cluster.local"

const hostileObjects = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: poison, annotations: {example.com/words: "WORDS"}}
spec:
  hosts: [poison.default.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 9080, name: http, protocol: HTTP}]
  endpoints: [{address: 10.1.0.1}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: poison, annotations: {example.com/words: "WORDS"}}
spec:
  hosts: [poison.default.svc.cluster.local]
  http:
  - match: [{uri: {prefix: /WORDS}}]
    route: [{destination: {host: missing.WORDS.example.com}}]
  - route: [{destination: {host: poison.default.svc.cluster.local, subset: WORDS}}]
`

// hostileMesh has the words in all places, also in those of proxies.
func hostileMesh(t *testing.T) http.Handler {
	t.Helper()
	live, publisher := clitest.Followed(t.Cleanup)
	api := httptest.NewServer(live.Handler())
	t.Cleanup(api.Close)
	clitest.Run(t, api.URL, "", "version")
	if err := publisher.Await(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	proxy, err := simulated.Connect(publisher, hostileNode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Leave)
	proxy.Refuse(discovery.RouteType, "no "+words)
	clitest.Apply(t, api.URL, hostileObjects)
	for refused := false; !refused; {
		text, stderr, code := clitest.Run(t, api.URL, "", "proxy-status", "-o", "wide")
		if code != cli.ExitDone || t.Context().Err() != nil {
			t.Fatal(stderr)
		}
		refused = strings.Contains(text, "no "+words)
	}
	return live.Handler()
}

// hostileCommands show what the server answers.
var hostileCommands = [][]string{
	{"proxy-status"}, {"proxy-status", "-o", "wide"}, {"proxy-status", "-o", "json"}, {"proxy-status", "-o", "yaml"},
	{"proxy-status", "10.1.0.9"}, {"proxy-status", hostile},
	{"proxy-config", "clusters", "10.1.0.9"}, {"proxy-config", "all", "10.1.0.9"}, {"proxy-config", "all", "10.1.0.9", "-o", "json"},
	{"proxy-config", "all", "10.1.0.9", "-o", "yaml"}, {"proxy-config", "all", hostile}, {"proxy-config", "all", "sidecar~" + hostile + "~a~b"},
	{"proxy-config", "all", hostileNode}, {"proxy-config", hostile, "a"},
	{"route", "--from", "10.1.0.9", "http://poison:9080/"}, {"route", "--from", hostileNode, "http://poison:9080/"},
	{"route", "--from", hostileNode, "http://poison:9080/", "-o", "json"}, {"route", "--from", hostileNode, "--all"},
	{"route", "--from", hostile, "http://poison/"}, {"route", "--from", hostileNode, "http://poison:9080/" + hostile},
	{"wait", "vs", "poison", "--timeout", "300ms"}, {"apply", "-f", "-", "--wait", "--timeout", "300ms"},
	{"get", "all"}, {"get", "vs"}, {"get", "vs", "-o", "wide"}, {"get", "vs", "-o", "json"}, {"get", "vs", "-o", "yaml"}, {"get", "vs", "-o", "name"},
	{"get", "vs", "poison", "-o", "json"}, {"get", "vs", "poison", "-o", "yaml"}, {"get", "vs", hostile}, {"get", hostile, "a"}, {"get", "vs", "-n", hostile},
	{"get", "vs", "-o", "jsonpath={.items[*].metadata}"}, {"get", "vs", "-o", "custom-columns=A:.metadata.annotations"}, {"get", "vs", "absent"},
	{"describe", "vs", "poison"}, {"describe", "vs", "poison", "-o", "json"}, {"describe", "vs", "poison", "-o", "yaml"},
	{"history", "vs", "poison"}, {"history", "vs", "poison", "-o", "json"}, {"history", "vs", "poison", "-o", "yaml"},
	{"problems"}, {"problems", "-o", "json"}, {"problems", "-o", "yaml"}, {"analyze"}, {"analyze", "-o", "json"},
	{"diff", "-f", "-"}, {"diff", "--proxies", "-f", "-"}, {"export"}, {"validate", "-f", "-"}, {"apply", "-f", "-"}, {"replace", "-f", "-", "-o", "json"},
	{"create", "-f", "-"}, {"create", "-f", "-", "-o", "yaml"}, {"create", "-f", hostile}, {"delete", "vs", "absent"}, {"patch", "vs", "poison", "-p", hostile},
	{"watch", "vs", "--timeout", "300ms"}, {"watch", "vs", "-o", "json", "--timeout", "300ms"}, {"watch", "vs", "-o", "yaml", "--timeout", "300ms"},
	{"proxy-status", "-w", "--timeout", "300ms"}, {"version"}, {"rollback", "vs", "poison", "--to", "1", "--dry-run"},
	{"bootstrap", "sidecar~10.0.0.1~" + hostile + "~b"}, {"explain", hostile}, {"config", "use-context", hostile}, {hostile}, {"get", "--" + hostile}, {"get", "vs", "--server", "http://" + hostile},
	{"__complete", "proxy-config", "all", ""}, {"__complete", "get", "vs", ""},
}

// TestHostileWordsSteerNoTerminal runs the commands as a person does, against a server
// the answers of which have hostile texts in them: values, and names too.
func TestHostileWordsSteerNoTerminal(t *testing.T) {
	outside.Slow(t)
	mesh := hostileMesh(t)
	for title, texts := range map[string][]string{"values": {words}, "values and names": {words, name}} {
		api := httptest.NewServer(poisoned{mesh, texts})
		t.Cleanup(api.Close)
		shown := 0
		for _, args := range hostileCommands {
			stdout, stderr := runOnTerminal(t, api.URL, strings.ReplaceAll(hostileObjects, words, `\e[2J\x9B31m\u202e`), args...)
			for _, text := range []string{stdout, stderr} {
				if at := strings.IndexFunc(text, steers); at >= 0 || !utf8.ValidString(text) {
					t.Errorf("%s: istioctl %q shows %q", title, args, text[max(at-40, 0):min(max(at, 0)+40, len(text))])
				}
			}
			if strings.Contains(stdout+stderr, `\u202e`) {
				shown++
			}
		}
		if shown < len(hostileCommands)/2 {
			t.Errorf("%s: only %d of %d commands show a hostile text at all", title, shown, len(hostileCommands))
		}
	}
}

// runOnTerminal runs one command line where a person looks at both streams.
func runOnTerminal(t *testing.T, url, stdin string, args ...string) (stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	c := &cli.Program{Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs, StdoutIsTerminal: true, StderrIsTerminal: true, Getenv: clitest.Env(url)}
	root.Run(ctx, c, args)
	return out.String(), strings.ReplaceAll(errs.String(), "\r\033[K", "")
}

// TestHostileDocumentsDecodeToTheSame: an escape in a document is one of its format.
func TestHostileDocumentsDecodeToTheSame(t *testing.T) {
	api := httptest.NewServer(poisoned{hostileMesh(t), []string{words}})
	t.Cleanup(api.Close)
	decoders := map[string]func(text []byte, v any) error{
		"json": json.Unmarshal,
		"yaml": func(text []byte, v any) error { return yaml.Unmarshal(text, v) },
	}
	for format, decode := range decoders {
		for _, args := range [][]string{{"get", "vs", "poison"}, {"describe", "vs", "poison"}, {"proxy-status"}} {
			text, stderr, code := clitest.Run(t, api.URL, "", append(args, "-o", format)...)
			var back any
			if err := decode([]byte(text), &back); code != cli.ExitDone || err != nil {
				t.Fatalf("%v: exit %d, %v: %s%s", args, code, err, text, stderr)
			}
			if !hasText(back, hostile) || strings.ContainsFunc(text, steers) {
				t.Errorf("%v -o %s: another text comes back of\n%s", args, format, text)
			}
		}
	}
	folder := t.TempDir()
	if _, stderr, code := clitest.Run(t, api.URL, "", "export", "-o", folder+"/"); code != cli.ExitDone {
		t.Fatal(stderr)
	}
	text, err := os.ReadFile(filepath.Join(folder, "default", "virtualservices", "poison.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var back any
	if err := yaml.Unmarshal(text, &back); err != nil || !hasText(back, hostile) || strings.ContainsFunc(string(text), steers) {
		t.Errorf("%v: another text comes back of\n%s", err, text)
	}
}

// hasText reports whether a text is in a value or in one of those in it.
func hasText(v any, text string) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, text)
	case []any:
		for _, one := range v {
			if hasText(one, text) {
				return true
			}
		}
	case map[string]any:
		for _, one := range v {
			if hasText(one, text) {
				return true
			}
		}
	}
	return false
}
