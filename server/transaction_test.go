package server_test

import (
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

const (
	transactions = "/apis/registry.istio.io/v1/transactions"
	rollbacks    = "/apis/registry.istio.io/v1/rollbacks"
	changes      = "/apis/registry.istio.io/v1/changes"
)

// transaction returns a body with operations, in JSON.
func transaction(ops ...string) string {
	return `{"apiVersion":"registry.istio.io/v1","kind":"Transaction","spec":{"operations":[` + strings.Join(ops, ",") + `]}}`
}

// ruleOp returns an operation with a rule.
func ruleOp(verb, name string, precedence int, metadata ...string) string {
	meta := append([]string{fmt.Sprintf(`"name":%q`, name)}, metadata...)
	return fmt.Sprintf(`{"verb":%q,"object":{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule","metadata":{%s},
		"spec":{"destination":{"name":"reviews"},"precedence":%d,"route":[{"labels":{"version":"v1"}}]}}}`, verb, strings.Join(meta, ","), precedence)
}

func named(verb, name, more string) string {
	return fmt.Sprintf(`{"verb":%q,"target":{"kind":"RouteRule","namespace":"default","name":%q}%s}`, verb, name, more)
}

type results struct {
	Revision, Continue string
	Remaining          int
	Results            []struct {
		Verb   string
		Object object
	}
}

// results returns the status of a Transaction or a Rollback.
func (a answer) results(t *testing.T) results {
	t.Helper()
	var out struct{ Status results }
	if err := json.Unmarshal([]byte(a.text), &out); err != nil {
		t.Fatalf("%v in %s", err, a.text)
	}
	return out.Status
}

// TestTransaction does all verbs at one revision, with results in the order of
// operations.
func TestTransaction(t *testing.T) {
	w := start(t)
	for _, name := range []string{"updated", "patched", "deleted", "applied"} {
		w.create(name)
	}
	body := transaction(
		ruleOp("create", "created", 100), ruleOp("update", "updated", 50), ruleOp("apply", "applied", 50), ruleOp("apply", "new", 50),
		named("patch", "patched", `,"patch":{"spec":{"precedence":7}}`), named("delete", "deleted", ""))
	dry := w.want(http.StatusCreated, "POST", transactions+"?dryRun=All", body, asJSON).results(t)
	w.want(http.StatusNotFound, "GET", rulesPath+"/created", "")
	got := w.want(http.StatusCreated, "POST", transactions, body, asJSON).results(t)
	if len(got.Results) != 6 || len(dry.Results) != 6 {
		t.Fatalf("%+v and %+v", got, dry)
	}
	for i, r := range got.Results {
		if r.Object.Metadata.ResourceVersion != got.Revision || r.Verb != dry.Results[i].Verb {
			t.Errorf("result %d: %+v of %s", i, r, got.Revision)
		}
	}
	w.want(http.StatusNotFound, "GET", rulesPath+"/deleted", "")
	if text := w.want(http.StatusOK, "GET", rulesPath+"/patched", "").text; !strings.Contains(text, `"precedence":7`) {
		t.Error(text)
	}
	w.want(http.StatusCreated, "POST", transactions, "spec:\n  operations:\n  - {verb: delete, target: {kind: RouteRule, namespace: default, name: new}}\n", asYAML)
}

// TestTransactionRefused checks that an error names its operation, and that nothing
// is done.
func TestTransactionRefused(t *testing.T) {
	w := start(t)
	there := w.create("there")
	good := ruleOp("create", "good", 100)
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
		{"unknown verb", transaction(good, `{"verb":"upsert"}`), http.StatusBadRequest, "spec.operations[1]: verb: must be create"},
		{"object and name", transaction(good, `{"verb":"create","object":{},"target":{}}`), http.StatusBadRequest, "spec.operations[1]: create takes"},
		{"delete without a name", transaction(good, `{"verb":"delete","target":{"kind":"RouteRule"}}`), http.StatusBadRequest, "spec.operations[1]: target.namespace: required"},
		{"delete of an object", transaction(good, named("delete", "there", `,"object":{}`)), http.StatusBadRequest, "spec.operations[1]: delete takes"},
		{"no such kind", transaction(good, `{"verb":"delete","target":{"kind":"Pod","namespace":"a","name":"b"}}`), http.StatusBadRequest, `spec.operations[1]: target.kind: there is no kind "Pod"; there are DestinationPolicy`},
		{"patch of a misspelt kind", transaction(good, `{"verb":"patch","target":{"kind":"RouteRul","namespace":"a","name":"b"},"patch":{}}`), http.StatusBadRequest, "did you mean RouteRule?"},
		{"bad object", transaction(good, strings.Replace(ruleOp("create", "bad", 100), `"labels"`, `"wait"`, 1)), http.StatusUnprocessableEntity, "spec.operations[1].object.spec.route[0].wait"},
		{"exists", transaction(good, ruleOp("create", "there", 100)), http.StatusConflict, "spec.operations[1]: routerules.config.istio.io \"there\" already exists"},
		{"is not there", transaction(good, ruleOp("update", "none", 100)), http.StatusNotFound, "spec.operations[1]"},
		{"stale", transaction(ruleOp("update", "there", 50, `"resourceVersion":"1"`), good), http.StatusConflict, "spec.operations[0]"},
		{"stale delete", transaction(good, named("delete", "there", `,"preconditions":{"resourceVersion":"1"}`)), http.StatusConflict, "spec.operations[1]"},
		{"patch of nothing", transaction(good, named("patch", "none", `,"patch":{}`)), http.StatusNotFound, "spec.operations[1]"},
		{"patch that does not fit", transaction(good, named("patch", "there", `,"patchType":"application/json-patch+json","patch":[{"op":"remove","path":"/spec/none"}]`)), http.StatusUnprocessableEntity, "spec.operations[1]"},
		{"patch to another name", transaction(good, named("patch", "there", `,"patch":{"metadata":{"name":"other"}}`)), http.StatusBadRequest, `spec.operations[1]: the URL and the body disagree on metadata.name`},
		{"unknown field of an operation", transaction(good, named("delete", "there", `,"nmae":"there"`)), http.StatusBadRequest, `spec.operations[1]: must be`},
		{"no operation", transaction(good, `"delete"`), http.StatusBadRequest, `spec.operations[1]: must be`},
		{"unknown patch", transaction(good, named("patch", "there", `,"patchType":"strategic","patch":{}`)), http.StatusBadRequest, "patchType: must be"},
		{"twice the same", transaction(good, ruleOp("apply", "good", 50)), http.StatusUnprocessableEntity, "same object"},
		{"without a name", transaction(strings.Replace(good, `"name":"good"`, `"generateName":"a-"`, 1)), http.StatusBadRequest, "metadata.name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := w.want(c.code, "POST", transactions, c.body, asJSON).text
			if plain := strings.ReplaceAll(text, `\"`, `"`); !strings.Contains(plain, c.says) {
				t.Errorf("does not say %q: %s", c.says, text)
			}
			w.want(http.StatusNotFound, "GET", rulesPath+"/good", "")
		})
	}
	if got := w.want(http.StatusOK, "GET", rulesPath+"/there", "").object(t); got.Metadata.ResourceVersion != there.Metadata.ResourceVersion {
		t.Errorf("changed to %s", got.Metadata.ResourceVersion)
	}
	w.want(http.StatusRequestEntityTooLarge, "POST", transactions, strings.Repeat(" ", 8<<20+1), asJSON)
	w.want(http.StatusRequestEntityTooLarge, "POST", transactions, strings.Repeat("#", 2<<20), asYAML)
}

