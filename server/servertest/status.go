package servertest

import (
	"encoding/json"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/internal/simulated"
)

// status has the fields of an object's status that tests read.
type status struct {
	Programmed struct{ Proxies, Running int }
	Conditions []metav1.Condition
}

func (s status) Condition(kind string) metav1.Condition {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

// Reason returns why the object is programmed or not.
func (s status) Reason() string { return s.Condition("Programmed").Reason }

func StatusIn(t *testing.T, object []byte) status {
	t.Helper()
	var o struct{ Status *status }
	if err := yaml.Unmarshal(object, &o); err != nil || o.Status == nil {
		t.Fatalf("no status: %v\n%s", err, object)
	}
	return *o.Status
}

// WithReviews returns a server with the service, whose proxies are simulated.
func WithReviews(t *testing.T) *World {
	t.Helper()
	w := Followed(t)
	w.Want(http.StatusCreated, "POST", "/apis/networking.istio.io/v1/namespaces/default/serviceentries", simulated.Reviews, AsYAML)
	w.Want(http.StatusOK, "GET", "/debug/problems", "")
	return w
}

func (w *World) Connect(n int) *simulated.Proxy {
	w.Helper()
	p, err := simulated.Connect(w.Discovery, simulated.Node(n))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(p.Leave)
	return p
}

// Until reads events until one has that resourceVersion (or any, for "") and that
// reason of Programmed.
func (w *Watching) Until(resourceVersion, reason string) status {
	w.T.Helper()
	for {
		f, ok := w.Next()
		if !ok {
			w.T.Fatalf("the watch ended before %s was %s: %v", resourceVersion, reason, w.Lines.Err())
		}
		var o Object
		if err := json.Unmarshal(f.Object, &o); err != nil {
			w.T.Fatal(err)
		}
		s := StatusIn(w.T, f.Object)
		if (resourceVersion == "" || o.Metadata.ResourceVersion == resourceVersion) && s.Reason() == reason {
			return s
		}
	}
}
