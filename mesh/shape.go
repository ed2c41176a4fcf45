package mesh

import (
	"cmp"
	"reflect"
	"slices"
)

// SameShape reports whether two services differ at most in their instances, and
// either both or neither have instances.
func (s *Service) SameShape(other *Service) bool {
	return s.Hostname == other.Hostname && s.apart == other.apart && s.Namespace == other.Namespace && s.Created.Equal(other.Created) &&
		slices.Equal(s.ExportTo, other.ExportTo) && slices.Equal(s.Addresses, other.Addresses) && s.External == other.External &&
		s.Resolution == other.Resolution && s.OneAddress == other.OneAddress && s.Sockets == other.Sockets && s.Networks == other.Networks &&
		slices.Equal(s.SubjectAltNames, other.SubjectAltNames) && reflect.DeepEqual(s.HealthCheck, other.HealthCheck) && s.Origin == other.Origin &&
		s.Withheld == other.Withheld && (len(s.Instances) == 0) == (len(other.Instances) == 0) &&
		reflect.DeepEqual(s.Ports, other.Ports) && slices.EqualFunc(s.before, other.before, sameViewers)
}

func sameViewers(a, b *Service) bool {
	return a.Namespace == b.Namespace && slices.Equal(a.ExportTo, b.ExportTo)
}

// CompareServices sorts services by host name, and those of one host by precedence.
func CompareServices(a, b *Service) int {
	return cmp.Or(cmp.Compare(a.Hostname, b.Hostname), cmp.Compare(len(a.before), len(b.before)))
}
