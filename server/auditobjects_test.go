package server_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/security/audit"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/server/servertest"
)

// policyOf returns a policy with one rule.
func policyOf(t *testing.T, rule string) *audit.Policy {
	t.Helper()
	policy, err := audit.ParsePolicy([]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{" + rule + "}]"))
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// TestAuditHasObjects checks the objects of events at both levels: of every way to write, in
// every format.
func TestAuditHasObjects(t *testing.T) {
	account := &core.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot", Namespace: "default"}}
	account.SetGroupVersionKind(core.SchemeGroupVersion.WithKind("ServiceAccount"))
	scheme := runtime.NewScheme()
	if err := core.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	binary, err := runtime.Encode(protobuf.NewSerializer(scheme, scheme), account)
	if err != nil {
		t.Fatal(err)
	}
	long := servertest.Rule("long", 1) + "# " + strings.Repeat("x", audit.MostObject) + "\n"
	type want struct{ request, response string } // what the objects have; - for no object, ~ for one that is too long
	steps := []struct {
		code               int
		method, path, body string
		headers            []string
		want
	}{
		{201, "POST", servertest.RulesPath, servertest.Rule("a", 1), []string{servertest.AsYAML}, want{`"weight":1`, `"resourceVersion"`}},
		{409, "POST", servertest.RulesPath, servertest.Rule("a", 7), []string{servertest.AsYAML}, want{`"weight":7`, `"reason":"AlreadyExists"`}},
		{422, "POST", servertest.RulesPath, servertest.Rule("a", -7), []string{servertest.AsYAML}, want{"-", `"kind":"Status"`}},
		{400, "POST", servertest.RulesPath, `{`, []string{servertest.AsJSON}, want{"-", `"kind":"Status"`}},
		{200, "PUT", servertest.RulesPath + "/a", servertest.Rule("a", 2), []string{servertest.AsYAML, "Accept: application/yaml"}, want{`"weight":2`, `"weight":2`}},
		{200, "PATCH", servertest.RulesPath + "/a", `{"spec":{"precedence":3}}`, []string{"Content-Type: application/merge-patch+json"}, want{`{"spec":{"precedence":3}}`, `"precedence":3`}},
		{200, "PATCH", servertest.RulesPath + "/a", `[{"op":"replace","path":"/spec/precedence","value":4}]`, []string{"Content-Type: application/json-patch+json"}, want{`[{"op":"replace"`, `"precedence":4`}},
		{201, "PATCH", servertest.RulesPath + "/b?fieldManager=me", servertest.Rule("b", 5), []string{"Content-Type: application/apply-patch+yaml"}, want{`"weight":5`, `"managedFields"`}},
		{201, "POST", servertest.Transactions, servertest.Transaction(servertest.RuleOp("create", "c", 6)), []string{servertest.AsJSON}, want{`"precedence":6`, `"results"`}},
		{201, "POST", servertest.Rollbacks, `{"apiVersion":"registry.istio.io/v1","kind":"Rollback","spec":{"revision":2,"namespace":"default"}}`, []string{servertest.AsJSON}, want{`"revision":2`, `"results"`}},
		{200, "DELETE", servertest.RulesPath + "/a", `{"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":0}`, []string{servertest.AsJSON}, want{`"kind":"DeleteOptions"`, `"name":"a"`}},
		{201, "POST", servertest.RulesPath + "?dryRun=All", servertest.Rule("d", 8), []string{servertest.AsYAML, "Accept: application/json;as=Table;v=v1;g=meta.k8s.io"}, want{`"weight":8`, `"kind":"Table"`}},
		{201, "POST", servertest.RulesPath, long, []string{servertest.AsYAML}, want{"~", `"name":"long"`}},
		{201, "POST", "/api/v1/namespaces/default/serviceaccounts", string(binary), []string{"Content-Type: " + runtime.ContentTypeProtobuf}, want{`"name":"robot"`, `"name":"robot"`}},
		{200, "DELETE", servertest.RulesPath, "", nil, want{"-", `"items"`}},
		{200, "GET", servertest.RulesPath, "", nil, want{"-", `"items":[]`}},
		{404, "GET", servertest.RulesPath + "/a", "", nil, want{"-", `"reason":"NotFound"`}},
		{200, "GET", "/version", "", nil, want{"-", "-"}},
	}
	for _, level := range []string{audit.LevelRequest, audit.LevelRequestResponse} {
		for _, strict := range []bool{false, true} {
			log, events := auditLog(t, audit.Options{File: filepath.Join(t.TempDir(), "audit.log"), Strict: strict, Policy: policyOf(t, "level: "+level)})
			w := servertest.Start(t, func(o *server.Options) { o.Audit = log })
			for i, step := range steps {
				w.Want(step.code, step.method, step.path, step.body, append(step.headers, fmt.Sprintf("X-Request-Id: request-%d", i))...)
			}
			seen := map[string]audit.Event{}
			for _, e := range events() {
				if e.Stage == audit.StageComplete {
					seen[e.ID] = e
				}
			}
			for i, step := range steps {
				e := seen[fmt.Sprintf("request-%d", i)]
				if level == audit.LevelRequest {
					step.response = "-"
				}
				for what, pair := range map[string][2]string{"request": {string(e.RequestObject), step.request}, "response": {string(e.ResponseObject), step.response}} {
					got, want := pair[0], pair[1]
					if (want == "-" || want == "~") != (got == "") || want != "-" && want != "~" && !strings.Contains(got, want) {
						t.Errorf("%s, strict: %v, %s %s: the %s is %q, want %q", level, strict, step.method, step.path, what, got, want)
					}
				}
				if (e.Annotations["audit.k8s.io/truncated"] == "true") != (step.request == "~") || e.Level != level {
					t.Errorf("%s %s: %s, %v", step.method, step.path, e.Level, e.Annotations)
				}
			}
		}
	}
}

// TestStrictLogWithLongAnswers checks that an answer that is too long for its event arrives whole,
// and that it does not if its event cannot be written.
func TestStrictLogWithLongAnswers(t *testing.T) {
	policy := policyOf(t, "level: RequestResponse")
	log, events := auditLog(t, audit.Options{File: filepath.Join(t.TempDir(), "audit.log"), Strict: true, Policy: policy})
	w := servertest.Start(t, func(o *server.Options) { o.Audit = log })
	for i := range 3 {
		w.Create(fmt.Sprint("long-", i), "annotations: {note: z"+strings.Repeat("x", audit.MostObject)+"}")
	}
	w.Create("short", "")
	for path, n := range map[string]int{servertest.RulesPath: 4, servertest.RulesPath + "?fieldSelector=metadata.name%3Dshort": 1} {
		var list struct{ Items []any }
		if a := w.Want(200, "GET", path, ""); json.Unmarshal([]byte(a.Text), &list) != nil || len(list.Items) != n {
			t.Errorf("%s: %d items in %d bytes, want %d", path, len(list.Items), len(a.Text), n)
		}
	}
	for _, e := range events() {
		if isLong := e.Path == servertest.RulesPath && e.Verb == "list" && e.Annotations != nil; isLong && e.ResponseObject != nil {
			t.Errorf("%+v", e)
		}
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no /dev/full here")
	}
	full, _ := auditLog(t, audit.Options{File: "/dev/full", Strict: true, Policy: policy})
	w = servertest.Start(t, func(o *server.Options) { o.Audit = full })
	w.Want(http.StatusInsufficientStorage, "GET", servertest.RulesPath, "")
}

// TestWatchHasTwoEvents checks that a watch has an event when it begins and one when it ends,
// also in a log that is not strict, and that a refused one has only the last.
func TestWatchHasTwoEvents(t *testing.T) {
	for _, strict := range []bool{false, true} {
		log, events := auditLog(t, audit.Options{File: filepath.Join(t.TempDir(), "audit.log"), Strict: strict, Policy: policyOf(t, "level: RequestResponse")})
		w := servertest.Start(t, func(o *server.Options) { o.Audit = log })
		w.Want(200, "GET", servertest.RulesPath+"?watch=true&timeoutSeconds=1", "", "X-Request-Id: kind")
		w.Want(200, "GET", "/apis/registry.istio.io/v1/watch?kinds=RouteRule&timeoutSeconds=1", "", "X-Request-Id: kinds")
		w.Want(400, "GET", servertest.RulesPath+"?watch=true&resourceVersion=x", "", "X-Request-Id: refused")
		stages := map[string]string{}
		for _, e := range events() {
			stages[e.ID] += " " + e.Stage
			if e.ResponseObject != nil {
				t.Errorf("%s has an object: %s", e.ID, e.ResponseObject)
			}
		}
		want := map[string]string{"kind": " ResponseStarted ResponseComplete", "kinds": " ResponseStarted ResponseComplete", "refused": " ResponseComplete"}
		if fmt.Sprint(stages) != fmt.Sprint(want) {
			t.Errorf("strict: %v: %v, want %v", strict, stages, want)
		}
	}
}

// TestNothingSecretIsWrittenDown plants private keys and tokens in every way to write, at every
// level, and looks for them in the audit log, the log of the server, answers and metrics.
func TestNothingSecretIsWrittenDown(t *testing.T) {
	certificate, key := selfsigned.NewAuthority(t, t.TempDir()).PEM(t, "shop.example.com")
	for _, level := range []string{audit.LevelMetadata, audit.LevelRequest, audit.LevelRequestResponse} {
		for _, strict := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s strict=%v", level, strict), func(t *testing.T) { plantSecrets(t, level, strict, certificate, key) })
		}
	}
}

