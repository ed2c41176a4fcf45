package actions_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/server"
)

// TestTransaction does all verbs at one revision, with results in the order of
// operations.
func TestTransaction(t *testing.T) {
	w := servertest.Start(t)
	for _, name := range []string{"updated", "patched", "deleted", "applied"} {
		w.Create(name)
	}
	body := servertest.Transaction(
		servertest.RuleOp("create", "created", 100), servertest.RuleOp("update", "updated", 50), servertest.RuleOp("apply", "applied", 50), servertest.RuleOp("apply", "new", 50),
		servertest.Named("patch", "patched", `,"patch":{"spec":{"precedence":7}}`), servertest.Named("delete", "deleted", ""))
	dry := w.Want(http.StatusCreated, "POST", servertest.Transactions+"?dryRun=All", body, servertest.AsJSON).Results(t)
	w.Want(http.StatusNotFound, "GET", servertest.RulesPath+"/created", "")
	got := w.Want(http.StatusCreated, "POST", servertest.Transactions, body, servertest.AsJSON).Results(t)
	if len(got.Results) != 6 || len(dry.Results) != 6 {
		t.Fatalf("%+v and %+v", got, dry)
	}
	for i, r := range got.Results {
		if r.Object.Metadata.ResourceVersion != got.Revision || r.Verb != dry.Results[i].Verb {
			t.Errorf("result %d: %+v of %s", i, r, got.Revision)
		}
	}
	w.Want(http.StatusNotFound, "GET", servertest.RulesPath+"/deleted", "")
	if text := w.Want(http.StatusOK, "GET", servertest.RulesPath+"/patched", "").Text; !strings.Contains(text, `"precedence":7`) {
		t.Error(text)
	}
	w.Want(http.StatusCreated, "POST", servertest.Transactions, "spec:\n  operations:\n  - {verb: delete, target: {kind: RouteRule, namespace: default, name: new}}\n", servertest.AsYAML)
}

