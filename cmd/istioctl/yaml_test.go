package main

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
)

// TestCharactersThatYAMLHasNoPlaceFor are shown escaped, so that what is shown can be
// read back, and make no difference to what is stored.
func TestCharactersThatYAMLHasNoPlaceFor(t *testing.T) {
	const text = "\x01\x1f\x7f\u0085\u009f\u2028\ufeff\ufffe\u202e\u00ad\U000e0041😀 end"
	live, _ := clitest.Followed(t.Cleanup)
	api := httptest.NewServer(live.Handler())
	t.Cleanup(api.Close)
	object, err := json.Marshal(map[string]any{
		"apiVersion": "config.istio.io/v1alpha2", "kind": "RouteRule",
		"metadata": map[string]any{"name": "odd", "annotations": map[string]string{"text": text}},
		"spec":     map[string]any{"destination": map[string]any{"name": "reviews"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if out, errs, code := clitest.Run(t, api.URL, string(object), "apply", "-f", "-"); code != cli.ExitDone {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	shown, errs, code := clitest.Run(t, api.URL, "", "get", "rr", "odd", "-o", "yaml")
	var back struct {
		Metadata struct{ Annotations map[string]string }
	}
	if err := yaml.Unmarshal([]byte(shown), &back); code != cli.ExitDone || err != nil || back.Metadata.Annotations["text"] != text {
		t.Errorf("exit %d, %v: %q in %s%s", code, err, back.Metadata.Annotations["text"], shown, errs)
	}
	file := filepath.Join(t.TempDir(), "odd.yaml")
	if err := os.WriteFile(file, []byte(shown), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"diff", "-f", file}, {"history", "rr", "odd", "-o", "yaml"}, {"describe", "rr", "odd", "-o", "yaml"}} {
		if out, errs, code := clitest.Run(t, api.URL, "", args...); code != cli.ExitDone {
			t.Errorf("%v: exit %d: %s%s", args, code, out, errs)
		}
	}
	if out, errs, code := clitest.Run(t, api.URL, "", "diff", "rr", "odd", "--revision", "1"); code != 1 {
		t.Errorf("diff with nothing: exit %d: %s%s", code, out, errs)
	}
}
