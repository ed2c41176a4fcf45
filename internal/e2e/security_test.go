package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// securityBlock is a block of docs/security.md: a file, or commands on one of two machines.
var securityBlock = regexp.MustCompile("(?s)```(yaml|console) ([a-z.]+)\n(.*?)```")

// TestSecurityPage does what a reader of docs/security.md would do on two machines, which are
// network namespaces here.
func TestSecurityPage(t *testing.T) {
	outside.Slow(t)
	for _, tool := range []string{"ip", "openssl", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %s is not installed, so the page about security is not tried", tool)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root can make network namespaces, so the page about security is not tried")
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## In ten minutes\n")
	section, _, _ = strings.Cut(section, "\n## ")
	p := programs(t)
	home := t.TempDir()
	t.Cleanup(func() {
		if text, err := os.ReadFile(filepath.Join(home, "background.log")); err == nil && t.Failed() {
			t.Logf("what runs in the background said:\n%s", text)
		}
	})
	machines := connectMachines(t, home, filepath.Dir(p.PilotAPI)+":"+filepath.Dir(outside.Tool(t, "envoy")))
	commands := 0
	for _, block := range securityBlock.FindAllStringSubmatch(section, -1) {
		if block[1] == "yaml" {
			if err := os.WriteFile(filepath.Join(home, block[2]), []byte(block[3]), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for _, step := range readSteps("```console\n" + block[3] + "```") {
			commands++
			if got := machines[block[2]].do(t, step.command); step.output != "" && !step.shows(got) {
				t.Fatalf("$ %s\n%s\nwant\n%s", step.command, got, step.output)
			}
		}
	}
	if commands < 18 {
		t.Errorf("found only %d commands", commands)
	}
	written, err := os.ReadFile(filepath.Join(home, "audit.log"))
	if err != nil || !strings.Contains(string(written), `"user":"system:serviceaccount:shop:deployer"`) || !strings.Contains(string(written), `"code":403`) {
		t.Errorf("audit log: %v\n%s", err, written)
	}
}

// machine is a shell in a network namespace.
type machine struct {
	in  io.Writer
	out *bufio.Reader
}

// connectMachines makes two network namespaces with a cable between them, each with a shell.
func connectMachines(t *testing.T, home, path string) map[string]*machine {
	t.Helper()
	unique := fmt.Sprintf("pa%d", os.Getpid())
	names := map[string]string{"server": unique + "s", "proxy": unique + "p"}
	ip := func(args ...string) {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Skipf("SKIPPED: ip %s: %v: %s; so the page about security is not tried", strings.Join(args, " "), err, out)
		}
	}
	for _, ns := range names {
		ip("netns", "add", ns)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
		ip("-n", ns, "link", "set", "lo", "up")
	}
	ip("link", "add", names["server"], "netns", names["server"], "type", "veth", "peer", "name", names["proxy"], "netns", names["proxy"])
	out := map[string]*machine{}
	for machine, address := range map[string]string{"server": "10.77.0.1/24", "proxy": "10.77.0.2/24"} {
		ns := names[machine]
		ip("-n", ns, "addr", "add", address, "dev", ns)
		ip("-n", ns, "link", "set", ns, "up")
		out[machine] = openMachine(t, ns, home, path)
	}
	return out
}

func openMachine(t *testing.T, ns, home, path string) *machine {
	t.Helper()
	cmd := exec.Command("ip", "netns", "exec", ns, "bash")
	cmd.Dir = home
	cmd.Env = []string{"PATH=" + path + ":" + os.Getenv("PATH"), "HOME=" + home}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Programs that the shell started in the background run in the same namespace.
		pids, _ := exec.Command("ip", "netns", "pids", ns).Output()
		_ = exec.Command("kill", append([]string{"-9"}, strings.Fields(string(pids))...)...).Run()
		_ = cmd.Wait()
		_ = write.Close()
		_ = read.Close()
	})
	return &machine{in, bufio.NewReader(read)}
}

// do runs a command and returns what it says.
func (m *machine) do(t *testing.T, command string) string {
	t.Helper()
	const end = "--- the command has ended ---"
	if strings.HasSuffix(command, "&") {
		command = strings.TrimSuffix(command, "&") + " >> background.log 2>&1 &"
	}
	fmt.Fprintf(m.in, "%s\necho '%s'\n", command, end)
	said := make(chan string, 1)
	go func() {
		var text strings.Builder
		for {
			line, err := m.out.ReadString('\n')
			if err != nil || strings.TrimSpace(line) == end {
				said <- text.String()
				return
			}
			text.WriteString(line)
		}
	}()
	select {
	case text := <-said:
		return text
	case <-time.After(time.Minute):
		t.Fatalf("$ %s\nhas not ended after a minute", command)
		return ""
	}
}