// TestTransactionRefused checks that an error names its operation, and that nothing
// is done.
func TestTransactionRefused(t *testing.T) {
	w := servertest.Start(t)
	there := w.Create("there")
	good := servertest.RuleOp("create", "good", 100)
	for _, c := range []struct {
		name, body string
		code       int
		says       string
	}{
		{"no text", "", http.StatusBadRequest, "empty"},
		{"no JSON", "{", http.StatusBadRequest, "line 1"},
		{"no spec", `{}`, http.StatusBadRequest, "spec: required"},
		{"nothing", `{"spec":{}}`, http.StatusBadRequest, "at least one"},
		{"unknown field", `{"spec":{"operations":[],"opertions":[]}}`, http.StatusBadRequest, "opertions"},
		{"another kind", `{"kind":"Rollback","spec":{"operations":[` + good + `]}}`, http.StatusBadRequest, "Transaction"},
		{"unknown verb", servertest.Transaction(good, `{"verb":"upsert"}`), http.StatusBadRequest, "spec.operations[1]: verb: must be create"},
		{"object and name", servertest.Transaction(good, `{"verb":"create","object":{},"target":{}}`), http.StatusBadRequest, "spec.operations[1]: create takes"},
		{"delete without a name", servertest.Transaction(good, `{"verb":"delete","target":{"kind":"RouteRule"}}`), http.StatusBadRequest, "spec.operations[1]: target.namespace: required"},
		{"delete of an object", servertest.Transaction(good, servertest.Named("delete", "there", `,"object":{}`)), http.StatusBadRequest, "spec.operations[1]: delete takes"},
		{"no such kind", servertest.Transaction(good, `{"verb":"delete","target":{"kind":"Pod","namespace":"a","name":"b"}}`), http.StatusBadRequest, `spec.operations[1]: target.kind: there is no kind "Pod"; there are DestinationPolicy`},
		{"patch of a misspelt kind", servertest.Transaction(good, `{"verb":"patch","target":{"kind":"RouteRul","namespace":"a","name":"b"},"patch":{}}`), http.StatusBadRequest, "did you mean RouteRule?"},
		{"bad object", servertest.Transaction(good, strings.Replace(servertest.RuleOp("create", "bad", 100), `"labels"`, `"wait"`, 1)), http.StatusUnprocessableEntity, "spec.operations[1].object.spec.route[0].wait"},
		{"exists", servertest.Transaction(good, servertest.RuleOp("create", "there", 100)), http.StatusConflict, "spec.operations[1]: routerules.config.istio.io \"there\" already exists"},
		{"is not there", servertest.Transaction(good, servertest.RuleOp("update", "none", 100)), http.StatusNotFound, "spec.operations[1]"},
		{"stale", servertest.Transaction(servertest.RuleOp("update", "there", 50, `"resourceVersion":"1"`), good), http.StatusConflict, "spec.operations[0]"},
		{"stale delete", servertest.Transaction(good, servertest.Named("delete", "there", `,"preconditions":{"resourceVersion":"1"}`)), http.StatusConflict, "spec.operations[1]"},
		{"patch of nothing", servertest.Transaction(good, servertest.Named("patch", "none", `,"patch":{}`)), http.StatusNotFound, "spec.operations[1]"},
		{"patch that does not fit", servertest.Transaction(good, servertest.Named("patch", "there", `,"patchType":"application/json-patch+json","patch":[{"op":"remove","path":"/spec/none"}]`)), http.StatusUnprocessableEntity, "spec.operations[1]"},
		{"patch to another name", servertest.Transaction(good, servertest.Named("patch", "there", `,"patch":{"metadata":{"name":"other"}}`)), http.StatusBadRequest, `spec.operations[1]: the URL and the body disagree on metadata.name`},
		{"unknown field of an operation", servertest.Transaction(good, servertest.Named("delete", "there", `,"nmae":"there"`)), http.StatusBadRequest, `spec.operations[1]: must be`},
		{"no operation", servertest.Transaction(good, `"delete"`), http.StatusBadRequest, `spec.operations[1]: must be`},
		{"unknown patch", servertest.Transaction(good, servertest.Named("patch", "there", `,"patchType":"strategic","patch":{}`)), http.StatusBadRequest, "patchType: must be"},
		{"twice the same", servertest.Transaction(good, servertest.RuleOp("apply", "good", 50)), http.StatusUnprocessableEntity, "same object"},
		{"without a name", servertest.Transaction(strings.Replace(good, `"name":"good"`, `"generateName":"a-"`, 1)), http.StatusBadRequest, "metadata.name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := w.Want(c.code, "POST", servertest.Transactions, c.body, servertest.AsJSON).Text
			if plain := strings.ReplaceAll(text, `\"`, `"`); !strings.Contains(plain, c.says) {
				t.Errorf("does not say %q: %s", c.says, text)
			}
			w.Want(http.StatusNotFound, "GET", servertest.RulesPath+"/good", "")
		})
	}
	if got := w.Want(http.StatusOK, "GET", servertest.RulesPath+"/there", "").Object(t); got.Metadata.ResourceVersion != there.Metadata.ResourceVersion {
		t.Errorf("changed to %s", got.Metadata.ResourceVersion)
	}
	w.Want(http.StatusRequestEntityTooLarge, "POST", servertest.Transactions, strings.Repeat(" ", 8<<20+1), servertest.AsJSON)
	w.Want(http.StatusRequestEntityTooLarge, "POST", servertest.Transactions, strings.Repeat("#", 2<<20), servertest.AsYAML)
}