// TestHistory checks versions, their authors, and rollbacks.
func TestHistory(t *testing.T) {
	w := start(t)
	first := w.want(http.StatusCreated, "POST", rulesPath+"?fieldManager=tests", rule("reviews", 100), asYAML, "X-Remote-User: ada").object(t)
	w.want(http.StatusOK, "PUT", rulesPath+"/reviews", rule("reviews", 50), asYAML, "User-Agent: curl/8.1 (x)")
	w.create("other")
	var history struct {
		Items []struct {
			Revision, Verb, User, UserAgent, Transaction string
			Object                                       object
		}
	}
	text := w.want(http.StatusOK, "GET", rulesPath+"/reviews/history", "").text
	if err := json.Unmarshal([]byte(text), &history); err != nil {
		t.Fatal(err)
	}
	if len(history.Items) != 2 || history.Items[1].User != "ada" || history.Items[1].UserAgent != "tests" ||
		history.Items[1].Revision != first.Metadata.ResourceVersion || history.Items[0].UserAgent != "curl/8.1" || history.Items[0].Verb != "update" {
		t.Errorf("%s", text)
	}
	at := rulesPath + "/reviews/history/" + first.Metadata.ResourceVersion
	if text := w.want(http.StatusOK, "GET", at, "").text; !strings.Contains(text, `"weight":100`) {
		t.Error(text)
	}
	w.want(http.StatusNotFound, "GET", rulesPath+"/reviews/history/1", "")
	w.want(http.StatusBadRequest, "GET", rulesPath+"/reviews/history/first", "")
	w.want(http.StatusNotFound, "GET", rulesPath+"/none/history", "")

	since := changes + "?namespace=default&since=" + first.Metadata.ResourceVersion
	if text := w.want(http.StatusOK, "GET", since, "").text; strings.Count(text, `"kind":"RouteRule","namespace"`) != 2 {
		t.Error(text)
	}
	w.want(http.StatusBadRequest, "GET", changes, "")
	w.want(http.StatusBadRequest, "GET", since+"&kind=Pod", "")
	w.want(http.StatusBadRequest, "GET", since+"&name=reviews", "")

	body := fmt.Sprintf(`{"spec":{"revision":%s,"namespace":"default"}}`, first.Metadata.ResourceVersion)
	asText := fmt.Sprintf(`{"spec":{"revision":%q,"namespace":"default"}}`, first.Metadata.ResourceVersion) // as in its history
	if w.want(http.StatusCreated, "POST", rollbacks+"?dryRun=All", body, asJSON).text != w.want(http.StatusCreated, "POST", rollbacks+"?dryRun=All", asText, asJSON).text {
		t.Error("a revision in quotes is another one")
	}
	w.want(http.StatusBadRequest, "POST", rollbacks, `{"spec":{"revision":"new","namespace":"default"}}`, asJSON)
	w.want(http.StatusOK, "GET", rulesPath+"/other", "")
	if done := w.want(http.StatusCreated, "POST", rollbacks, body, asJSON).results(t); len(done.Results) != 2 {
		t.Errorf("%+v", done)
	}
	w.want(http.StatusNotFound, "GET", rulesPath+"/other", "")
	if text := w.want(http.StatusOK, "GET", rulesPath+"/reviews", "").text; !strings.Contains(text, `"weight":100`) {
		t.Error(text)
	}
	if done := w.want(http.StatusCreated, "POST", rollbacks, body, asJSON).results(t); len(done.Results) != 0 {
		t.Errorf("%+v", done)
	}
	w.want(http.StatusBadRequest, "POST", rollbacks, `{"spec":{"revision":1}}`, asJSON)
	if got := w.want(http.StatusBadRequest, "GET", changes+"?since=1&kind=RoutRule", ""); !strings.Contains(got.text, "did you mean RouteRule?") {
		t.Errorf("a kind that there is not: %s", got.text)
	}
	w.want(http.StatusBadRequest, "POST", rollbacks, `{"spec":{"revison":1,"namespace":"default"}}`, asJSON)
}

