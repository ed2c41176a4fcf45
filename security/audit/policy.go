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
	LevelNone            = "None"
	LevelMetadata        = "Metadata"
	LevelRequest         = "Request"         // with the object of the request
	LevelRequestResponse = "RequestResponse" // with that of the answer, too
)

var levels = []string{LevelNone, LevelMetadata, LevelRequest, LevelRequestResponse}

// stages are those that a policy may leave out. Kubernetes has Panic too, which is a
// StageComplete with the code 500 here.
var stages = []string{StageReceived, StageStarted, StageComplete, "Panic"}

// Policy decides which requests are recorded, and how: the first rule that matches decides.
// Its form is that of Kubernetes.
type Policy struct {
	APIVersion        string         `json:"apiVersion"`
	Kind              string         `json:"kind"`
	Metadata          map[string]any `json:"metadata,omitempty"`
	OmitStages        []string       `json:"omitStages,omitempty"`
	OmitManagedFields bool           `json:"omitManagedFields,omitempty"`
	Rules             []Rule         `json:"rules"`
}

// Rule is one rule. An empty list matches everything. OmitStages is in addition to that of the
// policy, and OmitManagedFields, if it is there, counts instead of that of the policy.
type Rule struct {
	Level             string   `json:"level"`
	OmitStages        []string `json:"omitStages,omitempty"`
	OmitManagedFields *bool    `json:"omitManagedFields,omitempty"`

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
	if err := checkStages("omitStages", p.OmitStages); err != nil {
		return nil, err
	}
	for i, r := range p.Rules {
		if !slices.Contains(levels, r.Level) {
			return nil, fmt.Errorf("rules[%d].level: must be one of %s, found %q", i, strings.Join(levels, ", "), r.Level)
		}
		if err := checkStages(fmt.Sprintf("rules[%d].omitStages", i), r.OmitStages); err != nil {
			return nil, err
		}
		if len(r.Resources)+len(r.Namespaces) > 0 && len(r.NonResourceURLs) > 0 {
			return nil, fmt.Errorf("rules[%d]: must be for resources or for nonResourceURLs", i)
		}
	}
	return &p, nil
}

func checkStages(field string, omitted []string) error {
	for _, one := range omitted {
		if !slices.Contains(stages, one) {
			return fmt.Errorf("%s: must have only %s, found %q", field, strings.Join(stages, ", "), one)
		}
	}
	return nil
}

// omitsStages reports whether events of some stage are left out.
func (p *Policy) omitsStages() bool {
	return p != nil && (len(p.OmitStages) > 0 || slices.ContainsFunc(p.Rules, func(r Rule) bool { return len(r.OmitStages) > 0 }))
}

// reads are the verbs that change nothing.
var reads = []string{"get", "list", "watch", "head", "options"}

// Decision is what a policy wants of the events of a request.
type Decision struct {
	Level             string
	OmitManagedFields bool
	omitStages        []string
}

// Decide returns what the policy wants of the events of a request. Without a policy, each
// request that may change something has events with its metadata.
func (p *Policy) Decide(e *Event) Decision {
	if p == nil {
		if slices.Contains(reads, e.Verb) || isReview(e) {
			return Decision{Level: LevelNone}
		}
		return Decision{Level: LevelMetadata}
	}
	for _, r := range p.Rules {
		if !r.fits(e) {
			continue
		}
		d := Decision{r.Level, p.OmitManagedFields, slices.Concat(p.OmitStages, r.OmitStages)}
		if r.OmitManagedFields != nil {
			d.OmitManagedFields = *r.OmitManagedFields
		}
		return d
	}
	return Decision{Level: LevelNone}
}

// IsWanted reports whether an event of a request is recorded. Refusals always are.
func (d Decision) IsWanted(e *Event) bool {
	return e.IsRefusal() || d.Level != LevelNone && !slices.Contains(d.omitStages, e.Stage)
}

// HasRequest reports whether events have the object of the request.
func (d Decision) HasRequest() bool {
	return d.Level == LevelRequest || d.Level == LevelRequestResponse
}

// HasResponse reports whether events have the object of the answer.
func (d Decision) HasResponse() bool { return d.Level == LevelRequestResponse }

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
