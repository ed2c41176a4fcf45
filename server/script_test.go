package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/memory"
)

// TestCurl uses the API with nothing but curl.
func TestCurl(t *testing.T) {
	outside.Slow(t)
	withTool(t, "curl")
	runScripts(t, "testdata/script/curl")
}

// TestKubectl uses the server with an unmodified kubectl.
func TestKubectl(t *testing.T) {
	outside.Slow(t)
	withTool(t, "kubectl")
	runScripts(t, "testdata/script/kubectl")
}

// TestKubectlSeesStatus does so where objects have a status, with one server for
// all scripts.
func TestKubectlSeesStatus(t *testing.T) {
	outside.Slow(t)
	withTool(t, "kubectl")
	url := servertest.StartWhole(t)
	runScriptsAt(t, "testdata/script/status", func(*testscript.Env) string { return url })
}

// withTool puts a program where scripts find it.
func withTool(t *testing.T, name string) {
	t.Helper()
	t.Setenv("PATH", filepath.Dir(outside.Tool(t, name))+string(filepath.ListSeparator)+os.Getenv("PATH"))
}

// runScripts gives every script a server of its own, at $SERVER.
func runScripts(t *testing.T, dir string) {
	runScriptsAt(t, dir, func(env *testscript.Env) string {
		mem := memory.New()
		ts := httptest.NewServer(server.New(server.Options{
			Store: store.Strict(mem), Reads: mem,
			Version: version.Info{Major: "1", Minor: "0", GitVersion: "v1.0.0"},
		}).Handler())
		env.Defer(ts.Close)
		return ts.URL
	})
}

// runScriptsAt gives every script the server whose URL at returns.
func runScriptsAt(t *testing.T, dir string, at func(*testscript.Env) string) {
	testscript.Run(t, testscript.Params{
		Dir: dir,
		Setup: func(env *testscript.Env) error {
			url := at(env)
			env.Setenv("SERVER", url)
			env.Setenv("API", url+"/apis/config.istio.io/v1alpha2")
			env.Setenv("HOME", env.WorkDir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"curl": curl, "field": field, "watched": watched, "until": until,
		},
	})
}

// watched implements "watched N": it waits until N watches run.
func watched(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: watched N")
	}
	for text := ""; !strings.Contains(text, "\npilot_watchers "+args[0]+"\n"); {
		resp, err := http.Get(ts.Getenv("SERVER") + "/metrics")
		ts.Check(err)
		body, err := io.ReadAll(resp.Body)
		ts.Check(cmp.Or(err, resp.Body.Close()))
		text = string(body)
	}
}

// until implements "until FILE REGEXP": it waits until a file that another process
// writes matches.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: until FILE REGEXP")
	}
	wanted, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	for text := []byte(nil); !wanted.Match(text); {
		text, err = os.ReadFile(ts.MkAbs(args[0]))
		if err != nil && !os.IsNotExist(err) {
			ts.Check(err)
		}
		time.Sleep(10 * time.Millisecond) // between two looks
	}
}

// curl implements "curl CODE ARG…": it runs the real curl, and fails if the server
// answers with another status code. The body goes to stdout.
func curl(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: curl CODE ARG…")
	}
	ts.Check(ts.Exec("curl", append([]string{"-sS", "-o", "body", "-w", "%{http_code}"}, args[1:]...)...))
	code, body := ts.ReadFile("stdout"), ts.ReadFile("body")
	if code != args[0] {
		ts.Fatalf("got status %s, want %s:\n%s", code, args[0], body)
	}
	fmt.Fprint(ts.Stdout(), body)
}

// field implements "field NAME JSONPATH [VALUE]": it stores a field of the JSON or
// YAML on stdout in a variable, and compares it with the value, if there is one.
func field(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: field NAME JSONPATH [VALUE]")
	}
	var doc any
	ts.Check(yaml.Unmarshal([]byte(ts.ReadFile("stdout")), &doc))
	path := jsonpath.New(args[0])
	ts.Check(path.Parse("{" + args[1] + "}"))
	var text strings.Builder
	if err := path.Execute(&text, doc); err != nil {
		ts.Fatalf("%v in %s", err, ts.ReadFile("stdout"))
	}
	if len(args) == 3 && text.String() != args[2] {
		ts.Fatalf("%s is %q, want %q", args[1], text.String(), args[2])
	}
	ts.Setenv(args[0], text.String())
	fmt.Fprint(ts.Stdout(), ts.ReadFile("stdout"))
}
