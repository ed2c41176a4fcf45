package schema

import (
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// headerChanges rejects changes of names that are not headers to Envoy. The
// authority of a request is an exception: it may be written, not removed.
func (p *problems) headerChanges(field string, h *networking.Headers) {
	request, response := h.GetRequest(), h.GetResponse()
	p.noAuthority(field+".request.remove", request.GetRemove(), true)
	p.noAuthority(field+".response.set", slices.Sorted(maps.Keys(response.GetSet())), false)
	p.noAuthority(field+".response.add", slices.Sorted(maps.Keys(response.GetAdd())), false)
	p.noAuthority(field+".response.remove", response.GetRemove(), true)
}

func (p *problems) noAuthority(field string, names []string, isList bool) {
	for i, name := range names {
		if !isAuthority(name) {
			continue
		}
		at := keyField(field, name)
		if isList {
			at = indexField(field, i)
		}
		p.forbidden(at, "cannot be changed here: the host of a request can only be set, and that in the request")
	}
}

func isAuthority(header string) bool {
	return strings.EqualFold(header, "host") || header == ":authority"
}

// authority checks that there is only one writer of the host.
func (p *problems) authority(field string, r *networking.HTTPRoute) {
	var writers []string
	if r.GetRewrite().GetAuthority() != "" {
		writers = append(writers, field+".rewrite.authority")
	}
	request := r.GetHeaders().GetRequest()
	for _, change := range []struct {
		name    string
		headers map[string]string
	}{{"set", request.GetSet()}, {"add", request.GetAdd()}} {
		for _, header := range slices.Sorted(maps.Keys(change.headers)) {
			if isAuthority(header) {
				writers = append(writers, keyField(field+".headers.request."+change.name, header))
			}
		}
	}
	for i := 1; i < len(writers); i++ {
		p.duplicate(writers[i], "sets the host of the request, as "+writers[0]+" does")
	}
}
