package server

import (
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/munnerz/goautoneg"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// format is the encoding of an answer.
type format int

const (
	formatJSON format = iota
	formatYAML
	// formatTable is a meta.k8s.io/v1 Table in JSON.
	formatTable
	// formatEvents is server-sent events, for watches only.
	formatEvents
	// formatDiscovery is one JSON document of all resources.
	formatDiscovery
	// formatMetadata is the metadata of one object in JSON, and formatMetadataList
	// that of several.
	formatMetadata
	formatMetadataList
)

// mediaTypes are the names of a format. The server writes the first.
var mediaTypes = map[format][]string{
	formatJSON:      {"application/json"},
	formatYAML:      {"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"},
	formatTable:     {"application/json;as=Table;v=v1;g=meta.k8s.io"},
	formatDiscovery: {"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"},
	formatEvents:    {"text/event-stream"},

	formatMetadata:     {"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"},
	formatMetadataList: {"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"},
}

// shapes are the Accept parameters of formats that are JSON with another shape than
// the resource itself.
var shapes = map[format]struct{ as, version, group string }{
	formatTable:     {"Table", "v1", metav1.GroupName},
	formatDiscovery: {"APIGroupDiscoveryList", "v2", "apidiscovery.k8s.io"},

	formatMetadata:     {"PartialObjectMetadata", "v1", metav1.GroupName},
	formatMetadataList: {"PartialObjectMetadataList", "v1", metav1.GroupName},
}

// contentType returns the Content-Type of the format.
func (f format) contentType() string {
	switch f {
	case formatTable, formatMetadata, formatMetadataList:
		return mediaTypes[formatJSON][0]
	}
	return mediaTypes[f][0]
}

// negotiate returns the first format of the request's Accept that is on offer. The
// first offer is for clients that accept anything.
func negotiate(r *http.Request, offer ...format) (format, error) {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	if accept == "" || accept == "*/*" || accept == mediaTypes[offer[0]][0] {
		return offer[0], nil
	}
	for _, clause := range goautoneg.ParseAccept(accept) {
		if i := slices.IndexFunc(offer, func(f format) bool { return f.satisfies(clause) }); i >= 0 {
			return offer[i], nil
		}
	}
	return 0, plainStatus(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"Accept: must be one of %s, found %q", namesOf(offer), accept)
}

func (f format) satisfies(a goautoneg.Accept) bool {
	if a.Q == 0 {
		return false
	}
	if shape, shaped := shapes[f]; shaped || a.Params["as"] != "" {
		return shaped && a.Params["as"] == shape.as && a.Params["v"] == shape.version &&
			a.Params["g"] == shape.group && a.Type+"/"+a.SubType == mediaTypes[formatJSON][0]
	}
	if a.SubType == "*" {
		return a.Type == "*" || a.Type == "application"
	}
	return slices.Contains(mediaTypes[f], a.Type+"/"+a.SubType)
}

func namesOf(formats []format) string {
	var names []string
	for _, f := range formats {
		names = append(names, mediaTypes[f]...)
	}
	return strings.Join(names, ", ")
}

// contentType returns the media type of the request's body. It must be one of the
// allowed ones, and the body must not be compressed.
func contentType(r *http.Request, allowed ...string) (string, error) {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return "", unsupported("Content-Encoding: must be left out, found %q", coding)
	}
	header := r.Header.Get("Content-Type")
	media, params, err := mime.ParseMediaType(header)
	if err != nil || !slices.Contains(allowed, media) {
		return "", unsupported("Content-Type: must be one of %s, found %q", strings.Join(allowed, ", "), header)
	}
	return media, checkCharset(params)
}

// charsets are the accepted charsets of bodies. ASCII is a subset of UTF-8.
var charsets = []string{"utf-8", "us-ascii"}

// checkCharset refuses other charsets, because the server would read another text
// than the client sent.
func checkCharset(params map[string]string) error {
	if charset, given := params["charset"]; given && !slices.Contains(charsets, strings.ToLower(charset)) {
		return unsupported("Content-Type: charset must be one of %s, found %q", strings.Join(charsets, ", "), charset)
	}
	return nil
}

// claimsASCII reports whether a request states that its body is ASCII.
func claimsASCII(r *http.Request) bool {
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && strings.EqualFold(params["charset"], "us-ascii")
}

// checkBodyCharset is checkCharset for a request whose media type does not matter.
// It costs next to nothing for the requests of an Envoy.
func checkBodyCharset(r *http.Request) error {
	header := r.Header.Get("Content-Type")
	if !strings.Contains(header, ";") {
		return nil // It has no parameters.
	}
	_, params, err := mime.ParseMediaType(header)
	if err != nil {
		return unsupported("Content-Type: must be a media type and parameters, found %q", header)
	}
	return checkCharset(params)
}

func unsupported(format string, args ...any) error {
	return plainStatus(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, format, args...)
}
