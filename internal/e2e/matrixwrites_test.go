package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// writers are users who write roles and bindings, with the ClusterRoles that they have: by
// namespace, "" for everywhere.
var writers = map[string][]struct{ role, namespace string }{
	"writer":                   {{"writes-roles", ""}},
	"writer-in-shop":           {{"writes-roles", "shop"}},
	"writer-reads":             {{"writes-roles", ""}, {"reads", ""}},
	"writer-reads-in-shop":     {{"writes-roles", ""}, {"reads", "shop"}},
	"writer-names":             {{"writes-roles", ""}, {"names", ""}, {"names-of-all", "shop"}},
	"writer-subresources":      {{"writes-roles", ""}, {"subresources", ""}, {"subresource-of-any", "shop"}, {"any-subresource", ""}},
	"writer-any":               {{"writes-roles", ""}, {"any-resource", ""}, {"any-verb", ""}, {"any-group", "shop"}},
	"writer-paths":             {{"writes-roles", ""}, {"paths", ""}},
	"writer-any-path":          {{"writes-roles", ""}, {"any-path", ""}},
	"writer-sum":               {{"writes-roles", ""}, {"sum", ""}},
	"writer-parts":             {{"writes-roles", ""}, {"part-1", ""}, {"part-2", "shop"}},
	"writer-escalates":         {{"writes-roles", ""}, {"escalates", ""}},
	"writer-escalates-in-shop": {{"writes-roles", ""}, {"escalates", "shop"}},
	"writer-escalates-some":    {{"writes-roles", ""}, {"escalates-some", ""}},
	"writer-binds":             {{"writes-roles", ""}, {"binds", ""}},
	"writer-binds-in-shop":     {{"writes-roles", ""}, {"binds", "shop"}},
	"writer-binds-some":        {{"writes-roles", ""}, {"binds-some", ""}},
	"writer-any-of-all":        {{"any-of-all", ""}},
	"writer-all-of-shop":       {{"any-of-all", "shop"}},
	"writer-all-and-paths":     {{"all-and-paths", ""}},
	"writer-of-nothing":        {{"reads", ""}},
}

// storeWriters gives the writers their roles.
func (p pair) storeWriters(t *testing.T) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(writers)) {
		for i, has := range writers[name] {
			p.store(t, bindingTo(fmt.Sprintf("%s-%d", name, i), has.namespace, "ClusterRole", has.role, name))
		}
	}
}

// written is the verdict about writes: whether they are accepted.
func (r outcome) written() (bool, error) {
	if r.code == 401 || r.code >= 500 {
		return false, fmt.Errorf("%d %s", r.code, r.text)
	}
	return r.code < 300, nil
}

// write is a write of a role or binding, tried only.
type write struct {
	what string
	request
}

// compareWrites tries writes of roles and bindings by users who lack rights. Both servers
// accept the same ones. Nothing is stored.
func (p pair) compareWrites(t *testing.T) {
	writes := slices.Concat(newRoles(t), newBindings(t), changedRoles(t), changedBindings(t))
	var cells []cell
	for _, name := range slices.Sorted(maps.Keys(writers)) {
		for _, w := range writes {
			who := person{Name: name}
			if !thinned(max(1, *oneIn/4), who, w.what) {
				continue
			}
			r := w.request
			r.as = &who
			cells = append(cells, cell{who: who, what: w.what, ask: r})
		}
	}
	c := &comparison{pair: p, intended: writeDifferences, verdict: outcome.written}
	c.run(t, cells)
}

// writeDifferences are the intended differences of writes.
var writeDifferences = []intended{
	{"an object without the uid of the stored one is a change for Kubernetes; here it is none if the rest is the same", func(c cell, ours, _ bool) bool {
		return ours && strings.HasPrefix(c.what, "replace ") && strings.HasSuffix(c.what, " with itself")
	}},
	{"Kubernetes stores the rules that a role aggregates, so that to remove them is a change; here it has none", func(c cell, ours, _ bool) bool {
		return ours && c.what == "patch ClusterRole sum with rules: nothing"
	}},
	{"the verb escalate on a name counts also when the role of that name is made; a kube-apiserver does not know the name yet", func(c cell, ours, _ bool) bool {
		return ours && c.who.Name == "writer-escalates-some" && strings.HasPrefix(c.what, "create ")
	}},
}