// TestHistory checks versions, their authors, and rollbacks.
func TestHistory(t *testing.T) {
	w := servertest.Start(t)
	first := w.Want(http.StatusCreated, "POST", servertest.RulesPath+"?fieldManager=tests", servertest.Rule("reviews", 100), servertest.AsYAML, "X-Remote-User: ada").Object(t)
	w.Want(http.StatusOK, "PUT", servertest.RulesPath+"/reviews", servertest.Rule("reviews", 50), servertest.AsYAML, "User-Agent: curl/8.1 (x)")
	w.Create("other")
	var history struct {
		Items []struct {
			Revision, Verb, User, UserAgent, Transaction string
			Object                                       servertest.Object
		}
	}
	text := w.Want(http.StatusOK, "GET", servertest.RulesPath+"/reviews/history", "").Text
	if err := json.Unmarshal([]byte(text), &history); err != nil {
		t.Fatal(err)
	}
	if len(history.Items) != 2 || history.Items[1].User != "ada" || history.Items[1].UserAgent != "tests" ||
		history.Items[1].Revision != first.Metadata.ResourceVersion || history.Items[0].UserAgent != "curl/8.1" || history.Items[0].Verb != "update" {
		t.Errorf("%s", text)
	}
	at := servertest.RulesPath + "/reviews/history/" + first.Metadata.ResourceVersion
	if text := w.Want(http.StatusOK, "GET", at, "").Text; !strings.Contains(text, `"weight":100`) {
		t.Error(text)
	}
	w.Want(http.StatusNotFound, "GET", servertest.RulesPath+"/reviews/history/1", "")
	w.Want(http.StatusBadRequest, "GET", servertest.RulesPath+"/reviews/history/first", "")
	w.Want(http.StatusNotFound, "GET", servertest.RulesPath+"/none/history", "")

	since := servertest.Changes + "?namespace=default&since=" + first.Metadata.ResourceVersion
	if text := w.Want(http.StatusOK, "GET", since, "").Text; strings.Count(text, `"kind":"RouteRule","namespace"`) != 2 {
		t.Error(text)
	}
	w.Want(http.StatusBadRequest, "GET", servertest.Changes, "")
	w.Want(http.StatusBadRequest, "GET", since+"&kind=Pod", "")
	w.Want(http.StatusBadRequest, "GET", since+"&name=reviews", "")

	body := fmt.Sprintf(`{"spec":{"revision":%s,"namespace":"default"}}`, first.Metadata.ResourceVersion)
	asText := fmt.Sprintf(`{"spec":{"revision":%q,"namespace":"default"}}`, first.Metadata.ResourceVersion) // as in its history
	if w.Want(http.StatusCreated, "POST", servertest.Rollbacks+"?dryRun=All", body, servertest.AsJSON).Text != w.Want(http.StatusCreated, "POST", servertest.Rollbacks+"?dryRun=All", asText, servertest.AsJSON).Text {
		t.Error("a revision in quotes is another one")
	}
	w.Want(http.StatusBadRequest, "POST", servertest.Rollbacks, `{"spec":{"revision":"new","namespace":"default"}}`, servertest.AsJSON)
	w.Want(http.StatusOK, "GET", servertest.RulesPath+"/other", "")
	if done := w.Want(http.StatusCreated, "POST", servertest.Rollbacks, body, servertest.AsJSON).Results(t); len(done.Results) != 2 {
		t.Errorf("%+v", done)
	}
	w.Want(http.StatusNotFound, "GET", servertest.RulesPath+"/other", "")
	if text := w.Want(http.StatusOK, "GET", servertest.RulesPath+"/reviews", "").Text; !strings.Contains(text, `"weight":100`) {
		t.Error(text)
	}
	if done := w.Want(http.StatusCreated, "POST", servertest.Rollbacks, body, servertest.AsJSON).Results(t); len(done.Results) != 0 {
		t.Errorf("%+v", done)
	}
	w.Want(http.StatusBadRequest, "POST", servertest.Rollbacks, `{"spec":{"revision":1}}`, servertest.AsJSON)
	if got := w.Want(http.StatusBadRequest, "GET", servertest.Changes+"?since=1&kind=RoutRule", ""); !strings.Contains(got.Text, "did you mean RouteRule?") {
		t.Errorf("a kind that there is not: %s", got.Text)
	}
	w.Want(http.StatusBadRequest, "POST", servertest.Rollbacks, `{"spec":{"revison":1,"namespace":"default"}}`, servertest.AsJSON)
}

