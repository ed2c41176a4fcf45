package main

import (
	"os/exec"
	"strings"
	"testing"

	apiversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// TestVersion: kubectl takes only semantic versions, with or without make.
func TestVersion(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "make", "-s", "--eval", "show-version: ; @echo '$(VERSION)'", "show-version")
	cmd.Dir = outside.Root(t)
	made, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{versionInfo().GitVersion, strings.TrimSpace(string(made))} {
		if _, err := apiversion.ParseSemantic(v); err != nil || !strings.HasPrefix(v, "v") {
			t.Errorf("%q: %v", v, err)
		}
	}
}
