package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/testbed"
)

// session is what a reader has who plays a page: a folder that looks like the
// repository, a shell, and the programs that were started.
type session struct {
	*World        // Its folder is examples/bookshop in home.
	home   string // The folder.
	shell  string // What the shell was told before.
}

// openSession is as if after make build, make envoy and make kubectl, and on a machine where
// nobody else listens to the ports of the page.
func openSession(t *testing.T) *session {
	t.Helper()
	p := programs(t)
	home := t.TempDir()
	s := &session{home: home, World: &World{Dir: filepath.Join(home, "examples", "bookshop")}}
	var err error
	if s.moved, err = elsewhere(); err != nil {
		t.Fatal(err)
	}
	if err := s.copyFiles(bookshop); err != nil {
		t.Fatal(err)
	}
	s.link(t, "bin", filepath.Dir(p.PilotAPI))
	s.link(t, ".tools", filepath.Dir(outside.Tool(t, "envoy")))
	outside.Tool(t, "kubectl")
	server := s.moved.Replace("127.0.0.1:8080")
	streams := s.moved.Replace("127.0.0.1:15010")
	s.Pilot = &Pilot{Server: &testbed.Server{URL: "http://" + server, XDS: streams}}
	s.write(t, "kubeconfig", fmt.Sprintf(kubeconfig, s.Pilot.URL))
	mistake, err := os.ReadFile(filepath.Join(root, "examples", "bookshop", "wrong.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, "examples/bookshop/wrong.yaml", string(mistake))
	s.shell = fmt.Sprintf("cd %s; export HOME=$PWD KUBECONFIG=$PWD/kubeconfig PILOT_LISTEN=%s PILOT_GRPC_LISTEN=%s ISTIOCTL_SERVER=%s\n",
		home, server, streams, s.Pilot.URL)
	// The programs outlive t.Context, so that they end in order.
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// kubectl finds a server without a file only on port 8080.
const kubeconfig = `
apiVersion: v1
kind: Config
clusters: [{name: pilot, cluster: {server: %q}}]
contexts: [{name: pilot, context: {cluster: pilot}}]
current-context: pilot
`

func (s *session) link(t *testing.T, name, target string) {
	t.Helper()
	target, err := filepath.Abs(target)
	if err == nil {
		err = os.Symlink(target, filepath.Join(s.home, name))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (s *session) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.home, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// play does what the reader would, and waits as the reader does.
func (s *session) play(t *testing.T, step step) {
	t.Helper()
	var err error
	switch command := step.command; {
	case slices.Contains([]string{"make build", "make envoy", "make kubectl"}, command):
	case command == "make bookshop":
		s.Shop, err = OpenShop(s.file("services"))
	case strings.HasPrefix(command, "export ") || strings.HasPrefix(command, "unset "):
		s.shell += command + "\n"
	case strings.HasPrefix(command, "bin/pilot-api "):
		if s.Pilot.Process, err = s.background("pilot-api", command); err == nil {
			err = s.Pilot.ready(t.Context())
		}
	case strings.HasPrefix(command, "envoy "):
		err = s.startEnvoy(t, strings.TrimSuffix(command, "&"))
	default:
		err = s.compare(t, step)
	}
	if err != nil {
		t.Fatalf("$ %s\n%v", step.command, err)
	}
}

// background runs a command until the session ends.
func (s *session) background(name, command string) (*testbed.Process, error) {
	p := testbed.NewProcess(s.home, name, "bash", "-c", s.shell+"exec "+command)
	return p, p.Start()
}

// startEnvoy moves the one port that the page leaves to istioctl.
func (s *session) startEnvoy(t *testing.T, command string) error {
	t.Helper()
	file := filepath.Join(s.home, ".demo", "envoy.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	admin := s.moved.Replace("15000")
	s.write(t, ".demo/envoy.yaml", strings.NewReplacer(
		"port_value: 15000", "port_value: "+admin,
		"port_value: 15010", "port_value: "+s.moved.Replace("15010"),
	).Replace(string(text)))
	sidecar := s.moved.Replace(node)
	s.Sidecar = &Sidecar{Node: sidecar, Admin: "http://127.0.0.1:" + admin, offered: s.Pilot.streamed(sidecar)}
	if s.Sidecar.Process, err = s.background("envoy", command+" --use-dynamic-base-id"); err != nil {
		return err
	}
	return s.Sidecar.live(t.Context())
}

// compare runs the command to its end and returns when all have taken what it
// did. Only what shows an error may fail.
func (s *session) compare(t *testing.T, step step) error {
	out, err := exec.CommandContext(t.Context(), "bash", "-c", s.shell+step.command).CombinedOutput()
	if fails := strings.Contains(step.output, "error: "); fails != (err != nil) || !step.shows(string(out)) {
		return fmt.Errorf("shown:\n%s\nis: %v\n%s", step.output, err, out)
	}
	if err := s.Pilot.Published(t.Context()); err != nil || s.Sidecar == nil {
		return err
	}
	return s.Sidecar.Settle(t.Context())
}
