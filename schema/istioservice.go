package schema

import (
	"fmt"
	"slices"
	"strings"
)

// IstioService refers to a service, or to the part of it that bears labels.
// Either Name is set, perhaps with Namespace and Domain, or Service alone.
type IstioService struct {
	// Name is the short name, one DNS label.
	Name string `json:"name"`
	// Namespace, when empty, is that of the object that refers.
	Namespace string `json:"namespace"`
	// Domain, when empty, is "svc." and the domain of the mesh.
	Domain string `json:"domain"`
	// Service is a whole host name, a wildcard or a CIDR.
	Service string `json:"service"`
	// Labels, when empty, mean all instances.
	Labels map[string]string `json:"labels"`
}

// String is the reference as a person would say it: "reviews",
// "reviews.prod", "*.google.com", with labels in brackets.
func (s *IstioService) String() string {
	if s == nil {
		return ""
	}
	text := s.Service
	if text == "" {
		text = strings.Join(slices.DeleteFunc([]string{s.Name, s.Namespace, s.Domain}, func(part string) bool { return part == "" }), ".")
	}
	if len(s.Labels) > 0 {
		text += "[" + labelsText(s.Labels) + "]"
	}
	return text
}

// The well-formedness of each part is the JSON Schema's business; here is how
// the parts go together.
func (p *problems) service(field string, s *IstioService) {
	switch {
	case s == nil:
		return
	case s.Name == "" && s.Service == "":
		p.required(field, "must name a service by name (one label) or service (a whole host)")
	case s.Name != "" && s.Service != "":
		p.forbidden(field+".service", "cannot stand beside name: give one of the two")
	}
	if s.Service != "" && s.Namespace != "" {
		p.forbidden(field+".namespace", "cannot stand beside service, which is a whole host name already")
	}
	if s.Service != "" && s.Domain != "" {
		p.forbidden(field+".domain", "cannot stand beside service, which is a whole host name already")
	}
	p.emptyLabels(field, s.Labels)
}

func (p *problems) noLabels(field string, s *IstioService) {
	if s != nil && len(s.Labels) > 0 {
		p.forbidden(field+".labels", "the destination of a rule is a whole service; choose versions by labels elsewhere (spec.route[].labels in a RouteRule, spec.destination.labels in a DestinationPolicy)")
	}
}

func (p *problems) emptyLabels(field string, labels map[string]string) {
	if labels != nil && len(labels) == 0 {
		p.suspect(field+".labels", "an empty map is read as no labels at all: every instance is meant")
	}
}

func labelsText(labels map[string]string) string {
	var parts []string
	for k, v := range labels {
		parts = append(parts, fmt.Sprintf("%s=%s", k, v))
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}
