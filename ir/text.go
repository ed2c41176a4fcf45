package ir

import (
	"encoding/json"
	"reflect"
	"regexp"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/diag"
)

// String returns the configuration as YAML, for tests, problems and people. It is
// the same for equal configurations. No program reads it. Unset fields are left
// out. Possible secrets are Hidden: keys and certificates that are not file names,
// and the values of headers and query parameters whose names suggest a credential.
func (c *Config) String() string { return inLines(c) }

// The parts of a Config have the same form.
func (l *Listener) String() string    { return inLines(l) }
func (t *RouteTable) String() string  { return inLines(t) }
func (h *VirtualHost) String() string { return inLines(h) }
func (r *Route) String() string       { return inLines(r) }
func (c *Cluster) String() string     { return inLines(c) }

// Values are printed in one line, so that no message shows what String hides.
func (h Header) String() string      { return inOneLine(h) }
func (h HeaderMatch) String() string { return inOneLine(h) }
func (q QueryMatch) String() string  { return inOneLine(q) }

// Hidden replaces a possible secret in a text.
const Hidden = "(hidden)"

func inLines(part any) string {
	text, err := yaml.Marshal(tree(reflect.ValueOf(part)))
	if err != nil {
		panic(err) // Strings, numbers, lists and maps always encode.
	}
	return string(text)
}

func inOneLine(part any) string {
	text, err := json.Marshal(tree(reflect.ValueOf(part)))
	if err != nil {
		panic(err)
	}
	return string(text)
}

// tree converts a part to maps, lists and plain values.
func tree(v reflect.Value) any {
	switch part := v.Interface().(type) {
	case time.Duration:
		return part.String()
	case diag.Ref:
		return part.String()
	case credential.Key:
		return Hidden
	case []byte:
		return string(part)
	}
	switch v.Kind() {
	case reflect.Pointer:
		return tree(v.Elem())
	case reflect.Slice:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = tree(v.Index(i))
		}
		return out
	case reflect.Map:
		out := map[string]any{}
		for name, value := range v.Seq2() {
			out[name.String()] = tree(value)
		}
		return out
	case reflect.Struct:
		return members(v)
	}
	return v.Interface()
}

func members(v reflect.Value) map[string]any {
	bearer := isBearer(v)
	out := map[string]any{}
	for i := range v.NumField() {
		switch field := v.Type().Field(i); {
		case v.Field(i).IsZero():
		case isText(field.Type) && (isCredential(field) || bearer && field.Name != "Name"):
			out[field.Name] = Hidden
		default:
			out[field.Name] = tree(v.Field(i))
		}
	}
	return out
}

var (
	credentialField = regexp.MustCompile(`(Key|Certificate|Secret|Password|Token|Credential|PEM)s?$`)
	credentialName  = regexp.MustCompile(`(?i)authorization|cookie|token|secret|passw|credential|session|signature|jwt|api.?key|(^|[^a-z])(auth|key|sig|sid)s?($|[^a-z])`)
)

func isCredential(field reflect.StructField) bool {
	return credentialField.MatchString(field.Name) && field.Name != "EndpointKey"
}

// isBearer reports whether a part has the name of a credential, so that its value
// is one.
func isBearer(v reflect.Value) bool {
	switch part := v.Interface().(type) {
	case Header:
		return credentialName.MatchString(part.Name)
	case HeaderMatch:
		return credentialName.MatchString(part.Name)
	case QueryMatch:
		return credentialName.MatchString(part.Name)
	}
	return false
}

func isText(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Uint8: // bytes are text, too
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return isText(t.Elem())
	}
	return false
}

// Shown returns the value of a header or query parameter as messages may show it:
// Hidden if the name suggests a credential.
func Shown(name, value string) string {
	if credentialName.MatchString(name) {
		return Hidden
	}
	return value
}