// TestStepsOfARollback checks that steps need a token from the server.
func TestStepsOfARollback(t *testing.T) {
	w := servertest.Start(t, func(o *server.Options) { o.MaxTransaction = 2 })
	w.Create("a")
	before := w.Page("").Metadata.ResourceVersion
	w.Put("a", 50)
	for _, name := range []string{"b", "c", "d"} {
		w.Create(name)
	}
	body := func(fields string) string {
		return `{"spec":{"revision":` + before + `,"namespace":"default","steps":true` + fields + `}}`
	}
	asks := func(token string) string { return body(`,"continue":` + strconv.Quote(token)) }
	if got := w.Want(http.StatusRequestEntityTooLarge, "POST", servertest.Rollbacks, `{"spec":{"revision":`+before+`,"namespace":"default"}}`, servertest.AsJSON); !strings.Contains(got.Text, "changes 4 objects") {
		t.Errorf("at once: %s", got.Text)
	}
	counted := w.Want(http.StatusCreated, "POST", servertest.Rollbacks, body(""), servertest.AsJSON).Results(t)
	if counted.Remaining != 4 || len(counted.Results) != 0 {
		t.Fatalf("counted: %+v", counted)
	}
	token := counted.Continue
	made := func(text string) string { return asks(base64.RawURLEncoding.EncodeToString([]byte(text))) }
	for what, wrong := range map[string]string{
		"cut": asks(token[:len(token)-3]), "none": asks("abc"), "long": asks(strings.Repeat("A", 5000)), "of a list": asks("eyJ2IjoxfQ"),
		"without steps":  `{"spec":{"revision":` + before + `,"namespace":"default","continue":` + strconv.Quote(token) + `}}`,
		"other revision": strings.Replace(asks(token), `"revision":`+before, `"revision":1`, 1),
		"negative":       made(`{"v":1,"since":` + before + `,"began":1,"pass":-1,"left":0}`),
		"no begin":       made(`{"v":1,"since":` + before + `,"began":0,"pass":1,"left":0}`),
	} {
		if got := w.Do("POST", servertest.Rollbacks, wrong, servertest.AsJSON); got.StatusCode != http.StatusBadRequest || !strings.Contains(got.Text, "continue") {
			t.Errorf("%s: %s", what, got.Text)
		}
	}
	first := w.Want(http.StatusCreated, "POST", servertest.Rollbacks, asks(token), servertest.AsJSON).Results(t)
	second := w.Want(http.StatusCreated, "POST", servertest.Rollbacks, asks(first.Continue), servertest.AsJSON).Results(t)
	if len(first.Results) != 2 || first.Remaining != 2 || len(second.Results) != 2 {
		t.Errorf("steps: %+v, %+v", first, second)
	}
	if end := made(`{"v":1,"since":` + before + `,"began":1,"pass":1000,"left":7}`); len(w.Want(http.StatusCreated, "POST", servertest.Rollbacks, end, servertest.AsJSON).Results(t).Results) != 0 {
		t.Error("something is done behind the end")
	}
	if got := w.Page(""); len(got.Items) != 1 {
		t.Errorf("there are %v", got.Names())
	}
	w.Want(http.StatusBadRequest, "GET", servertest.Changes+"?since=1&limit=2&continue=abc", "")
	w.Want(http.StatusBadRequest, "GET", servertest.Changes+"?since=1&limit=-2", "")
}

