package compile

import (
	"maps"
	"slices"
)

// exceptions says which callers may have other rules for a host than the rest. The
// rest are the callers in all namespaces that it does not name, and callers whose
// namespace is not known: they share everything about the host. It may name a
// namespace whose callers have the same rules as the rest, but never leaves out one
// whose callers have other rules. It is not modified.
type exceptions struct {
	// everyone is set if the callers of any two namespaces may have different rules.
	everyone   bool
	namespaces []string // sorted, each once; empty if everyone is set
}

// everyone means that no two namespaces share anything.
var everyone = exceptions{everyone: true}

// mostExceptions is how many namespaces exceptions names before it means everyone.
const mostExceptions = 1 << 10

// exceptIn returns the exceptions that name these namespaces.
func exceptIn(namespaces ...string) exceptions {
	slices.Sort(namespaces)
	if namespaces = slices.Compact(namespaces); len(namespaces) > mostExceptions {
		return everyone
	}
	return exceptions{namespaces: namespaces}
}

// has reports whether callers in a namespace may have other rules than the rest.
func (e exceptions) has(namespace string) bool {
	if e.everyone {
		return true
	}
	_, found := slices.BinarySearch(e.namespaces, namespace)
	return found
}

// none reports whether all callers have the same rules.
func (e exceptions) none() bool { return !e.everyone && len(e.namespaces) == 0 }

// with returns the exceptions of both.
func (e exceptions) with(other exceptions) exceptions {
	switch {
	case e.everyone || other.none():
		return e
	case other.everyone || e.none():
		return other
	}
	return exceptIn(slices.Concat(e.namespaces, other.namespaces)...)
}

func (e exceptions) equal(other exceptions) bool {
	return e.everyone == other.everyone && slices.Equal(e.namespaces, other.namespaces)
}

// exposure summarizes which callers see the rules that name a host.
type exposure struct {
	// public has the namespaces of rules that all callers see.
	public []string
	// private has the namespaces whose callers see a rule that not all callers see,
	// or are selected by one.
	private []string
	// scattered is set if a rule that not all callers see is for too many
	// namespaces to name.
	scattered bool
}

// exposure returns the exposure of some rules, or nil if there are none.
func (c *hostIndex[T]) exposure(rules []*T) *exposure {
	if len(rules) == 0 {
		return nil
	}
	public, private, out := map[string]bool{}, map[string]bool{}, &exposure{}
	for _, rule := range rules {
		of := c.claim(rule)
		switch callers := c.callers(rule); {
		case !slices.Equal(callers, []string{""}):
			for _, namespace := range callers {
				private[namespace] = true
			}
		case c.seenByAll(of):
			public[of.origin().ref.Namespace] = true
		default:
			out.scattered = true
		}
	}
	out.public, out.private = slices.Sorted(maps.Keys(public)), slices.Sorted(maps.Keys(private))
	return out
}

func (e *exposure) equal(other *exposure) bool {
	return e == other || e != nil && other != nil && e.scattered == other.scattered &&
		slices.Equal(e.public, other.public) && slices.Equal(e.private, other.private)
}

// exceptions returns the exceptions among the callers of a host. Everybody follows
// the rules of the namespace that owns the host, and then those of the root
// namespace. Callers follow rules of another namespace only if they are in it.
func (c *hostIndex[T]) exceptions(rd *reader, host string) exceptions {
	owner := rd.ownerOf(host)
	first := rd.service(host)
	apart := first != nil && !first.VisibleIn("") // Callers that do not see it have another owner.
	out := c.exceptionsUnder(rd, host, owner, apart)
	for wildcard := range wildcards(host) {
		out = out.with(c.exceptionsUnder(rd, wildcard, owner, apart))
	}
	return out
}

// exceptionsUnder returns the exceptions because of the rules that name exactly
// this host or wildcard, which belongs to owner. apart is set if callers may know
// the host under another owner.
func (c *hostIndex[T]) exceptionsUnder(rd *reader, name, owner string, apart bool) exceptions {
	of := c.exposures.Get(rd.r, name)
	switch {
	case of == nil:
		return exceptions{}
	case of.scattered:
		return everyone
	case rd.pilot().AnyNamespaceRules:
		return exceptIn(slices.Clone(of.private)...)
	case apart:
		return everyone
	}
	notOfOwner := slices.DeleteFunc(slices.Clone(of.public), func(namespace string) bool { return namespace == owner })
	return exceptIn(append(notOfOwner, of.private...)...)
}
