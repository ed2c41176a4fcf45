package schema

import (
	"fmt"
	"slices"
	"strings"
)

// IstioService refers to a service, or to its instances with certain labels. Either
// Name is set, optionally with Namespace and Domain, or Service alone.
type IstioService struct {
	// Name is the short name, one DNS label.
	Name string `json:"name"`
	// Namespace, if empty, is that of the referring object.
	Namespace string `json:"namespace"`
	// Domain, if empty, is "svc." and the domain of the mesh.
	Domain string `json:"domain"`
	// Service is a whole host name, a wildcard or a CIDR.
	Service string `json:"service"`
	// Labels, if empty, mean all instances.
	Labels map[string]string `json:"labels"`
}

// String returns the reference in its usual form: "reviews", "reviews.prod",
// "*.google.com", with labels in brackets.
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

// service checks how the parts go together. The JSON Schema checks each part.
func (p *problems) service(field string, s *IstioService) {
	switch {
	case s == nil:
		return
	case s.Name == "" && s.Service == "":
		p.required(field, "must name a service by name (one label) or service (a whole host)")
	case s.Name != "" && s.Service != "":
		p.forbidden(field+".service", "cannot be given together with name: give one of the two")
	}
	if s.Service != "" && s.Namespace != "" {
		p.forbidden(field+".namespace", "cannot be given together with service, which is a whole host name already")
	}
	if s.Service != "" && s.Domain != "" {
		p.forbidden(field+".domain", "cannot be given together with service, which is a whole host name already")
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
		p.suspect(field+".labels", "an empty map means no labels: it selects every instance")
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
