package meshgen

import "pgregory.net/rapid"

// reference refers to a service by its short or full name.
func reference(t *rapid.T) spec {
	switch {
	case often(t, "usual"):
		return spec{"name": "a"}
	case rapid.Bool().Draw(t, "whole name"):
		return spec{"service": host(t)}
	default:
		return spec{"name": pick(t, "name", "b", "nobody")}
	}
}

func routeRule(t *rapid.T) spec {
	out := spec{
		"destination": reference(t),
		"precedence":  rapid.IntRange(0, 2).Draw(t, "precedence"),
	}
	if often(t, "matches") || often(t, "matches after all") {
		out["match"] = condition(t)
	}
	if seldom(t, "redirects") {
		out["redirect"] = pick(t, "redirect", spec{"uri": "/y"}, spec{"authority": "b"}, spec{"uri": "/y", "authority": "b"})
		return out
	}
	out.often(t, "route", func() any { return shares(t) })
	out.seldom(t, "rewrite", func() any {
		return pick(t, "rewrite", spec{"uri": "/w"}, spec{"authority": "w.example"}, spec{"uri": "/", "authority": "w.example"})
	})
	out.seldom(t, "httpReqTimeout", func() any { return spec{"simpleTimeout": spec{"timeout": seconds(t)}} })
	out.seldom(t, "httpReqRetries", func() any {
		return spec{"simpleRetry": spec{"attempts": rapid.IntRange(0, 3).Draw(t, "attempts"), "perTryTimeout": seconds(t)}}
	})
	out.often(t, "httpFault", func() any { return ruleFault(t) })
	out.seldom(t, "mirror", func() any { return reference(t) })
	out.seldom(t, "corsPolicy", func() any {
		policy := cors(t)
		policy["allowOrigin"] = []string{"http://a.example", "*"}
		return policy
	})
	out.seldom(t, "appendHeaders", func() any { return map[string]string{"x-added": pick(t, "added", "1", "50%"), "x-too": "2"} })
	out.seldom(t, "websocketUpgrade", func() any { return true })
	return out
}

func condition(t *rapid.T) spec {
	out := spec{}
	out.seldom(t, "source", func() any {
		source := reference(t)
		source["labels"] = labels(t, "source labels")
		return source
	})
	out.often(t, "request", func() any {
		all := spec{}
		all.seldom(t, "uri", func() any { return path(t) })
		all.seldom(t, "method", func() any { return stringMatch(t, "GET", "POST") })
		all.seldom(t, "authority", func() any { return stringMatch(t, "a", "b") })
		if rapid.Bool().Draw(t, "has headers") {
			for name, match := range headers(t) {
				all[name] = match
			}
		}
		return spec{"headers": all}
	})
	return out
}

func shares(t *rapid.T) []spec {
	var out []spec
	for _, weight := range weights(t) {
		entry := spec{"weight": weight}
		entry.often(t, "labels", func() any { return labels(t, "version") })
		entry.seldom(t, "destination", func() any { return reference(t) })
		out = append(out, entry)
	}
	return out
}

func ruleFault(t *rapid.T) spec {
	out := spec{}
	out.often(t, "delay", func() any { return spec{"percent": percent(t), "fixedDelay": seconds(t)} })
	out.often(t, "abort", func() any { return spec{"percent": percent(t), "httpStatus": pick(t, "status", 418, 503, 600, 0)} })
	return out
}