// givenRules are rules that somebody tries to give.
var givenRules = map[string]string{
	"nothing":                  `[]`,
	"one right":                `[{apiGroups: [networking.istio.io], resources: [gateways], verbs: [get]}]`,
	"the rights of reads":      `[{apiGroups: [networking.istio.io], resources: [virtualservices, gateways], verbs: [get, list, watch]}, {apiGroups: [config.istio.io], resources: [routerules], verbs: [get]}]`,
	"one verb more":            `[{apiGroups: [networking.istio.io], resources: [gateways], verbs: [get, list, watch, delete]}]`,
	"one resource more":        `[{apiGroups: [networking.istio.io], resources: [gateways, sidecars], verbs: [get]}]`,
	"every verb":               `[{apiGroups: [networking.istio.io], resources: [gateways], verbs: ["*"]}]`,
	"every verb on pods":       `[{apiGroups: [""], resources: [pods], verbs: ["*"]}]`,
	"every resource":           `[{apiGroups: [networking.istio.io], resources: ["*"], verbs: [get]}]`,
	"every group":              `[{apiGroups: ["*"], resources: [gateways], verbs: [get]}]`,
	"pods of every group":      `[{apiGroups: ["*"], resources: [pods], verbs: [get]}]`,
	"one name":                 `[{apiGroups: [networking.istio.io], resources: [virtualservices], resourceNames: [a], verbs: [get, delete]}]`,
	"two names":                `[{apiGroups: [networking.istio.io], resources: [virtualservices], resourceNames: [a, b], verbs: [get]}]`,
	"a name that is empty":     `[{apiGroups: [networking.istio.io], resources: [virtualservices], resourceNames: [""], verbs: [get]}]`,
	"secrets by name":          `[{apiGroups: [""], resources: [secrets], resourceNames: [a], verbs: [get]}]`,
	"a subresource":            `[{apiGroups: [networking.istio.io], resources: [virtualservices/status], verbs: [get]}]`,
	"pods/log":                 `[{apiGroups: [""], resources: [pods/log], verbs: [get]}]`,
	"status of any":            `[{apiGroups: [networking.istio.io], resources: ["*/status"], verbs: [get]}]`,
	"any subresource":          `[{apiGroups: [""], resources: ["pods/*"], verbs: [get]}]`,
	"everything":               `[{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]`,
	"everything and all paths": `[{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}, {nonResourceURLs: ["*"], verbs: ["*"]}]`,
	"a path":                   `[{nonResourceURLs: [/metrics], verbs: [get]}]`,
	"a path below":             `[{nonResourceURLs: [/debug/x], verbs: [get]}]`,
	"paths below":              `[{nonResourceURLs: [/debug/x/*, /debug/*], verbs: [get]}]`,
	"shorter paths":            `[{nonResourceURLs: [/debug*], verbs: [get]}]`,
	"all paths":                `[{nonResourceURLs: ["*"], verbs: [get]}]`,
	"all paths below":          `[{nonResourceURLs: ["/*"], verbs: [get]}]`,
	"to post a path":           `[{nonResourceURLs: [/metrics], verbs: [post]}]`,
	"to write roles":           `[{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [create, update]}]`,
	"to escalate":              `[{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [escalate, bind]}]`,
	"the sum":                  `[{apiGroups: [networking.istio.io], resources: [sidecars], verbs: [get, list]}, {apiGroups: [""], resources: [pods], resourceNames: [a], verbs: [delete]}]`,
}

// newRoles returns writes of roles that are not there.
func newRoles(t *testing.T) (out []write) {
	for _, what := range slices.Sorted(maps.Keys(givenRules)) {
		for where, head := range map[string]string{
			"a Role in shop":       `kind: Role, metadata: {name: made, namespace: shop}`,
			"a Role in bank":       `kind: Role, metadata: {name: made, namespace: bank}`,
			"a Role, not by name":  `kind: Role, metadata: {name: other, namespace: shop}`,
			"a ClusterRole":        `kind: ClusterRole, metadata: {name: made}`,
			"a part":               `kind: ClusterRole, metadata: {name: made, labels: {to-sum: "yes"}}`,
			"a sum of some":        `kind: ClusterRole, metadata: {name: made}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {to-sum: "yes"}}]}`,
			"a sum of nothing":     `kind: ClusterRole, metadata: {name: made}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {to-sum: "no"}}]}`,
			"a sum of all":         `kind: ClusterRole, metadata: {name: made}, aggregationRule: {clusterRoleSelectors: [{}]}`,
			"a sum with no labels": `kind: ClusterRole, metadata: {name: made}, aggregationRule: {clusterRoleSelectors: []}`,
		} {
			m := parseManifest(t, "{"+head+", rules: "+givenRules[what]+"}")
			out = append(out, write{"create " + where + " with " + what, creating(m)})
			if where != "a Role in bank" {
				out = append(out, write{"apply " + where + " with " + what, applying(m)})
			}
		}
	}
	return out
}

