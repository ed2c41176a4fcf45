package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/simulated"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"istioctl": main})
}

// TestScripts runs testdata/script, each against a server of its own, at
// $ISTIOCTL_SERVER. $FILES is the URL of the script's own folder.
func TestScripts(t *testing.T) {
	outside.Slow(t)
	runScripts(t, "testdata/script", nil)
}

// TestSamples has Istio's own samples in $SAMPLES.
func TestSamples(t *testing.T) {
	runScripts(t, "testdata/samples", map[string]string{"SAMPLES": outside.Shared(t, "samples", "bookinfo-0.7.1")})
}

func runScripts(t *testing.T, dir string, vars map[string]string) {
	testscript.Run(t, testscript.Params{
		Dir: dir,
		Setup: func(env *testscript.Env) error {
			live, proxies := clitest.Followed(env.Defer)
			env.Values["proxies"] = &fleet{publisher: proxies, all: map[string]*simulated.Proxy{}}
			api := httptest.NewServer(live.Handler())
			env.Defer(api.Close)
			files := httptest.NewServer(http.FileServer(http.Dir(env.WorkDir)))
			env.Defer(files.Close)
			env.Setenv("ISTIOCTL_SERVER", api.URL)
			env.Setenv("FILES", files.URL)
			env.Setenv("ISTIOCTL_USER", "ada")
			for name, value := range vars {
				env.Setenv(name, value)
			}
			return nil
		},
		Cmds:          map[string]func(*testscript.TestScript, bool, []string){"poll": poll, "pollv1": pollV1, "proxy": proxy, "timeless": timeless, "past": past},
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
	})
}

// poll has proxies ask for their clusters, so that the server knows them.
func poll(ts *testscript.TestScript, _ bool, nodes []string) {
	for _, node := range nodes {
		resp, err := http.Post(ts.Getenv("ISTIOCTL_SERVER")+"/v3/discovery:clusters", "application/json",
			strings.NewReader(`{"node":{"id":"`+node+`"}}`))
		ts.Check(err)
		if resp.Body.Close(); resp.StatusCode != http.StatusOK {
			ts.Fatalf("%s: %s", node, resp.Status)
		}
	}
}

// pollV1 is poll in v1.
func pollV1(ts *testscript.TestScript, _ bool, nodes []string) {
	for _, node := range nodes {
		resp, err := http.Get(ts.Getenv("ISTIOCTL_SERVER") + "/v1/clusters/istio-proxy/" + node)
		ts.Check(err)
		if resp.Body.Close(); resp.StatusCode != http.StatusOK {
			ts.Fatalf("%s: %s", node, resp.Status)
		}
	}
}

// moments are times and ages, which no golden output has.
var moments = regexp.MustCompile(`(?m)[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z|\b[0-9dhms]+ ago|\b[0-9]+[dhms][0-9dhms]*$`)

// timeless is "timeless FILE COPY", which copies a file, or stdout, without moments.
func timeless(ts *testscript.TestScript, _ bool, args []string) {
	text := moments.ReplaceAllStringFunc(ts.ReadFile(args[0]), func(moment string) string {
		switch {
		case strings.HasSuffix(moment, "ago"):
			return "AGE ago"
		case strings.HasSuffix(moment, "Z"):
			return "TIME"
		}
		return "AGE"
	})
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}

var (
	uuids    = regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)
	short    = regexp.MustCompile(`\b[0-9a-f]{8}\b`)
	programs = regexp.MustCompile(`istioctl/[^ "]+`)
	moment   = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z|\b[0-9dhms]+ ago`)
	ofMoment = regexp.MustCompile(`(?m)^.*WHEN.*$`)
	columns  = regexp.MustCompile(` {2,}([^ ])`)
)

// past is "past FILE COPY", which copies a file, or stdout, in which there is a table
// of history, without moments, random IDs, the version, and widths that depend on
// them.
func past(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile(args[0])
	for _, r := range []struct {
		what *regexp.Regexp
		by   string
	}{{uuids, "UUID"}, {short, "SHORT"}, {programs, "istioctl/VERSION"}, {moment, "WHEN"}} {
		text = r.what.ReplaceAllString(text, r.by)
	}
	text = ofMoment.ReplaceAllStringFunc(text, func(line string) string { return columns.ReplaceAllString(line, "  $1") })
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}

// fleet is the simulated proxies of a script.
type fleet struct {
	publisher *discovery.Publisher
	all       map[string]*simulated.Proxy
}

// proxy is "proxy NUMBER", which connects one, or "proxy NUMBER hold|accept|leave" or
// "proxy NUMBER refuse WORDS" of its routes.
func proxy(ts *testscript.TestScript, neg bool, args []string) {
	f := ts.Value("proxies").(*fleet)
	p := f.all[args[0]]
	if p == nil {
		n, err := strconv.Atoi(args[0])
		ts.Check(err)
		ts.Check(f.publisher.Await(context.Background(), 0))
		p, err = simulated.Connect(f.publisher, simulated.Node(n))
		ts.Check(err)
		ts.Defer(p.Leave)
		f.all[args[0]] = p
	}
	switch strings.Join(args[1:min(2, len(args))], "") {
	case "hold":
		p.Hold()
	case "accept":
		p.Accept()
	case "leave":
		p.Leave()
	case "refuse":
		p.Refuse(discovery.RouteType, args[2])
	}
}
