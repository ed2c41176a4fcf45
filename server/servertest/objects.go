package servertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/server/admission"
	"github.com/pilot-api/pilot-api/store"
)

// Listed has the fields of a list or a table that tests read.
type Listed struct {
	Metadata metav1.ListMeta
	Items    []Object
	Rows     []struct{ Object Object }
}

func (l Listed) Names() []string {
	names := []string{}
	for _, o := range l.Items {
		names = append(names, o.Metadata.Name)
	}
	for _, row := range l.Rows {
		names = append(names, row.Object.Metadata.Name)
	}
	return names
}

func (w *World) Page(query string, headers ...string) Listed {
	w.Helper()
	var l Listed
	text := w.Want(http.StatusOK, "GET", RulesPath+"?"+query, "", headers...).Text
	if err := yaml.Unmarshal([]byte(text), &l); err != nil {
		w.Fatalf("%v in %s", err, text)
	}
	return l
}

const (
	MergePatch = "Content-Type: application/merge-patch+json"
	JsonPatch  = "Content-Type: application/json-patch+json"
)

const ApplyPatch = "Content-Type: application/apply-patch+yaml"

// Edge is a Gateway whose router receives the Secret a.
const Edge = `{"apiVersion":"networking.istio.io/v1","kind":"Gateway","metadata":{"name":"edge"},"spec":{"servers":[
{"port":{"number":443,"name":"https","protocol":"HTTPS"},"hosts":["*"],"tls":{"mode":"SIMPLE","credentialName":"a"}}]}}`

const Bound = `{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":"web"},"spec":{"hosts":["a.example"],"gateways":["edge"],
"http":[{"directResponse":{"status":204}}]}}`

func LargeRule(name string) string {
	return Rule(name, 100, "annotations:", "  payload: "+strings.Repeat("x", 100<<10), "  more: "+strings.Repeat("y", 100<<10))
}

// Plenty is enough time of processors for large objects.
func Plenty(o *server.Options) {
	o.Long, o.LongReads = admission.NewLong(100), admission.NewLongReads(100)
}

// Part returns an apply of a field of a rule.
func Part(name string) string {
	return fmt.Sprintf(`{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule","metadata":{"name":%q},"spec":{"precedence":7}}`, name)
}

// Transaction creates rules at one revision.
func (w *World) Transaction(names ...string) (revision int64) {
	w.Helper()
	var keys []schema.Key
	for _, name := range names {
		keys = append(keys, schema.Key{Kind: "RouteRule", Namespace: "default", Name: name})
	}
	return w.CreateAll(keys...)
}

// CreateAll creates rules and policies at one revision.
func (w *World) CreateAll(keys ...schema.Key) (revision int64) {
	w.Helper()
	var ops []store.Op
	for _, key := range keys {
		kind, _ := schema.KindByName(key.Kind)
		obj, err := schema.New(kind, metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, json.RawMessage(`{"destination":{"name":"reviews"}}`))
		if err != nil {
			w.Fatal(err)
		}
		ops = append(ops, store.Op{Verb: store.OpCreate, Object: obj})
	}
	done, err := w.Store.Txn(w.Context(), ops)
	if err != nil {
		w.Fatal(err)
	}
	return done[0].Revision()
}
