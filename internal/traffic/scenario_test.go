package traffic_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/scenario"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/mesh"
)

// TestScenarios sends the requests of each archive of testdata/live through a real Envoy, and
// checks the effects of the fields that the archive is about. The objects of each archive are
// in a mesh with the services of services.yaml.
func TestScenarios(t *testing.T) {
	outside.Slow(t)
	scenarios, err := scenario.ReadAll("../../testdata/live")
	if err != nil {
		t.Fatal(err)
	}
	services, err := os.ReadFile("../../testdata/live/services.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scenarios {
		t.Run(s.Name, func(t *testing.T) {
			s.Objects = string(services) + "\n---\n" + s.Objects
			play(t, s)
		})
	}
}

// A stage is an Envoy and the backends of one scenario.
type stage struct {
	*envoytest.Envoy
	backends map[string]*echo
	asked    sync.Map
	atEdge   bool
}

func play(t *testing.T, s scenario.Scenario) {
	observable(t, s)
	st := &stage{backends: map[string]*echo{}}
	here := st.placed(t)
	settings, problems := mesh.ParseSettings([]byte(cmp.Or(here(s.Mesh), "accessLogFile: ''")), "mesh.yaml")
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	node := cmp.Or(s.Proxy, callerNode)
	st.atEdge = !strings.HasPrefix(node, "sidecar~")
	st.Envoy = startCompiled(t, settings, node, here(s.Objects))
	for _, step := range s.Steps {
		step.URL = here(step.URL)
		st.take(t, step)
	}
}

// observable checks that the objects set each field whose effect a step checks.
func observable(t *testing.T, s scenario.Scenario) {
	specs, err := scenario.ReadSpecs(s.Objects)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range s.Steps {
		for _, f := range step.Observes {
			if !specs.Set(f) {
				t.Errorf("%s: no %s has %s", step.Line, f.Kind, f.Path)
			}
		}
	}
}

// placed returns a function that fills in a text: ${certs} is a folder with two certificates
// and their keys, tls and other; any other ${name} is the port of a backend with that name.
func (st *stage) placed(t *testing.T) func(text string) string {
	certs := t.TempDir()
	for _, name := range []string{"tls", "other"} {
		selfsigned.Write(t, filepath.Join(certs, name+".crt"), filepath.Join(certs, name+".key"))
	}
	return func(text string) string {
		return scenario.Filled(text, func(name string) string {
			if name == "certs" {
				return certs
			}
			if st.backends[name] == nil {
				st.backends[name] = startEcho(t, name, certs, &st.asked)
			}
			return strconv.Itoa(st.backends[name].port())
		})
	}
}

// take sends the requests of a step, and checks all that the step expects.
func (st *stage) take(t *testing.T, s scenario.Step) {
	t.Helper()
	before := st.seen()
	answers := tally{from: map[string]int{}, peers: map[string]int{}}
	for i := range s.Times {
		got := st.reply(t, s, i)
		if got.status != s.Status {
			t.Errorf("%s: status %d %q", s.Line, got.status, got.body)
			return
		}
		answers.from[got.echo.Name]++
		answers.peers[got.echo.Peer]++
		for _, want := range s.Expect {
			if wrong := got.wrong(want); wrong != "" {
				t.Errorf("%s: %s=%s: %s", s.Line, want.Name, want.Value, wrong)
			}
		}
	}
	for _, want := range s.Expect {
		if wrong := st.wrong(t, want, s.Times, answers, before); wrong != "" {
			t.Errorf("%s: %s=%s: %s", s.Line, want.Name, want.Value, wrong)
		}
	}
}

// wrong returns how one answer differs from an expected value, or "". It ignores values that
// are about more than one answer.
func (r scenarioReply) wrong(want scenario.Pair) string {
	found := ""
	switch name := want.Name; {
	case name == "slow":
		if least, err := time.ParseDuration(want.Value); err != nil || r.took < least {
			return r.took.String()
		}
		return ""
	case name == "host":
		found = r.echo.Host
	case name == "path":
		found = r.echo.Path
	case name == "proto":
		found = r.echo.Proto
	case name == "body":
		found = r.body
	case name[0] == '>':
		found = strings.Join(r.echo.Header.Values(name[1:]), "|")
	case name[0] == '<':
		found = strings.Join(append(r.header.Values(name[1:]), r.trailer.Values(name[1:])...), "|")
	default:
		return ""
	}
	return unlike(want.Value, found)
}

// wrong returns how the answers of a step, the requests that backends received, or the Envoy's
// statistics differ from an expected value, or "".
func (st *stage) wrong(t *testing.T, want scenario.Pair, times int, answers tally, before map[string]int) string {
	switch want.Name {
	case "from":
		return answers.wrongFrom(want.Value)
	case "tries":
		sum := 0
		for name, n := range st.seen() {
			sum += n - before[name]
		}
		return unlike(want.Value, strconv.Itoa(sum))
	case "peers":
		return unlike(want.Value, strconv.Itoa(len(answers.peers)))
	case "mostly":
		if 2*answers.from[want.Value] <= times {
			return fmt.Sprint("found ", answers.from)
		}
	case "copies":
		st.backends[want.Value].await(t, before[want.Value]+times)
	case "stat":
		st.awaitStat(t, want.Value)
	case "slow", "host", "path", "proto", "body":
	default:
		if want.Name[0] != '>' && want.Name[0] != '<' {
			return "no test knows this word"
		}
	}
	return ""
}

// awaitStat waits until a counter or gauge is above 0. An Envoy may change it after the answer
// to the request.
func (st *stage) awaitStat(t *testing.T, name string) {
	t.Helper()
	above := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + `: [1-9]`)
	for deadline := time.Now().Add(30 * time.Second); !above.MatchString(st.AdminText("/stats")); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s is 0, or there is none", name)
		}
	}
}

// A tally counts the answers of each backend, and the requests of each connection to one.
type tally struct{ from, peers map[string]int }

func (a tally) wrongFrom(want string) string {
	names := slices.Sorted(maps.Keys(a.from))
	found := strings.Join(names, ",")
	if want == "one" && len(names) == 1 || want == "several" && len(names) > 1 {
		return ""
	}
	return unlike(want, found)
}

// unlike says what was found, or returns "" if that is as wanted. A wanted text that begins
// with ~ is a regular expression.
func unlike(want, found string) string {
	pattern, isPattern := strings.CutPrefix(want, "~")
	if isPattern && regexp.MustCompile(pattern).MatchString(found) || !isPattern && found == want {
		return ""
	}
	return "found " + strconv.Quote(found)
}