// TestStepsOfARollback checks that steps need a token from the server.
func TestStepsOfARollback(t *testing.T) {
	w := start(t, func(o *server.Options) { o.MaxTransaction = 2 })
	w.create("a")
	before := w.page("").Metadata.ResourceVersion
	w.put("a", 50)
	for _, name := range []string{"b", "c", "d"} {
		w.create(name)
	}
	body := func(fields string) string {
		return `{"spec":{"revision":` + before + `,"namespace":"default","steps":true` + fields + `}}`
	}
	asks := func(token string) string { return body(`,"continue":` + strconv.Quote(token)) }
	if got := w.want(http.StatusRequestEntityTooLarge, "POST", rollbacks, `{"spec":{"revision":`+before+`,"namespace":"default"}}`, asJSON); !strings.Contains(got.text, "changes 4 objects") {
		t.Errorf("at once: %s", got.text)
	}
	counted := w.want(http.StatusCreated, "POST", rollbacks, body(""), asJSON).results(t)
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
		if got := w.do("POST", rollbacks, wrong, asJSON); got.StatusCode != http.StatusBadRequest || !strings.Contains(got.text, "continue") {
			t.Errorf("%s: %s", what, got.text)
		}
	}
	first := w.want(http.StatusCreated, "POST", rollbacks, asks(token), asJSON).results(t)
	second := w.want(http.StatusCreated, "POST", rollbacks, asks(first.Continue), asJSON).results(t)
	if len(first.Results) != 2 || first.Remaining != 2 || len(second.Results) != 2 {
		t.Errorf("steps: %+v, %+v", first, second)
	}
	if end := made(`{"v":1,"since":` + before + `,"began":1,"pass":1000,"left":7}`); len(w.want(http.StatusCreated, "POST", rollbacks, end, asJSON).results(t).Results) != 0 {
		t.Error("something is done behind the end")
	}
	if got := w.page(""); len(got.Items) != 1 {
		t.Errorf("there are %v", got.names())
	}
	w.want(http.StatusBadRequest, "GET", changes+"?since=1&limit=2&continue=abc", "")
	w.want(http.StatusBadRequest, "GET", changes+"?since=1&limit=-2", "")
}

