package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

const (
	asJSON     = "application/json"
	mergePatch = "application/merge-patch+json"
	applyPatch = "application/apply-patch+yaml"
)

// notForbidden is the verdict about requests whose right alone matters: whether they are
// answered with something else than 403.
func (r outcome) notForbidden() (bool, error) {
	if r.code == http.StatusUnauthorized {
		return false, fmt.Errorf("%d %s", r.code, r.text)
	}
	return r.code != http.StatusForbidden, nil
}

// compareRequests sends requests as the identities. None of them changes anything, and most
// are about objects that are not there: only their right matters.
func (p pair) compareRequests(t *testing.T, people []person) {
	requests := slices.Concat(objectRequests(), pathRequests())
	var cells []cell
	for _, who := range people {
		for _, r := range requests {
			r.as = &who
			cells = append(cells, cell{who: who, what: r.method + " " + r.path, ask: r})
		}
	}
	c := &comparison{pair: p, intended: requestDifferences, verdict: outcome.notForbidden}
	c.run(t, cells)
}

// objectRequests returns requests of collections and objects that both servers have.
func objectRequests() (out []request) {
	var collections []string
	for _, namespace := range []string{"", "shop", "bank"} {
		collections = append(collections, rbacPath("roles", namespace), rbacPath("rolebindings", namespace))
		in := ""
		if namespace != "" {
			in = "/namespaces/" + namespace
		}
		collections = append(collections, "/api/v1"+in+"/serviceaccounts")
	}
	collections = append(collections, rbacPath("clusterroles", ""), rbacPath("clusterrolebindings", ""))
	for _, path := range collections {
		out = append(out,
			request{method: "GET", path: path + "?limit=1"},
			request{method: "HEAD", path: path + "?limit=1"},
			request{method: "GET", path: path + "?watch=true&resourceVersion=none"},
		)
		if !strings.Contains(path, "/namespaces/") && !strings.Contains(path, "/cluster") {
			continue
		}
		out = append(out,
			request{method: "POST", path: path + "?dryRun=All", media: asJSON, body: []byte(`{}`)},
			request{method: "DELETE", path: path + "?dryRun=All&labelSelector=none%3Dnone"},
		)
		for _, name := range []string{"a", "b"} {
			one := path + "/" + name
			out = append(out,
				request{method: "GET", path: one},
				request{method: "PUT", path: one + "?dryRun=All", media: asJSON, body: []byte(`{}`)},
				request{method: "PATCH", path: one + "?dryRun=All", media: mergePatch, body: []byte(`{}`)},
				request{method: "DELETE", path: one + "?dryRun=All"},
			)
			if strings.HasSuffix(path, "/serviceaccounts") {
				out = append(out, request{method: "POST", path: one + "/token", media: asJSON, body: []byte(`{}`)})
			}
		}
	}
	return append(out, request{method: "GET", path: "/api/v1/namespaces?limit=1"}, request{method: "GET", path: "/api/v1/namespaces/shop"}, request{method: "GET", path: "/api/v1/namespaces/a"})
}

// pathRequests returns requests of paths that are no resources.
func pathRequests() (out []request) {
	for _, path := range []string{"/metrics", "/version", "/api", "/api/v1", "/apis", "/apis/rbac.authorization.k8s.io", "/apis/rbac.authorization.k8s.io/v1", "/openapi/v3", "/healthz", "/livez", "/readyz", "/"} {
		out = append(out, request{method: "GET", path: path}, request{method: "HEAD", path: path})
	}
	for _, kind := range []string{"SelfSubjectAccessReview", "SubjectAccessReview", "SelfSubjectRulesReview"} {
		out = append(out, request{method: "POST", path: reviewsPath + strings.ToLower(kind) + "s", media: asJSON, body: []byte(`{}`)})
	}
	return append(out, request{method: "POST", path: whoPath, media: asJSON, body: []byte(`{}`)})
}

const whoPath = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

