package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/testbed"
)

// TestMatrixAgainstKubernetes compares what this server allows with what a kube-apiserver
// allows. Both have the same roles and bindings, and both are asked about the same identities
// and rights: by reviews of root, by reviews of the identities themselves, by requests, and by
// writes of roles and bindings. Each answer must be the same, but for intended differences,
// which the test lists with their reasons.
func TestMatrixAgainstKubernetes(t *testing.T) {
	outside.Slow(t)
	p := openPair(t)
	people := p.populate(t)
	p.settle(t)
	questions := p.questions(t)
	t.Run("reviews", func(t *testing.T) { p.compareReviews(t, people, questions) })
	t.Run("own reviews", func(t *testing.T) { p.compareOwnReviews(t, people, questions) })
	t.Run("impersonation", func(t *testing.T) { p.compareImpersonation(t) })
	t.Run("requests", func(t *testing.T) { p.compareRequests(t, people) })
	t.Run("writes", func(t *testing.T) { p.compareWrites(t) })
	t.Run("validity", func(t *testing.T) { p.compareValidity(t) })
}

const authenticated = "system:authenticated"

// populate stores the roles and bindings, and returns the identities to ask about.
func (p pair) populate(t *testing.T) (people []person) {
	t.Helper()
	for _, name := range []string{"shop", "bank"} {
		body := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name)
		r, err := p.theirs.do(t.Context(), request{method: "POST", path: "/api/v1/namespaces", media: "application/json", body: body})
		if err != nil || r.code != http.StatusCreated {
			t.Fatalf("%d %s, %v", r.code, r.text, err)
		}
	}
	roles := readManifests(t, "roles.yaml")
	p.store(t, roles...)
	p.store(t, readManifests(t, "bindings.yaml")...)
	for _, role := range roles {
		name := role.name()
		if role.isCluster() {
			p.store(t, bindingTo(name, "", "ClusterRole", name, name), bindingTo(name, "shop", "ClusterRole", name, name+".shop"))
			people = append(people, person{Name: name}, person{Name: name + ".shop"})
		} else {
			p.store(t, bindingTo("role."+name, role.namespace(), "Role", name, "role."+name))
			people = append(people, person{Name: "role." + name})
		}
	}
	p.storeWriters(t)
	return append(people, specialPeople...)
}

// specialPeople are identities that have something by their groups, or by their kind.
var specialPeople = []person{
	{Name: "nil"}, {Name: "nil", Groups: []string{authenticated}}, {Name: "nil", Groups: []string{"team"}}, {Name: "nil", Groups: []string{"reads", "team", "none"}},
	{Name: "team"}, {Name: "reads", Groups: []string{"reads"}}, {Name: "Reads"}, {Name: "many"}, {Name: "missing"},
	{Name: "many", Groups: []string{"team", authenticated}},
	{Name: "root", Groups: []string{"system:masters"}}, {Name: "nil", Groups: []string{"system:Masters"}}, {Name: "system:masters"},
	{Name: "system:anonymous"}, {Name: "system:anonymous", Groups: []string{"system:unauthenticated"}},
	account("shop", "deployer"), account("bank", "deployer"), account("bank", "other"),
	{Name: "system:serviceaccount:shop:deployer"}, {Name: "system:serviceaccount:shop:deployer", Groups: []string{"team"}},
	{Name: "deployer"}, {Name: "shop:deployer"}, {Name: "system:serviceaccount:shop:deployer:more"}, {Name: "system:serviceaccount:shop"},
	{Name: "nil", Groups: []string{"system:serviceaccounts"}}, {Name: "nil", Groups: []string{"system:serviceaccounts:bank"}},
}

// account returns a ServiceAccount with the groups that it has.
func account(namespace, name string) person {
	return person{"system:serviceaccount:" + namespace + ":" + name, []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, authenticated}}
}

// settled are rights that exist as soon as a server has made use of everything that was
// stored: the last objects of each kind, and what is aggregated.
var settled = []struct {
	user string
	access
}{
	{"last", access{verb: "get", resource: "last"}},
	{"last", access{verb: "get", resource: "last-in-shop", namespace: "shop"}},
	{"sum", access{verb: "delete", resource: "pods", name: "a"}},
	{"sum-of-sums", access{verb: "delete", resource: "pods", name: "a"}},
	{"sum-of-sums", access{verb: "list", group: "networking.istio.io", resource: "sidecars"}},
	{"sum-by-expression", access{verb: "delete", resource: "pods", name: "a"}},
	{"sum-of-two-labels", access{verb: "list", group: "networking.istio.io", resource: "sidecars"}},
	{"sum-with-own-rules", access{verb: "list", group: "networking.istio.io", resource: "sidecars"}},
	{"circle-2", access{verb: "delete", resource: "pods", name: "a"}},
}