func creating(m manifest) request {
	return request{method: "POST", path: m.collection() + "?dryRun=All", media: asJSON, body: m.json()}
}

func applying(m manifest) request {
	return request{method: "PATCH", path: m.collection() + "/" + m.name() + "?dryRun=All&fieldManager=matrix&force=true", media: applyPatch, body: m.json()}
}

func replacing(m manifest) request {
	return request{method: "PUT", path: m.collection() + "/" + m.name() + "?dryRun=All", media: asJSON, body: m.json()}
}

// merging returns a merge patch, in YAML, of an object.
func merging(t *testing.T, m manifest, patch string) request {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(patch))
	if err != nil {
		t.Fatal(err)
	}
	return request{method: "PATCH", path: m.collection() + "/" + m.name() + "?dryRun=All", media: mergePatch, body: text}
}

// newBindings returns writes of bindings that are not there, to each role and to some that are
// not there.
func newBindings(t *testing.T) (out []write) {
	t.Helper()
	roles := append(readManifests(t, "roles.yaml"),
		parseManifest(t, `{kind: ClusterRole, metadata: {name: not-there}}`), parseManifest(t, `{kind: ClusterRole, metadata: {name: not-there-2}}`),
		parseManifest(t, `{kind: Role, metadata: {name: not-there}}`), parseManifest(t, `{kind: Role, metadata: {name: not-there-2}}`))
	for _, role := range roles {
		for _, namespace := range []string{"", "shop", "bank"} {
			if namespace == "" && !role.isCluster() {
				continue // It is not valid.
			}
			m := bindingTo("made", namespace, role.kind(), role.name(), "nil")
			what := fmt.Sprintf("bind %s %s in %q", role.kind(), role.name(), namespace)
			out = append(out, write{what, creating(m)}, write{what + " by apply", applying(m)})
		}
	}
	return out
}

// changedRoles returns changes of the roles that are there.
func changedRoles(t *testing.T) (out []write) {
	t.Helper()
	patches := map[string]string{
		"nothing":        `{}`,
		"an annotation":  `{metadata: {annotations: {x: "y"}}}`,
		"a label":        `{metadata: {labels: {x: "y"}}}`,
		"a label to sum": `{metadata: {labels: {to-sum: "yes"}}}`,
		"a finalizer":    `{metadata: {finalizers: [example.com/x]}}`,
	}
	for what, rules := range givenRules {
		patches["rules: "+what] = "{rules: " + rules + "}"
	}
	clusterPatches := map[string]string{
		"no aggregation":                  `{aggregationRule: null}`,
		"aggregation":                     `{aggregationRule: {clusterRoleSelectors: [{matchLabels: {to-sum: "yes"}}]}}`,
		"no aggregation and no rules":     `{aggregationRule: null, rules: []}`,
		"another aggregation of nothing":  `{aggregationRule: {clusterRoleSelectors: [{matchLabels: {x: "y"}}]}}`,
		"no labels, which takes it apart": `{metadata: {labels: null}}`,
	}
	names := []string{"reads", "names", "any-of-all", "paths", "nothing", "sum", "part-1", "sum-with-own-rules", "all", "of-bank", "part-of-nothing"}
	for _, m := range readManifests(t, "roles.yaml") {
		if !slices.Contains(names, m.name()) {
			continue
		}
		id := m.kind() + " " + m.name()
		of := maps.Clone(patches)
		if m.isCluster() {
			maps.Copy(of, clusterPatches)
		}
		for _, what := range slices.Sorted(maps.Keys(of)) {
			out = append(out, write{"patch " + id + " with " + what, merging(t, m, of[what])})
		}
		out = append(out, write{"replace " + id + " with itself", replacing(m)})
		more := m.copied()
		more.meta()["annotations"] = map[string]any{"x": "y"}
		out = append(out, write{"replace " + id + " with an annotation", replacing(more)}, write{"apply " + id + " with an annotation", applying(more)})
	}
	return out
}

