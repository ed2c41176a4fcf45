package compile

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// hostname returns the host that an object of this namespace means: the service as
// written, or name.namespace.domain with missing parts filled in.
func (m *model) hostname(ref *schema.IstioService, namespace string) string {
	if ref.Service != "" {
		return ref.Service
	}
	if ref.Namespace != "" {
		namespace = ref.Namespace
	}
	domain := ref.Domain
	if domain == "" {
		domain = "svc." + m.settings.Domain
	}
	return ref.Name + "." + namespace + "." + domain
}

// source is a condition on the callers to which a rule or policy applies.
type source struct {
	host      string // "" for any service
	namespace string // of the service; "" for any
	// home is the namespace that the proxy itself must be in; "" for any. A service of
	// a namespace may list the address of any proxy as an endpoint, so it decides nothing
	// here.
	home   string
	labels mesh.Labels
	// reader is the namespace of the rule, and named the one that host contains, "" for
	// none. Together they say whose service with this host is meant.
	reader, named string
}

// onlyHome returns the source without its other conditions, or nil if it has no home.
func (s *source) onlyHome() *source {
	if s == nil || s.home == "" {
		return nil
	}
	return &source{home: s.home}
}

func (rd *reader) source(ref *schema.IstioService, namespace string) *source {
	if ref == nil {
		return nil
	}
	host := rd.hostname(ref, namespace)
	return &source{host: host, labels: ref.Labels, reader: namespace, named: mesh.NamespaceOf(host, rd.settings.Domain)}
}

// means reports whether the source means a service. A namespace may declare any host
// for itself. Such a service is not meant unless callers in the rule's namespace see it
// or it is in the namespace that the host contains.
func (s *source) means(svc *mesh.Service) bool {
	if s.host == "" {
		return true
	}
	return svc.Hostname == s.host && (svc.VisibleIn(s.reader) || s.named != "" && svc.Namespace == s.named)
}

// fits reports whether the proxy is such a caller, by the labels of its node, which
// belong to no service, or by one of its instances. A nil source fits every caller,
// even an unknown one. A nil caller is not a proxy of the mesh.
func (s *source) fits(who *caller) bool {
	if s == nil || who == nil {
		return s == nil
	}
	if s.home != "" && s.home != who.namespace {
		return false
	}
	if s.host == "" && (s.namespace == "" || s.namespace == who.namespace) && who.states(s.labels) {
		return true
	}
	for _, i := range who.own {
		if s.means(i.Service) && (s.namespace == "" || i.Service.Namespace == s.namespace) && s.labels.SubsetOf(i.Labels) {
			return true
		}
	}
	return false
}

// String returns a key of the source; "" is no source.
func (s *source) String() string {
	if s == nil {
		return ""
	}
	return s.home + "|" + s.host + "|" + s.namespace + "|" + s.reader + "|" + s.labels.String()
}

// checkSource reports a source that no proxy of the mesh can fit.
func (p *plan) checkSource(ref diag.Ref, field string, s *source) {
	if s == nil || !p.checkService(ref, field, s.host, "so it can never match") {
		return
	}
	p.checkLabels(ref, field+".labels", s.host, s.labels, "so it can never match")
}

// checkService reports a host that is not in the registry, and the consequence. It
// returns whether the host is there.
func (p *plan) checkService(ref diag.Ref, field, host, consequence string) bool {
	if p.service(host) != nil {
		return true
	}
	p.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.NoSuchReference, Code: diag.UnknownHost, Object: ref, Field: field,
		Value:   fmt.Sprintf("%q", host),
		Message: "no ServiceEntry declares this host, " + consequence,
	})
	return false
}

// checkSeen reports a host that does not exist, or that the object's own namespace
// does not see, and the consequence. It returns whether the namespace sees the host.
func (p *plan) checkSeen(ref diag.Ref, field, host, consequence string) bool {
	if !p.checkService(ref, field, host, consequence) {
		return false
	}
	if p.seenBy(ref.Namespace, host) != nil {
		return true
	}
	p.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.NoSuchReference, Code: diag.UnknownHost, Object: ref, Field: field,
		Value:   fmt.Sprintf("%q", host),
		Message: fmt.Sprintf("no ServiceEntry of this host is exported to the namespace %s, %s", ref.Namespace, consequence),
	})
	return false
}

// checkLabels reports labels that no instance of a known service has. The service
// is the one that the object's own namespace sees.
func (p *plan) checkLabels(ref diag.Ref, field, host string, labels mesh.Labels, consequence string) {
	svc := p.serviceOf(ref.Namespace, host)
	if svc == nil || len(labels) == 0 || svc.IsItsOwnEndpoint() || p.hasLabels(svc, labels) {
		return
	}
	p.report(diag.Problem{
		Severity: diag.Warning, Reason: diag.NoSuchReference, Code: diag.NoInstances, Object: ref, Field: field,
		Value:   fmt.Sprintf("%q", labels.String()),
		Message: fmt.Sprintf("no instance of %s has these labels, %s", host, consequence),
	})
}

// serviceOf returns the service that an object in this namespace means by a host:
// the one that callers there see, else the first one.
func (rd *reader) serviceOf(namespace, host string) *mesh.Service {
	return cmp.Or(rd.seenBy(namespace, host), rd.service(host))
}

// labelled is a version of a service, as a map key.
type labelled struct{ host, labels string }

func (rd *reader) hasLabels(svc *mesh.Service, labels mesh.Labels) bool {
	return slices.ContainsFunc(rd.instances(svc), func(i *mesh.Instance) bool { return labels.SubsetOf(i.Labels) })
}
