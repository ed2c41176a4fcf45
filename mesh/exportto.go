package mesh

import "slices"

// Exported reports whether callers in a namespace see an object of the home
// namespace that has this exportTo: none is all namespaces, "." the own one,
// "~" nobody. A caller in no namespace, "", sees what all see.
func Exported(to []string, home, namespace string) bool {
	return len(to) == 0 || slices.Contains(to, "*") ||
		namespace != "" && (slices.Contains(to, namespace) || namespace == home && slices.Contains(to, "."))
}

// VisibleIn reports whether callers in a namespace know the service.
func (s *Service) VisibleIn(namespace string) bool {
	return Exported(s.ExportTo, s.Namespace, namespace)
}