// changedBindings returns changes of bindings that are there.
func changedBindings(t *testing.T) (out []write) {
	t.Helper()
	patches := map[string]string{
		"nothing":       `{}`,
		"an annotation": `{metadata: {annotations: {x: "y"}}}`,
		"a label":       `{metadata: {labels: {x: "y"}}}`,
		"a finalizer":   `{metadata: {finalizers: [example.com/x]}}`,
		"no subjects":   `{subjects: null}`,
		"a subject":     `{subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: nil}]}`,
		"another role":  `{roleRef: {name: nothing}}`,
		"a Role":        `{roleRef: {kind: Role}}`,
	}
	for _, name := range []string{"reads", "names", "nothing", "sum", "sum-with-own-rules", "paths", "any-of-all", "all-and-paths", "missing"} {
		for _, namespace := range []string{"", "shop"} {
			role := name
			if name == "missing" {
				role = map[string]string{"": "all", "shop": "not-there"}[namespace]
			}
			m := bindingTo(name, namespace, "ClusterRole", role, name)
			if namespace != "" && name == "missing" {
				m = bindingTo("missing", "shop", "ClusterRole", role, "missing")
			} else if namespace != "" {
				m["subjects"] = bindingTo("", "", "", "", name+".shop")["subjects"]
			}
			id := fmt.Sprintf("%s %s in %q", m.kind(), name, namespace)
			for _, what := range slices.Sorted(maps.Keys(patches)) {
				out = append(out, write{"patch " + id + " with " + what, merging(t, m, patches[what])})
			}
			out = append(out, write{"replace " + id + " with itself", replacing(m)})
		}
	}
	return out
}

// validity are objects that root writes. Some are not valid.
var validity = map[string]string{
	"a Role":                        `{kind: Role, metadata: {name: made, namespace: shop}, rules: []}`,
	"a Role without rules":          `{kind: Role, metadata: {name: made, namespace: shop}}`,
	"a Role with a path":            `{kind: Role, metadata: {name: made, namespace: shop}, rules: [{nonResourceURLs: [/x], verbs: [get]}]}`,
	"no verbs":                      `{kind: ClusterRole, metadata: {name: made}, rules: [{apiGroups: [""], resources: [x]}]}`,
	"no groups":                     `{kind: ClusterRole, metadata: {name: made}, rules: [{resources: [x], verbs: [get]}]}`,
	"no resources":                  `{kind: ClusterRole, metadata: {name: made}, rules: [{apiGroups: [""], verbs: [get]}]}`,
	"both":                          `{kind: ClusterRole, metadata: {name: made}, rules: [{apiGroups: [""], resources: [x], nonResourceURLs: [/x], verbs: [get]}]}`,
	"names and paths":               `{kind: ClusterRole, metadata: {name: made}, rules: [{resourceNames: [x], nonResourceURLs: [/x], verbs: [get]}]}`,
	"a star within a path":          `{kind: ClusterRole, metadata: {name: made}, rules: [{nonResourceURLs: [/x/*/y], verbs: [get]}]}`,
	"a path without a slash":        `{kind: ClusterRole, metadata: {name: made}, rules: [{nonResourceURLs: [x], verbs: [get]}]}`,
	"an empty path":                 `{kind: ClusterRole, metadata: {name: made}, rules: [{nonResourceURLs: [""], verbs: [get]}]}`,
	"an empty rule":                 `{kind: ClusterRole, metadata: {name: made}, rules: [{}]}`,
	"a name with colons":            `{kind: ClusterRole, metadata: {name: "a:b@c d"}, rules: []}`,
	"a name with a slash":           `{kind: ClusterRole, metadata: {name: "a/b"}, rules: []}`,
	"a name with a percent":         `{kind: ClusterRole, metadata: {name: "a%b"}, rules: []}`,
	"a name that is a dot":          `{kind: ClusterRole, metadata: {name: "."}, rules: []}`,
	"a Role with aggregation":       `{kind: Role, metadata: {name: made, namespace: shop}, aggregationRule: {clusterRoleSelectors: [{}]}}`,
	"aggregation of no selectors":   `{kind: ClusterRole, metadata: {name: made}, aggregationRule: {clusterRoleSelectors: []}}`,
	"an empty aggregation":          `{kind: ClusterRole, metadata: {name: made}, aggregationRule: {}}`,
	"a selector that is wrong":      `{kind: ClusterRole, metadata: {name: made}, aggregationRule: {clusterRoleSelectors: [{matchExpressions: [{key: x, operator: Is, values: [y]}]}]}}`,
	"a selector of a bad value":     `{kind: ClusterRole, metadata: {name: made}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {x: "a b"}}]}}`,
	"a binding":                     `{kind: RoleBinding, metadata: {name: made, namespace: shop}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reads}, subjects: [{kind: User, name: x}]}`,
	"no subjects":                   `{kind: RoleBinding, metadata: {name: made, namespace: shop}, roleRef: {kind: Role, name: reads}}`,
	"no kind of subject":            `{kind: RoleBinding, metadata: {name: made, namespace: shop}, roleRef: {kind: Role, name: reads}, subjects: [{name: x}]}`,
	"another kind of subject":       `{kind: RoleBinding, metadata: {name: made, namespace: shop}, roleRef: {kind: Role, name: reads}, subjects: [{kind: Robot, name: x}]}`,
	"a subject without a name":      `{kind: RoleBinding, metadata: {name: made, namespace: shop}, roleRef: {kind: Role, name: reads}, subjects: [{kind: User}]}`,
	"a user of another group":       `{kind: RoleBinding, metadata: {name: made, namespace: shop}, roleRef: {kind: Role, name: reads}, subjects: [{apiGroup: x, kind: User, name: x}]}`,
	"a group of another group":      `{kind: RoleBinding, metadata: {name: made, namespace: shop}, roleRef: {kind: Role, name: reads}, subjects: [{apiGroup: x, kind: Group, name: x}]}`,
	"an account of a group":         `{kind: RoleBinding, metadata: {name: made, namespace: shop}, roleRef: {kind: Role, name: reads}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: ServiceAccount, name: x, namespace: shop}]}`,
	"an account, no namespace":      `{kind: RoleBinding, metadata: {name: made, namespace: shop}, roleRef: {kind: Role, name: reads}, subjects: [{kind: ServiceAccount, name: x}]}`,
	"an account, no namespace, all": `{kind: ClusterRoleBinding, metadata: {name: made}, roleRef: {kind: ClusterRole, name: reads}, subjects: [{kind: ServiceAccount, name: x}]}`,
	"an account with a bad name":    `{kind: RoleBinding, metadata: {name: made, namespace: shop}, roleRef: {kind: Role, name: reads}, subjects: [{kind: ServiceAccount, name: "A b", namespace: shop}]}`,
	"a user with a namespace":       `{kind: RoleBinding, metadata: {name: made, namespace: shop}, roleRef: {kind: Role, name: reads}, subjects: [{kind: User, name: x, namespace: shop}]}`,
	"a Role for all":                `{kind: ClusterRoleBinding, metadata: {name: made}, roleRef: {kind: Role, name: reads}}`,
	"no role":                       `{kind: ClusterRoleBinding, metadata: {name: made}}`,
	"no kind of role":               `{kind: ClusterRoleBinding, metadata: {name: made}, roleRef: {name: reads}}`,
	"another kind of role":          `{kind: RoleBinding, metadata: {name: made, namespace: shop}, roleRef: {kind: Rules, name: reads}}`,
	"no name of the role":           `{kind: RoleBinding, metadata: {name: made, namespace: shop}, roleRef: {kind: Role}}`,
	"a role of another group":       `{kind: RoleBinding, metadata: {name: made, namespace: shop}, roleRef: {apiGroup: x, kind: Role, name: reads}}`,
	"a role with a slash":           `{kind: RoleBinding, metadata: {name: made, namespace: shop}, roleRef: {kind: Role, name: "a/b"}}`,
	"a name that is there":          `{kind: ClusterRole, metadata: {name: reads}, rules: []}`,
	"a built-in role":               `{kind: ClusterRole, metadata: {name: view}, rules: []}`,
}

