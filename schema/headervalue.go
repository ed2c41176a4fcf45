package schema

import (
	"errors"
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/internal/envoylimits/headerformat"
)

// headerNotes describes what a header value may contain.
func headerNotes() string {
	return "In values of `headers`, `%%` is a percent sign. A name between single percent signs is a variable, which the proxy replaces: " +
		"`%REQ(x-user)%` is a header of the request (`%REQ(x-user?:path):20%` is another header if the first one is missing, cut to 20 characters), " +
		"and `%START_TIME(%Y-%m-%d)%` is a time. The variables are `" + strings.Join(headerformat.Names(), "`, `") + "`. " +
		"Over the v1 API, a route with a variable answers 503."
}

// headerValues checks that values are in the format that proxies fill in, and that
// hosts are plain texts.
func (p *problems) headerValues(field string, h *networking.Headers) {
	for _, change := range []struct {
		name   string
		values map[string]string
	}{
		{".request.set", h.GetRequest().GetSet()}, {".request.add", h.GetRequest().GetAdd()},
		{".response.set", h.GetResponse().GetSet()}, {".response.add", h.GetResponse().GetAdd()},
	} {
		for _, name := range slices.Sorted(maps.Keys(change.values)) {
			if err := CheckHeaderValue(name, change.values[name]); err != nil {
				p.invalidValue(keyField(field+change.name, name), change.values[name], err.Error())
			}
		}
	}
}

var errHostValue = errors.New("must not have a %: the host of a request is written as it stands")

// CheckHeaderValue returns an error if a route cannot write a value to a header.
// The host of a request is written literally.
func CheckHeaderValue(name, value string) error {
	if isAuthority(name) && strings.Contains(value, "%") {
		return errHostValue
	}
	return headerformat.Check(value)
}