func plantSecrets(t *testing.T, level string, strict bool, certificate, key string) {
	file := filepath.Join(t.TempDir(), "audit.log")
	var text lockedBuffer
	log, events := auditLog(t, audit.Options{File: file, Strict: strict, Policy: policyOf(t, "level: "+level)})
	w := governed(t, func(o *server.Options) {
		o.Audit, o.Log = log, slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	object := func(namespace, name string) string {
		out, err := json.Marshal(map[string]any{
			"apiVersion": "registry.istio.io/v1", "kind": "Secret", "metadata": map[string]string{"name": name, "namespace": namespace},
			"spec": map[string]string{"certificate": certificate, "privateKey": key},
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	const secrets = "/apis/registry.istio.io/v1/namespaces/shop/secrets"
	const accounts = "/api/v1/namespaces/shop/serviceaccounts"
	var answers strings.Builder
	send := func(method, path, body string, headers ...string) string {
		a := w.Do(method, path, body, headers...)
		answers.WriteString(a.Text)
		return a.Text
	}
	secret := object("shop", "tls")
	merge, jsonPatch, apply := "Content-Type: application/merge-patch+json", "Content-Type: application/json-patch+json", "Content-Type: application/apply-patch+yaml"
	quoted, err := json.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	applied, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	// Secrets, by every verb.
	send("POST", secrets, secret, ed, servertest.AsJSON)
	send("POST", secrets, secret, ed, servertest.AsJSON)
	send("PUT", secrets+"/tls", secret, ed, servertest.AsJSON, "Accept: application/yaml")
	send("PUT", secrets+"/tls", strings.Replace(secret, "PRIVATE KEY", "BROKEN KEY", 2), ed, servertest.AsJSON)
	send("PATCH", secrets+"/tls", `{"spec":{"privateKey":7}}`, ed, merge)
	send("PATCH", secrets+"/tls", `{"spec":{"privateKey":`+string(quoted)+`},"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":`+string(applied)+`}}}`, ed, merge)
	send("PATCH", secrets+"/tls", `[{"op":"replace","path":"/spec/privateKey","value":`+string(quoted)+`}]`, ed, jsonPatch)
	send("PATCH", secrets+"/tls?fieldManager=me&force=true", secret, ed, apply)
	send("GET", secrets+"/tls", "", ed)
	send("GET", secrets, "", ed)
	send("GET", secrets+"/tls/history", "", ed)
	send("DELETE", secrets, secret, ed, servertest.AsJSON)
	send("DELETE", secrets, "", ed)
	send("POST", "/apis/registry.istio.io/v1/namespaces/bank/secrets", object("bank", "tls"), ed, servertest.AsJSON)
	// Among other operations.
	send("POST", servertest.Transactions, servertest.Transaction(`{"verb":"create","object":`+secret+`}`, `{"verb":"create","object":`+ruleOf("shop", "own")+`}`), ed, servertest.AsJSON)
	for _, op := range []string{`{"verb":"update","object":` + secret + `}`, `{"verb":"apply","object":` + secret + `}`, `{"verb":"apply","fieldManager":"me","force":true,"object":` + secret + `}`,
		`{"verb":"patch","target":{"kind":"Secret","namespace":"shop","name":"tls"},"patch":{"spec":{"privateKey":` + string(quoted) + `}}}`,
		`{"verb":"patch","target":{"kind":"Secret","namespace":"shop","name":"tls"},"patchType":"application/json-patch+json","patch":[{"op":"replace","path":"/spec/privateKey","value":` + string(quoted) + `}]}`,
		`{"verb":"delete","target":{"kind":"Secret","namespace":"shop","name":"tls"}}`, `{"verb":"create","object":` + object("bank", "tls") + `}`} {
		send("POST", servertest.Transactions, servertest.Transaction(op), ed, servertest.AsJSON)
	}
	send("POST", servertest.Rollbacks, `{"apiVersion":"registry.istio.io/v1","kind":"Rollback","spec":{"revision":1,"namespace":"shop"}}`, ed, servertest.AsJSON)
	send("POST", servertest.Rollbacks, `{"apiVersion":"registry.istio.io/v1","kind":"Rollback","spec":{"revision":7,"namespace":"shop"}}`, ed, servertest.AsJSON)
	// In other objects, where they do not belong.
	rules := rulesIn("shop")
	for _, body := range []string{strings.Replace(secret, "Secret", "Secrett", 1), strings.Replace(secret, "Secret", "RouteRule", 1),
		strings.Replace(ruleOf("shop", "x"), `"metadata":{`, `"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":`+string(applied)+`,"note":`+string(quoted)+`},`, 1)} {
		send("POST", rules, body, ed, servertest.AsJSON)
	}
	send("PATCH", rules+"/own", `{"metadata":{"annotations":{"note":`+string(quoted)+`}}}`, ed, merge)
	send("PATCH", rules+"/own", `{"metadata":{"annotations":{"note":"Authorization: Bearer planted-token-in-a-note"}}}`, ed, merge)
	send("PATCH", rules+"/own", `{"spec":{"privateKey":`+string(quoted)+`}}`, ed, merge)
	// Tokens.
	send("POST", accounts, `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"robot","namespace":"shop"}}`, root, servertest.AsJSON)
	var issued struct{ Status struct{ Token string } }
	eventually(w, root, 200, accounts+"/robot")
	reply := w.Want(201, "POST", accounts+"/robot/token", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`, root, servertest.AsJSON)
	if err := json.Unmarshal([]byte(reply.Text), &issued); err != nil || issued.Status.Token == "" {
		t.Fatalf("no token in %s: %v", reply.Text, err)
	}
	send("GET", rules, "", "Authorization: Bearer "+issued.Status.Token)
	send("GET", "/debug/problems", "", ed)
	send("GET", "/metrics", "", root)
	send("GET", rules, "", "Authorization: Bearer planted-token-that-is-wrong")
	send("GET", rules, "", "Authorization: Basic planted-token-that-is-wrong")
	events()
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// A line from the middle of the key is in each way to write it.
	line := strings.Split(key, "\n")[1][:40]
	planted := []string{issued.Status.Token, line, base64.StdEncoding.EncodeToString([]byte(key))[60:100], "planted-token-that-is-wrong", strings.TrimPrefix(ed, "Authorization: Bearer "), strings.TrimPrefix(root, "Authorization: Bearer ")}
	notes := "planted-token-in-a-note" // The author of a rule has put it where all may read it.
	for place, found := range map[string]string{"the audit log": string(written), "the log": text.String(), "an answer": answers.String()} {
		for _, secret := range planted {
			if strings.Contains(found, secret) && !(place == "an answer" && secret == line) {
				t.Errorf("%s is in %s", secret, place)
			}
		}
		if place != "an answer" && strings.Contains(found, notes) {
			t.Errorf("%s is in %s", notes, place)
		}
	}
	if !strings.Contains(string(written), `"resource":"secrets"`) || text.String() == "" {
		t.Error("nothing was written down")
	}
	if level != audit.LevelMetadata && (!strings.Contains(string(written), `"kind":"Secret"`) || !strings.Contains(string(written), audit.LeftOut)) {
		t.Error("no object was written down")
	}
}