// TestAnEmptyNameIsNotAll checks that an empty value, as from an unset variable,
// does not mean the same as a missing one.
func TestAnEmptyNameIsNotAll(t *testing.T) {
	w := servertest.Start(t)
	w.Create("a", "labels: {team: red}")
	w.Create("b")
	before := w.Page("").Metadata.ResourceVersion
	w.Put("a", 50, "labels: {team: red}")
	w.Put("b", 50)
	now := w.Page("").Metadata.ResourceVersion
	since := servertest.Changes + "?since=" + before
	body := func(fields string) string {
		return `{"spec":{"revision":` + before + `,"namespace":"default"` + fields + `}}`
	}
	remove := func(fields string) string {
		return servertest.Transaction(`{"verb":"delete","target":{"kind":"RouteRule","namespace":"default","name":"a"}` + fields + `}`)
	}
	for _, c := range []struct {
		method, path, body string
		code               int
		says               string
	}{
		{"POST", servertest.Rollbacks, body(`,"kind":"RouteRule","name":""`), 400, "name: must not be empty"},
		{"POST", servertest.Rollbacks, body(`,"kind":"","name":"a"`), 400, "kind"},
		{"POST", servertest.Rollbacks, body(`,"kind":""`), 400, "kind"},
		{"POST", servertest.Rollbacks, body(`,"name":""`), 400, "name: must not be empty"},
		{"POST", servertest.Rollbacks, `{"spec":{"revision":` + before + `,"namespace":""}}`, 400, "namespace: must not be empty"},
		{"POST", servertest.Rollbacks + "?dryRun=", body(""), 400, "dryRun"},
		{"GET", since + "&namespace=", "", 400, "namespace: must not be empty"},
		{"GET", since + "&namespace=default&kind=", "", 400, "kind"},
		{"GET", since + "&namespace=default&kind=RouteRule&name=", "", 400, "name: must not be empty"},
		{"DELETE", servertest.RulesPath + "?labelSelector=", "", 400, "labelSelector: must not be empty"},
		{"DELETE", servertest.RulesPath + "?fieldSelector=", "", 400, "fieldSelector: must not be empty"},
		{"DELETE", servertest.RulesPath + "?dryRun=", "", 400, "dryRun"},
		{"DELETE", servertest.RulesPath, `{"preconditions":{"uid":""}}`, 400, "preconditions.uid: must not be empty"},
		{"DELETE", servertest.RulesPath + "/a", `{"preconditions":{"resourceVersion":""}}`, 400, "preconditions.resourceVersion: must not be empty"},
		{"POST", servertest.Transactions, remove(`,"preconditions":{"uid":""}`), 400, "spec.operations[0]: preconditions.uid: must not be empty"},
		{"POST", servertest.Transactions, remove(`,"preconditions":{"resourceVersion":""}`), 400, "preconditions.resourceVersion: must not be empty"},
		{"POST", servertest.Transactions + "?dryRun=", remove(""), 400, "dryRun"},
		{"POST", servertest.Transactions, servertest.Transaction(`{"fieldManager":"",` + servertest.RuleOp("apply", "a", 1)[1:]), 422, "fieldManager"},
	} {
		got := w.Do(c.method, c.path, c.body, servertest.AsJSON)
		if got.StatusCode != c.code || !strings.Contains(got.Text, c.says) {
			t.Errorf("%s %s %s\ngot %s, want %d with %q", c.method, c.path, c.body, got.Text, c.code, c.says)
		}
	}
	if got := w.Page(""); got.Metadata.ResourceVersion != now || len(got.Items) != 2 {
		t.Errorf("%v at %s, want all at %s", got.Names(), got.Metadata.ResourceVersion, now)
	}
	if done := w.Want(http.StatusCreated, "POST", servertest.Rollbacks, body(`,"kind":"RouteRule"`), servertest.AsJSON).Results(t); len(done.Results) != 2 {
		t.Errorf("of a kind: %+v", done)
	}
}

// TestTransactionsAreToldAgain checks that a client which lost its stream in the
// middle of a transaction receives all of it, whichever event it resumes from.
func TestTransactionsAreToldAgain(t *testing.T) {
	outside.Slow(t)
	w := servertest.Start(t)
	w.Create("gone")
	body := servertest.Transaction(servertest.RuleOp("create", "a", 1), servertest.RuleOp("create", "b", 2), servertest.Named("delete", "gone", ""))
	revision := w.Want(http.StatusCreated, "POST", servertest.Transactions, body, servertest.AsJSON).Results(t).Revision
	from := "&timeoutSeconds=1&resourceVersion=" + revision
	wants(w.Watch(from), "ADDED a", "ADDED b", "DELETED gone")
	wants(w.Watch(from + "&labelSelector=none"))
	wants(w.Watch(from + "&fieldSelector=metadata.name%3Da"))
	wants(w.Watch(from + "&wholeRevisions=true"))
	single := w.Create("single")
	wants(w.Watch("&timeoutSeconds=1&resourceVersion=" + single.Metadata.ResourceVersion))
	wants(w.Watch(from), "ADDED a", "ADDED b", "DELETED gone", "ADDED single")
}

// wants reads a watch to its end.
func wants(w *servertest.Watching, frames ...string) {
	w.T.Helper()
	w.Want(frames...)
	w.WantEnd()
}