// TestAnEmptyNameIsNotAll checks that an empty value, as from an unset variable,
// does not mean the same as a missing one.
func TestAnEmptyNameIsNotAll(t *testing.T) {
	w := start(t)
	w.create("a", "labels: {team: red}")
	w.create("b")
	before := w.page("").Metadata.ResourceVersion
	w.put("a", 50, "labels: {team: red}")
	w.put("b", 50)
	now := w.page("").Metadata.ResourceVersion
	since := changes + "?since=" + before
	body := func(fields string) string {
		return `{"spec":{"revision":` + before + `,"namespace":"default"` + fields + `}}`
	}
	remove := func(fields string) string {
		return transaction(`{"verb":"delete","target":{"kind":"RouteRule","namespace":"default","name":"a"}` + fields + `}`)
	}
	for _, c := range []struct {
		method, path, body string
		code               int
		says               string
	}{
		{"POST", rollbacks, body(`,"kind":"RouteRule","name":""`), 400, "name: must not be empty"},
		{"POST", rollbacks, body(`,"kind":"","name":"a"`), 400, "kind"},
		{"POST", rollbacks, body(`,"kind":""`), 400, "kind"},
		{"POST", rollbacks, body(`,"name":""`), 400, "name: must not be empty"},
		{"POST", rollbacks, `{"spec":{"revision":` + before + `,"namespace":""}}`, 400, "namespace: must not be empty"},
		{"POST", rollbacks + "?dryRun=", body(""), 400, "dryRun"},
		{"GET", since + "&namespace=", "", 400, "namespace: must not be empty"},
		{"GET", since + "&namespace=default&kind=", "", 400, "kind"},
		{"GET", since + "&namespace=default&kind=RouteRule&name=", "", 400, "name: must not be empty"},
		{"DELETE", rulesPath + "?labelSelector=", "", 400, "labelSelector: must not be empty"},
		{"DELETE", rulesPath + "?fieldSelector=", "", 400, "fieldSelector: must not be empty"},
		{"DELETE", rulesPath + "?dryRun=", "", 400, "dryRun"},
		{"DELETE", rulesPath, `{"preconditions":{"uid":""}}`, 400, "preconditions.uid: must not be empty"},
		{"DELETE", rulesPath + "/a", `{"preconditions":{"resourceVersion":""}}`, 400, "preconditions.resourceVersion: must not be empty"},
		{"POST", transactions, remove(`,"preconditions":{"uid":""}`), 400, "spec.operations[0]: preconditions.uid: must not be empty"},
		{"POST", transactions, remove(`,"preconditions":{"resourceVersion":""}`), 400, "preconditions.resourceVersion: must not be empty"},
		{"POST", transactions + "?dryRun=", remove(""), 400, "dryRun"},
		{"POST", transactions, transaction(`{"fieldManager":"",` + ruleOp("apply", "a", 1)[1:]), 422, "fieldManager"},
	} {
		got := w.do(c.method, c.path, c.body, asJSON)
		if got.StatusCode != c.code || !strings.Contains(got.text, c.says) {
			t.Errorf("%s %s %s\ngot %s, want %d with %q", c.method, c.path, c.body, got.text, c.code, c.says)
		}
	}
	if got := w.page(""); got.Metadata.ResourceVersion != now || len(got.Items) != 2 {
		t.Errorf("%v at %s, want all at %s", got.names(), got.Metadata.ResourceVersion, now)
	}
	if done := w.want(http.StatusCreated, "POST", rollbacks, body(`,"kind":"RouteRule"`), asJSON).results(t); len(done.Results) != 2 {
		t.Errorf("of a kind: %+v", done)
	}
}

