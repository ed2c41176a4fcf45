package mesh

// InstancesAt returns the mesh's instances at an IP address, in registry order. The
// slice is shared.
func (s *Snapshot) InstancesAt(ip string) []*Instance { return s.byIP.get(canonicalIP(ip)) }
