package wire

import (
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/munnerz/goautoneg"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Format is the encoding of an answer.
type Format int

const (
	// JSON is the resource itself in JSON.
	JSON Format = iota
	// YAML is the same in YAML.
	YAML
	// Table is a meta.k8s.io/v1 Table in JSON.
	Table
	// Events is server-sent events, for watches only.
	Events
	// Discovery is one JSON document of all resources.
	Discovery
	// Metadata is the metadata of one object in JSON, and MetadataList
	// that of several.
	Metadata
	MetadataList
)

// names are the media types of a format.
var names = map[Format][]string{
	JSON:      {"application/json"},
	YAML:      {"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"},
	Table:     {"application/json;as=Table;v=v1;g=meta.k8s.io"},
	Discovery: {"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"},
	Events:    {"text/event-stream"},

	Metadata:     {"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"},
	MetadataList: {"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"},
}

// shapes are the Accept parameters of formats that are JSON with another shape than
// the resource itself.
var shapes = map[Format]struct{ as, version, group string }{
	Table:     {"Table", "v1", metav1.GroupName},
	Discovery: {"APIGroupDiscoveryList", "v2", "apidiscovery.k8s.io"},

	Metadata:     {"PartialObjectMetadata", "v1", metav1.GroupName},
	MetadataList: {"PartialObjectMetadataList", "v1", metav1.GroupName},
}

// Names returns the media types by which clients may name the format. The server writes
// the first. Do not change the slice.
func (f Format) Names() []string { return names[f] }

// ContentType returns the Content-Type of the format.
func (f Format) ContentType() string {
	switch f {
	case Table, Metadata, MetadataList:
		return names[JSON][0]
	}
	return names[f][0]
}

// Negotiate returns the first format in the request's Accept that is offered. Clients that
// accept anything get the first offer. The error is the Status 406.
func Negotiate(r *http.Request, offer ...Format) (Format, error) {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	if accept == "" || accept == "*/*" || accept == names[offer[0]][0] {
		return offer[0], nil
	}
	for _, clause := range goautoneg.ParseAccept(accept) {
		if i := slices.IndexFunc(offer, func(f Format) bool { return f.satisfies(clause) }); i >= 0 {
			return offer[i], nil
		}
	}
	return 0, Failure(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"Accept: must be one of %s, found %q", namesOf(offer), accept)
}

func (f Format) satisfies(a goautoneg.Accept) bool {
	if a.Q == 0 {
		return false
	}
	if shape, shaped := shapes[f]; shaped || a.Params["as"] != "" {
		return shaped && a.Params["as"] == shape.as && a.Params["v"] == shape.version &&
			a.Params["g"] == shape.group && a.Type+"/"+a.SubType == names[JSON][0]
	}
	if a.SubType == "*" {
		return a.Type == "*" || a.Type == "application"
	}
	return slices.Contains(names[f], a.Type+"/"+a.SubType)
}

func namesOf(formats []Format) string {
	var all []string
	for _, f := range formats {
		all = append(all, names[f]...)
	}
	return strings.Join(all, ", ")
}

// BodyType returns the media type of the request's body. It must be one of the allowed
// ones, and the body must not be compressed; otherwise the error is the Status 415.
func BodyType(r *http.Request, allowed ...string) (string, error) {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return "", unsupported("Content-Encoding: must be left out, found %q", coding)
	}
	header := r.Header.Get("Content-Type")
	media, params, err := mime.ParseMediaType(header)
	if err != nil || !slices.Contains(allowed, media) {
		return "", unsupported("Content-Type: must be one of %s, found %q", strings.Join(allowed, ", "), header)
	}
	return media, checkParams(params)
}

// charsets are the accepted charsets of bodies. ASCII is a subset of UTF-8.
var charsets = []string{"utf-8", "us-ascii"}

// checkParams refuses other charsets, because the server would read another text
// than the client sent.
func checkParams(params map[string]string) error {
	if charset, given := params["charset"]; given && !slices.Contains(charsets, strings.ToLower(charset)) {
		return unsupported("Content-Type: charset must be one of %s, found %q", strings.Join(charsets, ", "), charset)
	}
	return nil
}

// ClaimsASCII reports whether a request states that its body is ASCII.
func ClaimsASCII(r *http.Request) bool {
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && strings.EqualFold(params["charset"], "us-ascii")
}

// CheckCharset refuses, with the Status 415, a request whose body is of another charset,
// whatever its media type. It costs almost nothing for the requests of an Envoy.
func CheckCharset(r *http.Request) error {
	header := r.Header.Get("Content-Type")
	if !strings.Contains(header, ";") {
		return nil // It has no parameters.
	}
	_, params, err := mime.ParseMediaType(header)
	if err != nil {
		return unsupported("Content-Type: must be a media type and parameters, found %q", header)
	}
	return checkParams(params)
}

func unsupported(format string, args ...any) error {
	return Failure(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, format, args...)
}

// ObjectTypes are the media types of an object.
var ObjectTypes = slices.Concat(JSON.Names(), YAML.Names())
