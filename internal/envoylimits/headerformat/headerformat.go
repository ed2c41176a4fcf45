// Package headerformat checks header values that a proxy fills in from a request,
// in the format that authors write and Envoy reads: %REQ(x-user)% is a header of
// the request, %PROTOCOL% the version of HTTP, %% a percent sign.
package headerformat

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// argument describes the argument of an operator, in parentheses.
type argument struct {
	example string // "" for none
	further string // another example, "" for none
	is      *regexp.Regexp
	// optional means that it may be left out with its parentheses.
	optional bool
	// cut means that a colon and a number may follow: the length to cut the value
	// to.
	cut bool
}

const headerName = `:?[a-zA-Z0-9!#$&'*+.^_|~` + "`" + `-]+`

var (
	none   = argument{}
	header = argument{example: "x-name", further: "x-name?:path", is: regexp.MustCompile(`^` + headerName + `(\?` + headerName + `)?$`), cut: true}
	// Metadata has the name of the filter that set it, and perhaps the keys of a value in it.
	metadata = argument{example: "com.example.filter", further: "com.example.filter:user:name", is: regexp.MustCompile(`^[^:()%\s]+(:[^:()%\s]+)*$`), cut: true}
	// A time is in the format of strftime; %3f is its milliseconds.
	moment = argument{example: "%Y-%m-%dT%H:%M:%S.%3fZ", is: regexp.MustCompile(`^([a-zA-Z0-9 .,:;/_+-]|%([aAbBcCdDeFHIjmMprRsSTuUVwWxXyYzZ]|[1-9]?f))+$`), optional: true}
)

// operators are those that an Envoy accepts in headers. Those that read files and
// variables of its machine are left out on purpose: the author of a route need not
// be the operator of the proxies.
var operators = map[string]argument{
	"REQ": header, "RESP": header, "TRAILER": header, "DYNAMIC_METADATA": metadata,
	"START_TIME": moment, "DOWNSTREAM_PEER_CERT_V_START": moment, "DOWNSTREAM_PEER_CERT_V_END": moment,

	"HOSTNAME": none, "PROTOCOL": none, "REQUESTED_SERVER_NAME": none, "ROUTE_NAME": none, "VIRTUAL_CLUSTER_NAME": none,
	"BYTES_RECEIVED": none, "BYTES_SENT": none, "DURATION": none, "REQUEST_DURATION": none, "RESPONSE_DURATION": none,
	"RESPONSE_CODE": none, "RESPONSE_CODE_DETAILS": none, "RESPONSE_FLAGS": none, "GRPC_STATUS": none,
	"CONNECTION_ID": none, "CONNECTION_TERMINATION_DETAILS": none,

	"DOWNSTREAM_REMOTE_ADDRESS": none, "DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT": none, "DOWNSTREAM_REMOTE_PORT": none,
	"DOWNSTREAM_DIRECT_REMOTE_ADDRESS": none, "DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT": none, "DOWNSTREAM_DIRECT_REMOTE_PORT": none,
	"DOWNSTREAM_LOCAL_ADDRESS": none, "DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT": none, "DOWNSTREAM_LOCAL_PORT": none,
	"DOWNSTREAM_LOCAL_SUBJECT": none, "DOWNSTREAM_LOCAL_URI_SAN": none,
	"DOWNSTREAM_PEER_SUBJECT": none, "DOWNSTREAM_PEER_ISSUER": none, "DOWNSTREAM_PEER_SERIAL": none, "DOWNSTREAM_PEER_URI_SAN": none,
	"DOWNSTREAM_PEER_FINGERPRINT_1": none, "DOWNSTREAM_PEER_FINGERPRINT_256": none, "DOWNSTREAM_PEER_CERT": none,
	"DOWNSTREAM_TLS_VERSION": none, "DOWNSTREAM_TLS_CIPHER": none, "DOWNSTREAM_TLS_SESSION_ID": none,

	"UPSTREAM_CLUSTER": none, "UPSTREAM_HOST": none, "UPSTREAM_LOCAL_ADDRESS": none, "UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT": none,
	"UPSTREAM_LOCAL_PORT": none, "UPSTREAM_REMOTE_ADDRESS": none, "UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT": none, "UPSTREAM_REMOTE_PORT": none,
	"UPSTREAM_REQUEST_ATTEMPT_COUNT": none, "UPSTREAM_TRANSPORT_FAILURE_REASON": none,
}

// ofMachine are operators that Envoy knows and that authors may not use.
var ofMachine = []string{"ENVIRONMENT", "FILE_CONTENT", "SECRET"}

var operator = regexp.MustCompile(`^%([A-Z][A-Z0-9_]*)(\(([^)]*)\))?(:[0-9]{1,9})?%`)

var errLone = errors.New("a % begins nothing that a proxy could fill in, such as %REQ(x-name)% or %PROTOCOL%; write %% for the sign itself")

// Check returns an error if a value is not in the format, and nil if every Envoy
// accepts it.
func Check(value string) error {
	for at := strings.IndexByte(value, '%'); at >= 0; at = strings.IndexByte(value, '%') {
		value = value[at:]
		if strings.HasPrefix(value, "%%") {
			value = value[len("%%"):]
			continue
		}
		parts := operator.FindStringSubmatch(value)
		if parts == nil {
			return errLone
		}
		if err := check(parts[1], parts[2] != "", parts[3], parts[4]); err != nil {
			return err
		}
		value = value[len(parts[0]):]
	}
	return nil
}

func check(name string, given bool, text, cut string) error {
	want, known := operators[name]
	switch {
	case slices.Contains(ofMachine, name):
		return fmt.Errorf("%%%s%% reads what is on the machine of a proxy, which routes may not", name)
	case !known:
		return fmt.Errorf("there is no %%%s%%; there are REQ(x-name), START_TIME, PROTOCOL, DOWNSTREAM_REMOTE_ADDRESS, UPSTREAM_HOST and others, which the reference of VirtualService lists", name)
	case want.example == "" && (given || cut != ""):
		return fmt.Errorf("%%%s%% stands alone, without anything in parentheses or behind a colon", name)
	case given && want.is != nil && !want.is.MatchString(text), !given && want.example != "" && !want.optional:
		return fmt.Errorf("%%%s%% must be written like %%%s(%s)%%", name, name, want.example)
	case cut != "" && !want.cut:
		return fmt.Errorf("%%%s%% is not cut to a length", name)
	}
	return nil
}

// Names returns the names of all operators, sorted.
func Names() []string { return slices.Sorted(maps.Keys(operators)) }

// Examples returns a use of each operator, in no particular order.
func Examples() []string {
	var out []string
	for name, arg := range operators {
		switch {
		case arg.example == "":
			out = append(out, "%"+name+"%")
		case arg.optional:
			out = append(out, "%"+name+"%", "%"+name+"("+arg.example+")%")
		default:
			out = append(out, "%"+name+"("+arg.example+")%", "%"+name+"("+arg.further+"):20%")
		}
	}
	return out
}

// Literal returns the fixed text of a value, and false if the value has an
// operator. The value must be one that Check accepts.
func Literal(value string) (string, bool) {
	if strings.Contains(strings.ReplaceAll(value, "%%", ""), "%") {
		return "", false
	}
	return strings.ReplaceAll(value, "%%", "%"), true
}

// Of returns the value that produces a literal text.
func Of(literal string) string { return strings.ReplaceAll(literal, "%", "%%") }
