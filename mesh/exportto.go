package mesh

import (
	"maps"
	"slices"
)

// Exported reports whether callers in a namespace see an object of the home
// namespace with this exportTo. An empty list means all namespaces, "." the home
// namespace, "~" nobody. A caller without a namespace, "", sees what is exported to
// all.
func Exported(to []string, home, namespace string) bool {
	return len(to) == 0 || slices.Contains(to, "*") ||
		namespace != "" && (slices.Contains(to, namespace) || namespace == home && slices.Contains(to, "."))
}

// VisibleIn reports whether callers in a namespace see the service: it is exported
// to them, and no service with precedence for its host is.
func (s *Service) VisibleIn(namespace string) bool {
	return s.exportedTo(namespace) &&
		!slices.ContainsFunc(s.before, func(first *Service) bool { return first.exportedTo(namespace) })
}

func (s *Service) exportedTo(namespace string) bool {
	return Exported(s.ExportTo, s.Namespace, namespace)
}

// viewers are the callers that an exportTo means.
type viewers struct {
	all bool
	in  map[string]bool // the namespaces, unless all
}

func viewersOf(to []string, home string) viewers {
	v := viewers{all: len(to) == 0 || slices.Contains(to, "*"), in: map[string]bool{}}
	for _, namespace := range to {
		if namespace == "." {
			namespace = home
		}
		v.in[namespace] = namespace != "" && namespace != "~"
	}
	maps.DeleteFunc(v.in, func(_ string, sees bool) bool { return !sees })
	return v
}

func (v viewers) none() bool { return !v.all && len(v.in) == 0 }
