package compile

import (
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// versionsKey is a service and the DestinationRule whose subsets divide it.
type versionsKey struct {
	rule *destinationRule
	svc  *mesh.Service
}

// versions returns how far the subsets multiply: each may list every instance.
func (rd *reader) versions(key versionsKey) schema.Product {
	return schema.Product{
		{Length: len(key.rule.spec.GetSubsets()), Of: "subsets"},
		{Length: len(rd.instances(key.svc)), Of: "endpoints at ports"},
	}
}

func (rd *reader) excessOfVersions(key versionsKey) mesh.Excess {
	parts, most := rd.versions(key).Parts(), rd.settings.BudgetOrDefault().Object
	if parts <= most {
		return mesh.Excess{}
	}
	return mesh.Excess{Parts: parts, Budget: most}
}

// tooManyVersions reports whether the target is a version of a service that has
// more versions than the budget allows.
func (v *viewpoint) tooManyVersions(t target) bool {
	if t.service == nil || t.version == "" && t.subset == "" {
		return false
	}
	rule := v.ruleFor(t.host)
	return rule != nil && v.overVersions.Get(v.r, versionsKey{rule, t.service})
}

// checkVersions reports a rule whose subsets are closed.
func (d *check) checkVersions(rule *destinationRule, host string, svc *mesh.Service) {
	inForce := d.ruleFor(host)
	if svc == nil || inForce == nil || len(rule.spec.GetSubsets()) == 0 {
		return
	}
	key := versionsKey{inForce, svc}
	if excess := d.excessOfVersions(key); excess.Withheld() {
		d.report(excess.Problem(rule.ref, d.versions(key).String(), "requests to the subsets fail, because their clusters are closed"))
	}
}
