package audit

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// policyVersion is the apiVersion of a policy.
const policyVersion = "audit.k8s.io/v1"

// The levels of a rule.
const (
	LevelNone     = "None"
	LevelMetadata = "Metadata"
)

// Policy decides which requests are recorded: the first rule that matches decides. Its form
// is that of Kubernetes, with only the levels None and Metadata, because bodies are never
// recorded.
type Policy struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata,omitempty"`
	Rules      []Rule         `json:"rules"`
}

// Rule is one rule. An empty list matches everything.
type Rule struct {
	Level           string          `json:"level"`
	Users           []string        `json:"users,omitempty"`
	UserGroups      []string        `json:"userGroups,omitempty"`
	Verbs           []string        `json:"verbs,omitempty"`
	Resources       []GroupResource `json:"resources,omitempty"`
	Namespaces      []string        `json:"namespaces,omitempty"`
	NonResourceURLs []string        `json:"nonResourceURLs,omitempty"`
}

// GroupResource names resources of an API group; an empty list means all of the group.
type GroupResource struct {
	Group         string   `json:"group,omitempty"`
	Resources     []string `json:"resources,omitempty"`
	ResourceNames []string `json:"resourceNames,omitempty"`
}

// ParsePolicy reads a policy in YAML. It accepts nothing that would have no effect.
func ParsePolicy(text []byte) (*Policy, error) {
	var p Policy
	if err := yaml.UnmarshalStrict(text, &p); err != nil {
		return nil, err
	}
	if p.APIVersion != policyVersion || p.Kind != "Policy" {
		return nil, fmt.Errorf("must be a Policy of %s, found %s of %s", policyVersion, p.Kind, p.APIVersion)
	}
	if len(p.Rules) == 0 {
		return nil, fmt.Errorf("rules: must have at least one")
	}
	for i, r := range p.Rules {
		if r.Level != LevelNone && r.Level != LevelMetadata {
			return nil, fmt.Errorf("rules[%d].level: must be None or Metadata (no body is ever written down), found %q", i, r.Level)
		}
		if len(r.Resources)+len(r.Namespaces) > 0 && len(r.NonResourceURLs) > 0 {
			return nil, fmt.Errorf("rules[%d]: must be for resources or for nonResourceURLs", i)
		}
	}
	return &p, nil
}

// reads are the verbs that change nothing.
var reads = []string{"get", "list", "watch", "head", "options"}

// IsWanted reports whether an event is recorded. Refusals always are. Without a policy, so
// is every request that may change something.
func (p *Policy) IsWanted(e *Event) bool {
	if e.IsRefusal() {
		return true
	}
	if p == nil {
		return !slices.Contains(reads, e.Verb) && !isReview(e)
	}
	for _, r := range p.Rules {
		if r.fits(e) {
			return r.Level != LevelNone
		}
	}
	return false
}

// isReview reports whether a request only asks what somebody may do.
func isReview(e *Event) bool {
	return strings.HasSuffix(e.Group, "ation.k8s.io") && strings.HasSuffix(e.Resource, "reviews")
}

func (r *Rule) fits(e *Event) bool {
	return among(r.Users, e.User) && (len(r.UserGroups) == 0 || slices.ContainsFunc(e.Groups, func(g string) bool { return slices.Contains(r.UserGroups, g) })) &&
		among(r.Verbs, e.Verb) && among(r.Namespaces, e.Namespace) && r.fitsTarget(e)
}

func among(list []string, word string) bool { return len(list) == 0 || slices.Contains(list, word) }

func (r *Rule) fitsTarget(e *Event) bool {
	switch {
	case len(r.NonResourceURLs) > 0:
		return e.Resource == "" && slices.ContainsFunc(r.NonResourceURLs, func(url string) bool {
			prefix, isPrefix := strings.CutSuffix(url, "*")
			return url == e.Path || isPrefix && strings.HasPrefix(e.Path, prefix)
		})
	case len(r.Resources) > 0:
		return e.Resource != "" && slices.ContainsFunc(r.Resources, func(g GroupResource) bool { return g.fits(e) })
	}
	return true
}

func (g GroupResource) fits(e *Event) bool {
	whole := e.Resource
	if e.Subresource != "" {
		whole += "/" + e.Subresource
	}
	in := len(g.Resources) == 0 || slices.ContainsFunc(g.Resources, func(one string) bool {
		return one == "*" || one == whole || one == e.Resource+"/*" && e.Subresource != "" || one == "*/"+e.Subresource && e.Subresource != ""
	})
	return g.Group == e.Group && in && among(g.ResourceNames, e.Name)
}
