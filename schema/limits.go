package schema

import "github.com/pilot-api/pilot-api/diag"

// beyond returns warnings for what the spec says and the kind's limits exclude.
func (k *Kind) beyond(spec any) diag.List {
	if k.limits == nil {
		return nil
	}
	return k.limits(spec)
}

// unmet is a part of an object that may be set and is not followed.
type unmet struct {
	set     bool
	path    string
	message string
}

// notFollowed warns of the fields that are set.
func (p *problems) notFollowed(at string, fields []unmet) {
	for _, f := range fields {
		if f.set {
			p.warnOf(diag.NotFollowed, at+"."+f.path, f.message)
		}
	}
}