// compareValidity writes objects as root. Both servers accept the same ones.
func (p pair) compareValidity(t *testing.T) {
	var cells []cell
	for _, what := range slices.Sorted(maps.Keys(validity)) {
		cells = append(cells, cell{who: person{Name: "root"}, what: what, ask: creating(parseManifest(t, validity[what]))})
	}
	c := &comparison{pair: p, intended: validityDifferences, verdict: outcome.written}
	c.run(t, cells)
}

// onlyOne returns an intended difference about one object of validity.
func onlyOne(what, reason string) intended {
	return intended{what + ": " + reason, func(c cell, _, _ bool) bool { return c.what == what }}
}

// validityDifferences are objects that only one of the servers accepts.
var validityDifferences = []intended{
	onlyOne("a Role with aggregation", "a field that is not known is refused here, and dropped by a kube-apiserver"),
	onlyOne("a path without a slash", "no request has such a path"),
	onlyOne("a star within a path", "a kube-apiserver takes it for the character *"),
	onlyOne("an empty path", "no request has such a path"),
	onlyOne("a user with a namespace", "a kube-apiserver ignores the namespace"),
	onlyOne("an account, no namespace", "a kube-apiserver takes the namespace of the binding"),
	onlyOne("a role with a slash", "no role can have the name, so the binding gives nothing"),
	onlyOne("an account with a bad name", "no account can have the name, so the binding gives nothing"),
}