// TestTransactionsAreToldAgain checks that a client which lost its stream in the
// middle of a transaction receives all of it, whichever event it resumes from.
func TestTransactionsAreToldAgain(t *testing.T) {
	outside.Slow(t)
	w := start(t)
	w.create("gone")
	body := transaction(ruleOp("create", "a", 1), ruleOp("create", "b", 2), named("delete", "gone", ""))
	revision := w.want(http.StatusCreated, "POST", transactions, body, asJSON).results(t).Revision
	from := "&timeoutSeconds=1&resourceVersion=" + revision
	w.watch(from).wants("ADDED a", "ADDED b", "DELETED gone")
	w.watch(from + "&labelSelector=none").wants()
	w.watch(from + "&fieldSelector=metadata.name%3Da").wants()
	w.watch(from + "&wholeRevisions=true").wants()
	single := w.create("single")
	w.watch("&timeoutSeconds=1&resourceVersion=" + single.Metadata.ResourceVersion).wants()
	w.watch(from).wants("ADDED a", "ADDED b", "DELETED gone", "ADDED single")
}

// wants reads a watch to its end.
func (w *watching) wants(frames ...string) {
	w.t.Helper()
	w.want(frames...)
	w.wantEnd()
}

// TestEveryWrongOperationIsNamed checks that an error has the message, the index and
// the fields of all operations that fail, be it that they cannot be read or that the
// stored objects refuse them, and that nothing is done.
func TestEveryWrongOperationIsNamed(t *testing.T) {
	w := start(t)
	there := w.create("there")
	good := ruleOp("create", "good", 100)
	precondition := func(what string) string { return `,"patch":{"spec":{"precedence":7}},"preconditions":{` + what + `}` }
	stale, gone := named("patch", "there", precondition(`"resourceVersion":"1"`)), named("patch", "there", precondition(`"uid":"other"`))
	wrong := strings.NewReplacer(`"labels"`, `"wait"`)
	for _, c := range []struct {
		name   string
		ops    []string
		code   int
		fields []string // of causes
	}{
		{"unreadable", []string{`{"verb":"upsert"}`, good, `{"verb":"delete"}`}, http.StatusBadRequest, []string{"spec.operations[0]", "spec.operations[2]"}},
		{"misspelt", []string{`{"vreb":"x"}`, good, named("delete", "a", `,"nmae":"b"`)}, http.StatusBadRequest, []string{"spec.operations[0]", "spec.operations[2]"}},
		{
			"invalid", []string{wrong.Replace(ruleOp("create", "a", 1)), good, wrong.Replace(ruleOp("apply", "b", 1))}, http.StatusUnprocessableEntity,
			[]string{"spec.operations[0].object.spec.route[0].wait", "spec.operations[0]", "spec.operations[2].object.spec.route[0].wait", "spec.operations[2]"},
		},
		{"refused", []string{ruleOp("create", "there", 1), good, named("delete", "a", ""), ruleOp("update", "b", 1)}, http.StatusConflict, []string{"spec.operations[0]", "spec.operations[2]", "spec.operations[3]"}},
		{"stale patch", []string{good, stale}, http.StatusConflict, []string{"spec.operations[1]"}},
		{"patch of another object", []string{good, gone, named("delete", "a", "")}, http.StatusConflict, []string{"spec.operations[1]", "spec.operations[2]"}},
		{"patch of none", []string{named("patch", "none", precondition(`"uid":"other"`)), good}, http.StatusNotFound, []string{"spec.operations[0]"}},
	} {
		for _, query := range []string{"", "?dryRun=All"} {
			status := w.want(c.code, "POST", transactions+query, transaction(c.ops...), asJSON).status(t)
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
			w.want(http.StatusNotFound, "GET", rulesPath+"/good", "")
		}
	}
	fresh := fmt.Sprintf(`"resourceVersion":%q,"uid":%q`, there.Metadata.ResourceVersion, there.Metadata.UID)
	w.want(http.StatusCreated, "POST", transactions, transaction(named("patch", "there", precondition(fresh))), asJSON)
	many := make([]string, 200)
	for i := range many {
		many[i] = named("delete", fmt.Sprint("none-", i), "")
	}
	if got := w.want(http.StatusNotFound, "POST", transactions, transaction(many...), asJSON).status(t); len(got.Details.Causes) != 100 || !strings.HasSuffix(got.Message, "; and 100 more") {
		t.Errorf("of 200 failures %d are named: …%s", len(got.Details.Causes), got.Message[max(0, len(got.Message)-50):])
	}
}
