package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestLean keeps what only the server needs out of the command line: it is to
// be copied to many machines.
func TestLean(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	heavy := regexp.MustCompile(`^(go\.etcd\.io|github\.com/envoyproxy|google\.golang\.org/grpc|github\.com/prometheus|k8s\.io/client-go/kubernetes)(/|$)`)
	for _, pkg := range strings.Fields(string(out)) {
		if heavy.MatchString(pkg) {
			t.Errorf("istioctl depends on %s", pkg)
		}
	}
}