// settle waits until both servers use all that is stored.
func (p pair) settle(t *testing.T) {
	t.Helper()
	const rule = `[{apiGroups: [""], resources: [%s], verbs: [get]}]`
	p.store(t,
		parseManifest(t, fmt.Sprintf("{kind: ClusterRole, metadata: {name: last}, rules: "+rule+"}", "last")),
		parseManifest(t, fmt.Sprintf("{kind: Role, metadata: {name: last, namespace: shop}, rules: "+rule+"}", "last-in-shop")),
		bindingTo("last", "", "ClusterRole", "last", "last"), bindingTo("last", "shop", "Role", "last", "last"),
	)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, s := range settled {
		for _, a := range []authority{p.ours, p.theirs} {
			err := testbed.Until(ctx, fmt.Sprintf("%s to allow %s %s", a.name, s.user, s.access), func(ctx context.Context) error {
				got, err := a.review(ctx, person{Name: s.user}, s.access)
				if err == nil && !got {
					err = fmt.Errorf("it is refused")
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// access is a right that an identity may have.
type access struct {
	verb, group, resource, subresource, namespace, name string
	isPath                                              bool
	path                                                string
}

func (q access) String() string {
	if q.isPath {
		return fmt.Sprintf("%q on path %q", q.verb, q.path)
	}
	return fmt.Sprintf("%q on %q of %q, name %q, namespace %q", q.verb, strings.TrimSuffix(q.resource+"/"+q.subresource, "/"), q.group, q.name, q.namespace)
}

// attributes returns the part of a review that has the question.
func (q access) attributes() map[string]any {
	if q.isPath {
		return map[string]any{"nonResourceAttributes": map[string]string{"verb": q.verb, "path": q.path}}
	}
	return map[string]any{"resourceAttributes": map[string]string{
		"verb": q.verb, "group": q.group, "resource": q.resource, "subresource": q.subresource, "namespace": q.namespace, "name": q.name,
	}}
}

var (
	matrixVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "impersonate", "bind", "escalate", "use", "route", "*", "GET", ""}
	// coreResources are asked about beside the kinds of this server.
	coreResources = []access{
		{resource: "pods"}, {resource: "pods", subresource: "log"}, {resource: "pods", subresource: "*"}, {resource: "nodes"}, {resource: "namespaces"},
		{resource: "secrets"}, {resource: "serviceaccounts"}, {resource: "serviceaccounts", subresource: "token"}, {resource: "users"}, {resource: "groups"},
		{group: "apps", resource: "deployments", subresource: "scale"}, {group: "apps", resource: "deployments"}, {group: "apps", resource: "pods"},
		{group: "*", resource: "*"}, {resource: "*"}, {group: "networking.istio.io", resource: "*"}, {group: "*", resource: "pods"}, {resource: "*", subresource: "scale"},
		{group: "networking.istio.io", resource: "VirtualServices"}, {group: "Networking.istio.io", resource: "virtualservices"}, {resource: ""}, {resource: "", subresource: "status"},
	}
	matrixPlaces = []access{{}, {name: "a"}, {namespace: "shop"}, {namespace: "shop", name: "a"}, {namespace: "shop", name: "b"}, {namespace: "bank", name: "a"}, {namespace: "bank", name: "*"}}
	matrixPaths  = []string{
		"/metrics", "/metrics/", "/metrics/cadvisor", "/debug", "/debug/", "/debug/pprof/heap", "/healthz", "/healt", "/health", "/logs", "/logs/", "/logs/x", "/x/",
		"/summed", "/", "", "*", "/*", "/debug/*", "/version", "/version/", "/api", "/api/v1", "/api/", "/apis/x", "/openapi/v3", "/livez", "/readyz", "metrics", "//metrics", "/METRICS",
		"/.well-known/openid-configuration",
	}
	pathVerbs = []string{"get", "head", "post", "*", ""}
)

// questions returns everything to ask about one identity.
func (p pair) questions(t *testing.T) (out []access) {
	t.Helper()
	resources := slices.Concat(p.ours.resources(t), coreResources)
	if len(resources) < 50 {
		t.Errorf("only %d resources", len(resources))
	}
	for _, resource := range resources {
		for _, verb := range matrixVerbs {
			for _, place := range matrixPlaces {
				q := resource
				q.verb, q.namespace, q.name = verb, place.namespace, place.name
				out = append(out, q)
			}
		}
	}
	for _, path := range matrixPaths {
		for _, verb := range pathVerbs {
			out = append(out, access{verb: verb, isPath: true, path: path})
		}
	}
	return out
}

// resources returns the resources of a server, in all of its groups.
func (a authority) resources(t *testing.T) (out []access) {
	t.Helper()
	groups := struct {
		Groups []struct {
			Name             string
			PreferredVersion struct{ GroupVersion string }
		}
	}{}
	a.get(t, "/apis", &groups)
	for _, group := range groups.Groups {
		list := struct{ Resources []struct{ Name string } }{}
		a.get(t, "/apis/"+group.PreferredVersion.GroupVersion, &list)
		for _, r := range list.Resources {
			q := access{group: group.Name}
			q.resource, q.subresource, _ = strings.Cut(r.Name, "/")
			out = append(out, q)
		}
	}
	return out
}

func (a authority) get(t *testing.T, path string, into any) {
	t.Helper()
	r, err := a.do(t.Context(), request{method: "GET", path: path})
	if err != nil || r.code != http.StatusOK {
		t.Fatalf("GET %s: %d %s, %v", path, r.code, r.text, err)
	}
	if err := json.Unmarshal(r.text, into); err != nil {
		t.Fatal(err)
	}
}

const reviewsPath = "/apis/authorization.k8s.io/v1/"

// reviewOf returns the request of root that asks whether somebody has a right.
func reviewOf(who person, q access) request {
	spec := q.attributes()
	spec["user"], spec["groups"] = who.Name, who.Groups
	return reviewRequest("SubjectAccessReview", spec)
}

// ownReviewOf returns the request of somebody that asks the same.
func ownReviewOf(who person, q access) request {
	r := reviewRequest("SelfSubjectAccessReview", q.attributes())
	r.as = &who
	return r
}

func reviewRequest(kind string, spec map[string]any) request {
	body, err := json.Marshal(map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec})
	if err != nil {
		panic(err) // It has only text.
	}
	return request{method: "POST", path: reviewsPath + strings.ToLower(kind) + "s", media: "application/json", body: body}
}

// review asks one server by a review of root.
func (a authority) review(ctx context.Context, who person, q access) (bool, error) {
	r, err := a.do(ctx, reviewOf(who, q))
	if err != nil {
		return false, err
	}
	return r.allowed()
}

// allowed returns the answer of a review. A refused review allows nothing.
func (r outcome) allowed() (bool, error) {
	review := struct{ Status struct{ Allowed bool } }{}
	if r.code == http.StatusForbidden {
		return false, nil
	}
	if r.code != http.StatusCreated {
		return false, fmt.Errorf("%d %s", r.code, r.text)
	}
	err := json.Unmarshal(r.text, &review)
	return review.Status.Allowed, err
}

// summary returns the code, and what a failure says.
func (r outcome) summary() string {
	failure := struct{ Message string }{}
	_ = json.Unmarshal(r.text, &failure) // Without a message there is none to show.
	return strings.TrimSpace(fmt.Sprintf("%d %.150s", r.code, failure.Message))
}

// cell is one comparison.
type cell struct {
	who  person
	what string
	ask  request
	// path is the path that a review asks about, if it asks about one.
	path string
}

// intended are differences that are not mistakes.
type intended struct {
	reason string
	is     func(c cell, ours, theirs bool) bool
}

// comparison compares cells and counts.
type comparison struct {
	pair
	intended []intended
	verdict  func(outcome) (bool, error)

	cells, allowed, differ atomic.Int64
	mu                     sync.Mutex
	met                    map[string]int // The intended differences, by reason.
}

// workers is how many cells are compared at a time.
const workers = 4

// run compares cells and reports each difference that is not intended.
func (c *comparison) run(t *testing.T, cells []cell) {
	t.Helper()
	c.met = map[string]int{}
	var group errgroup.Group
	group.SetLimit(workers)
	for _, one := range cells {
		group.Go(func() error {
			if err := c.compare(t, one); err != nil {
				c.report(t, "%s, %s: %v", one.who, one.what, err)
			}
			return nil
		})
	}
	_ = group.Wait() // Each cell reports its own error.
	t.Logf("%d cells compared, %d allowed by both, %d differ", c.cells.Load(), c.allowed.Load(), c.differ.Load())
	for _, i := range c.intended {
		if t.Logf("%d cells differ as intended: %s", c.met[i.reason], i.reason); c.met[i.reason] == 0 {
			t.Errorf("no cell differs as intended any more: %s", i.reason)
		}
	}
	if c.allowed.Load() == 0 {
		t.Error("nothing is allowed")
	}
}

// shownDifferences is how many differences are shown in full.
const shownDifferences = 50

func (c *comparison) compare(t *testing.T, one cell) error {
	first, second, err := c.both(t.Context(), one.ask)
	if err != nil {
		return err
	}
	ours, err := c.verdict(first)
	if err != nil {
		return fmt.Errorf("%s: %w", c.ours.name, err)
	}
	theirs, err := c.verdict(second)
	if err != nil {
		return fmt.Errorf("%s: %w", c.theirs.name, err)
	}
	c.cells.Add(1)
	if ours == theirs {
		if ours {
			c.allowed.Add(1)
		}
		return nil
	}
	for _, i := range c.intended {
		if i.is(one, ours, theirs) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.met[i.reason]++
			return nil
		}
	}
	c.report(t, "%s, %s: %s says %v, %s; %s says %v, %s", one.who, one.what, c.ours.name, ours, first.summary(), c.theirs.name, theirs, second.summary())
	return nil
}

// report fails the test with a difference, and shows it unless there are too many.
func (c *comparison) report(t *testing.T, format string, args ...any) {
	t.Helper()
	if c.differ.Add(1) <= shownDifferences {
		t.Errorf(format, args...)
	} else {
		t.Fail()
	}
}

// thinned reports whether a cell is one of those that are compared, one in n.
func thinned(n uint, who person, what string) bool {
	h := fnv.New32a()
	fmt.Fprint(h, who, what)
	return uint(h.Sum32())%n == 0
}

// oneIn thins out the matrix.
var oneIn = flag.Uint("matrix", 12, "compare one review of resources in so many, and four times as many of the writes, always the same ones")

// compareReviews asks by SubjectAccessReviews of root.
func (p pair) compareReviews(t *testing.T, people []person, questions []access) {
	var cells []cell
	for _, who := range people {
		for _, q := range questions {
			if q.isPath || thinned(*oneIn, who, q.String()) {
				cells = append(cells, cell{who, q.String(), reviewOf(who, q), q.path})
			}
		}
	}
	c := &comparison{pair: p, intended: builtInDifferences, verdict: outcome.allowed}
	c.run(t, cells)
}

// compareOwnReviews asks by SelfSubjectAccessReviews of the identities, as root acts as them.
// So the servers add the groups that they give to everybody.
func (p pair) compareOwnReviews(t *testing.T, people []person, questions []access) {
	var cells []cell
	for _, who := range people {
		for _, q := range questions {
			if q.isPath && q.verb == "get" || thinned(10**oneIn, who, q.String()) {
				cells = append(cells, cell{who, q.String(), ownReviewOf(who, q), q.path})
			}
		}
	}
	c := &comparison{pair: p, intended: builtInDifferences[:2], // Strangers may not ask.
		verdict: outcome.allowed}
	c.run(t, cells)
}

// builtInDifferences are those of the roles that the servers have of their own.
var builtInDifferences = []intended{
	{"everybody with a proof may GET /, which lists the paths of this server", func(c cell, ours, _ bool) bool {
		return ours && c.path == "/"
	}},
	{"accounts may see the keys of their tokens at a kube-apiserver; this server has no such path", func(c cell, ours, _ bool) bool {
		return !ours && strings.HasPrefix(c.path, "/.well-known/")
	}},
	{"strangers may see the version and the health of a kube-apiserver; here the health needs no right, and the version a proof", func(c cell, ours, _ bool) bool {
		return !ours && slices.Contains([]string{"/healthz", "/livez", "/readyz", "/version", "/version/"}, c.path) && (c.who.Name == "system:anonymous" || slices.Contains(c.who.Groups, "system:unauthenticated"))
	}},
}
