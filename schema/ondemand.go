package schema

import "slices"

// OnDemandAnnotation is the annotation of a Sidecar that says what the proxies that follow it
// learn only when their workloads call it: OnDemandHosts or OnDemandOff. Without it the mesh
// settings decide.
const OnDemandAnnotation = "pilot-api/on-demand"

// The values of OnDemandAnnotation, which are those of the mesh setting onDemand.
const (
	OnDemandOff   = "off"
	OnDemandHosts = "hosts"
)

// checkOnDemand checks the annotation, which has a meaning only on a Sidecar.
func (d *candidate) checkOnDemand() {
	text, given := d.meta.Annotations[OnDemandAnnotation]
	at := keyField("metadata.annotations", OnDemandAnnotation)
	switch {
	case !given:
	case d.kind.Kind != "Sidecar":
		d.warn(at, "has no effect on a "+d.kind.Kind+": write it on a Sidecar")
	case !slices.Contains([]string{OnDemandOff, OnDemandHosts}, text):
		d.invalid(at, "must be "+OnDemandHosts+" or "+OnDemandOff)
	}
}