// requestDifferences are the intended differences of requests.
var requestDifferences = []intended{
	{"who may GET a path may also send HEAD, as for resources", func(c cell, ours, _ bool) bool {
		return ours && c.ask.method == "HEAD" && !strings.Contains(c.ask.path, "?")
	}},
	{"everybody with a proof may GET /, which lists the paths of this server", func(c cell, ours, _ bool) bool {
		return ours && c.ask.path == "/"
	}},
	{"strangers may see the version of a kube-apiserver", func(c cell, ours, _ bool) bool {
		return !ours && c.ask.path == "/version" && c.who.Name == "system:anonymous"
	}},
}

// senders are users with tokens of their own, who act as others.
var senders = []string{"nil", "other-verbs", "other-verbs.shop", "names-of-all", "names-of-all.shop", "any-of-all", "any-of-all.shop"}

func tokenOf(user string) string { return "the-token-of-" + user + "-at-both-servers" }

// targets are identities to act as.
var targets = []person{
	{}, {Name: "a"}, {Name: "b"}, {Name: "a", Groups: []string{"a"}}, {Name: "a", Groups: []string{"b"}}, {Name: "a", Groups: []string{"a", "c"}}, {Name: "a", Groups: []string{"a", "b"}},
	{Name: "a", Groups: []string{authenticated}}, {Name: "a", Groups: []string{"system:unauthenticated"}}, {Name: "a", Groups: []string{"system:masters"}}, {Name: "a", Groups: []string{"a", authenticated}},
	{Name: "a", Groups: []string{"a", "a"}}, {Groups: []string{"a"}}, {Name: "system:masters"}, {Name: "root"},
	{Name: "system:anonymous"}, {Name: "system:anonymous", Groups: []string{"a"}}, {Name: "system:anonymous", Groups: []string{"system:unauthenticated"}}, {Name: "system:anonymous", Groups: []string{authenticated}},
	{Name: "system:serviceaccount:shop:a"}, {Name: "system:serviceaccount:bank:a"}, {Name: "system:serviceaccount:shop:b"},
	{Name: "system:serviceaccount:shop:a", Groups: []string{"a"}}, {Name: "system:serviceaccount:shop:a", Groups: []string{"system:serviceaccounts"}}, account("shop", "a"),
	{Name: "system:serviceaccount:shop:a:b"}, {Name: "system:serviceaccount:shop"}, {Name: "system:serviceaccount::a"}, {Name: "system:serviceaccount:shop:"}, {Name: "system:serviceaccount:Shop:a"}, {Name: "system:serviceaccount:shop:A_b"},
}

// compareImpersonation acts as other identities on both servers and asks for its own. The
// name, the groups and the right to act so must be the same.
func (p pair) compareImpersonation(t *testing.T) {
	cells := 0
	for _, sender := range append(slices.Clone(senders), "root") {
		for _, target := range targets {
			r := request{token: tokenOf(sender), as: &target, method: "POST", path: whoPath, media: asJSON, body: []byte(`{}`)}
			first, second, err := p.both(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			cells++
			if ours, theirs := first.identity(), second.identity(); ours != theirs {
				t.Errorf("%s as %s: %s says %s\n%s says %s", sender, target, p.ours.name, ours, p.theirs.name, theirs)
			}
		}
	}
	t.Logf("%d cells compared", cells)
}

// identity returns the name and the groups in a review, or that it was refused.
func (r outcome) identity() string {
	review := struct {
		Status struct {
			UserInfo struct {
				Username string
				Groups   []string
			}
		}
	}{}
	if r.code != http.StatusCreated {
		return fmt.Sprintf("%d", r.code)
	}
	if err := json.Unmarshal(r.text, &review); err != nil {
		return err.Error()
	}
	slices.Sort(review.Status.UserInfo.Groups)
	return fmt.Sprintf("%q of %q", review.Status.UserInfo.Username, review.Status.UserInfo.Groups)
}
