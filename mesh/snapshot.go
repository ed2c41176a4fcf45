package mesh

import (
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// Snapshot is the whole mesh at one revision. It is immutable.
type Snapshot struct {
	Revision int64
	Settings *Settings
	// Services sorted by hostname, hostnames unique.
	Services []*Service
	// Problems found while building the registry: two entries for one host,
	// a workload that selects nothing, and so on.
	Problems diag.List

	// indexes
}

// NewSnapshot builds the model from all config objects at one revision. The
// order of objs has no effect.
func NewSnapshot(revision int64, settings *Settings, objs []*schema.Object) *Snapshot {
	panic("not written yet")
}

// Objects of one kind in tie-break order: by the text
// "dashed-kind/namespace/name", ascending.
func (s *Snapshot) Objects(kind string) []*schema.Object { panic("not written yet") }

// Service by exact host name; nil when there is none.
func (s *Snapshot) Service(hostname string) *Service { panic("not written yet") }

// InstancesAt are the instances at an IP address, in registry order.
func (s *Snapshot) InstancesAt(ip string) []*Instance { panic("not written yet") }

// Endpoints are the instances a service key means, in registry order; none
// for an unknown service, an external one, or labels nobody has.
func (s *Snapshot) Endpoints(key ServiceKey) []*Instance { panic("not written yet") }

// ServiceKey names a set of instances: host, port names, label sets. Its text
// is "host", "host|port" or "host|port|k1=v1,k2=v2"; several port names are
// joined by ",", several label sets by ";".
type ServiceKey struct {
	Hostname  string
	Ports     []string
	LabelSets []Labels
}

// NewServiceKey is the key of one port and at most one label set. The port of
// an external service is named external-<PROTOCOL>-<number>.
func NewServiceKey(s *Service, p *Port, labels Labels) ServiceKey { panic("not written yet") }

// ParseServiceKey reads the text form. It never fails: what makes no sense
// names no instances.
func ParseServiceKey(text string) ServiceKey { panic("not written yet") }

func (k ServiceKey) String() string { panic("not written yet") }
