package schema

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestBookinfoExamples(t *testing.T) {
	const folder = "../examples/bookinfo-networking"
	files, err := filepath.Glob(folder + "/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 21 {
		t.Errorf("%d files", len(files))
	}
	readme := string(readFile(t, folder+"/README.md"))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if !strings.Contains(readme, "`"+name+"`") {
			t.Errorf("README.md does not say what %s does", name)
		}
		for _, doc := range Split(readFile(t, file), name) {
			objects, list, err := doc.Objects(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range list {
				t.Error(p)
			}
			for _, o := range objects {
				checkWritten(t, o, list)
			}
		}
	}
}

// TestOtherVersionsOfNetworking checks that an object is read in any version that is
// served, without a warning, and stored as v1.
func TestOtherVersionsOfNetworking(t *testing.T) {
	text := string(readFile(t, "../examples/bookinfo-networking/virtual-service-reviews-test-v2.yaml"))
	for _, version := range []string{"v1beta1", "v1alpha3"} {
		o, list := Decode([]byte(strings.Replace(text, "istio.io/v1", "istio.io/"+version, 1)), Options{})
		if len(list) > 0 {
			t.Errorf("%s: %v", version, list)
		}
		if o == nil || !strings.HasPrefix(string(o.JSON()), `{"apiVersion":"networking.istio.io/v1",`) {
			t.Fatalf("%s is not stored as v1", version)
		}
		shown := o.JSONIn(o.WrittenIn())
		if !strings.HasPrefix(string(shown), `{"apiVersion":"networking.istio.io/`+version+`",`) || len(shown) != o.LengthIn(version) {
			t.Errorf("in %s it is %s", version, shown)
		}
		again, list := Decode(shown, Options{})
		if again == nil || len(list) > 0 || again.WrittenIn() != version || !again.SameSpec(o) {
			t.Errorf("%s is read in the fast way as %v, %v", version, again, list)
		}
	}
}
