package server

import (
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/munnerz/goautoneg"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// format is how an answer is written.
type format int

const (
	formatJSON format = iota
	formatYAML
	// formatTable is JSON too, a meta.k8s.io/v1 Table.
	formatTable
	// formatEvents is server-sent events, of a watch alone.
	formatEvents
	// formatDiscovery is JSON too, all that there is in one document.
	formatDiscovery
	// formatMetadata is JSON too, of an object the metadata alone, and
	// formatMetadataList that of several.
	formatMetadata
	formatMetadataList
)

// mediaTypes are the names of a format; the first is the one that we write.
var mediaTypes = map[format][]string{
	formatJSON:      {"application/json"},
	formatYAML:      {"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"},
	formatTable:     {"application/json;as=Table;v=v1;g=meta.k8s.io"},
	formatDiscovery: {"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"},
	formatEvents:    {"text/event-stream"},

	formatMetadata:     {"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"},
	formatMetadataList: {"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"},
}

// shapes are what Accept says of a format that is JSON of another shape than what
// it shows.
var shapes = map[format]struct{ as, version, group string }{
	formatTable:     {"Table", "v1", metav1.GroupName},
	formatDiscovery: {"APIGroupDiscoveryList", "v2", "apidiscovery.k8s.io"},

	formatMetadata:     {"PartialObjectMetadata", "v1", metav1.GroupName},
	formatMetadataList: {"PartialObjectMetadataList", "v1", metav1.GroupName},
}

// contentType is the value of the header that announces the format.
func (f format) contentType() string {
	switch f {
	case formatTable, formatMetadata, formatMetadataList:
		return mediaTypes[formatJSON][0]
	}
	return mediaTypes[f][0]
}

// negotiate picks the first format on offer that the request accepts. The
// first on offer is for those who take anything.
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

// contentType is the media type of the request's body, which must be one of
// the allowed, and not compressed.
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

// charsets are those that bodies are read as; ASCII is a part of UTF-8.
var charsets = []string{"utf-8", "us-ascii"}

// checkCharset refuses a body in another charset, which would be read as another
// text than was meant.
func checkCharset(params map[string]string) error {
	if charset, given := params["charset"]; given && !slices.Contains(charsets, strings.ToLower(charset)) {
		return unsupported("Content-Type: charset must be one of %s, found %q", strings.Join(charsets, ", "), charset)
	}
	return nil
}

// claimsASCII reports whether a request says that its body has ASCII alone.
func claimsASCII(r *http.Request) bool {
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && strings.EqualFold(params["charset"], "us-ascii")
}

// checkBodyCharset is checkCharset for a request whose media type does not matter. It
// costs next to nothing for what Envoy sends.
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
