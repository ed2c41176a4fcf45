package schema

import (
	"fmt"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
)

// exportTo checks spec.exportTo, which all networking kinds have.
func (p *problems) exportTo(namespaces []string) {
	seen := map[string]int{}
	for i, namespace := range namespaces {
		at := indexField("spec.exportTo", i)
		if repeated(p, at, "spec.exportTo", seen, namespace, i) {
			continue
		}
		if (namespace == "*" || namespace == "~") && len(namespaces) > 1 {
			p.invalidValue(at, namespace, "must stand alone: it means all namespaces (*) or none (~)")
		}
	}
}

// exportToSomeone checks the list for kinds that have no use if nobody sees them.
func (p *problems) exportToSomeone(namespaces []string) {
	p.exportTo(namespaces)
	if at := slices.Index(namespaces, "~"); at >= 0 {
		p.notSupportedValue(fmt.Sprintf("spec.exportTo[%d]", at), "~", "must name who sees the object; only a ServiceEntry may be hidden from all")
	}
}

// exportedTwice reports an exportTo with both the dot and the name of the object's
// own namespace.
func (d *candidate) exportedTwice() diag.List {
	spec, ok := d.typed.(interface{ GetExportTo() []string })
	if !ok {
		return nil
	}
	var p problems
	own := slices.Index(spec.GetExportTo(), d.meta.Namespace)
	if own >= 0 && slices.Contains(spec.GetExportTo(), ".") {
		p.duplicate(fmt.Sprintf("spec.exportTo[%d]", own), "is the own namespace, as . is")
	}
	return p.list
}