// TestEveryWrongOperationIsNamed checks that an error has the message, the index and
// the fields of all operations that fail, be it that they cannot be read or that the
// stored objects refuse them, and that nothing is done.
func TestEveryWrongOperationIsNamed(t *testing.T) {
	w := servertest.Start(t)
	there := w.Create("there")
	good := servertest.RuleOp("create", "good", 100)
	precondition := func(what string) string { return `,"patch":{"spec":{"precedence":7}},"preconditions":{` + what + `}` }
	stale, gone := servertest.Named("patch", "there", precondition(`"resourceVersion":"1"`)), servertest.Named("patch", "there", precondition(`"uid":"other"`))
	wrong := strings.NewReplacer(`"labels"`, `"wait"`)
	for _, c := range []struct {
		name   string
		ops    []string
		code   int
		fields []string // of causes
	}{
		{"unreadable", []string{`{"verb":"upsert"}`, good, `{"verb":"delete"}`}, http.StatusBadRequest, []string{"spec.operations[0]", "spec.operations[2]"}},
		{"misspelt", []string{`{"vreb":"x"}`, good, servertest.Named("delete", "a", `,"nmae":"b"`)}, http.StatusBadRequest, []string{"spec.operations[0]", "spec.operations[2]"}},
		{
			"invalid", []string{wrong.Replace(servertest.RuleOp("create", "a", 1)), good, wrong.Replace(servertest.RuleOp("apply", "b", 1))}, http.StatusUnprocessableEntity,
			[]string{"spec.operations[0].object.spec.route[0].wait", "spec.operations[0]", "spec.operations[2].object.spec.route[0].wait", "spec.operations[2]"},
		},
		{"refused", []string{servertest.RuleOp("create", "there", 1), good, servertest.Named("delete", "a", ""), servertest.RuleOp("update", "b", 1)}, http.StatusConflict, []string{"spec.operations[0]", "spec.operations[2]", "spec.operations[3]"}},
		{"stale patch", []string{good, stale}, http.StatusConflict, []string{"spec.operations[1]"}},
		{"patch of another object", []string{good, gone, servertest.Named("delete", "a", "")}, http.StatusConflict, []string{"spec.operations[1]", "spec.operations[2]"}},
		{"patch of an object that does not exist", []string{servertest.Named("patch", "none", precondition(`"uid":"other"`)), good}, http.StatusNotFound, []string{"spec.operations[0]"}},
	} {
		for _, query := range []string{"", "?dryRun=All"} {
			status := w.Want(c.code, "POST", servertest.Transactions+query, servertest.Transaction(c.ops...), servertest.AsJSON).Failure(t)
			var fields []string
			for _, cause := range status.Details.Causes {
				fields = append(fields, cause.Field)
			}
			if diff := cmp.Diff(c.fields, fields); diff != "" {
				t.Errorf("%s%s: causes (-want +got):\n%s%s", c.name, query, diff, status.Message)
			}
			for _, field := range c.fields {
				if operation, _, _ := strings.Cut(field, ".object"); !strings.Contains(status.Message, operation+": ") {
					t.Errorf("%s%s: %s is not in %q", c.name, query, operation, status.Message)
				}
			}
			w.Want(http.StatusNotFound, "GET", servertest.RulesPath+"/good", "")
		}
	}
	fresh := fmt.Sprintf(`"resourceVersion":%q,"uid":%q`, there.Metadata.ResourceVersion, there.Metadata.UID)
	w.Want(http.StatusCreated, "POST", servertest.Transactions, servertest.Transaction(servertest.Named("patch", "there", precondition(fresh))), servertest.AsJSON)
	many := make([]string, 200)
	for i := range many {
		many[i] = servertest.Named("delete", fmt.Sprint("none-", i), "")
	}
	if got := w.Want(http.StatusNotFound, "POST", servertest.Transactions, servertest.Transaction(many...), servertest.AsJSON).Failure(t); len(got.Details.Causes) != 100 || !strings.HasSuffix(got.Message, "; and 100 more") {
		t.Errorf("of 200 failures %d are named: …%s", len(got.Details.Causes), got.Message[max(0, len(got.Message)-50):])
	}
}
