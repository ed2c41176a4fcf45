package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
)

// MostObject bounds each object of an event, in bytes. A longer one is left out, because a part
// of it would be no JSON.
const MostObject = 64 << 10

// truncated is the annotation of an event from which an object is left out, because it is longer
// than MostObject. It is that of Kubernetes.
const truncated = "audit.k8s.io/truncated"

// LeftOut stands in an object for a value that is, or may be, private.
const LeftOut = "(left out)"

// ErrTooLong reports that an object is longer than MostObject.
var ErrTooLong = errors.New("the object is too long for the audit log")

// Object returns the JSON of a body, such as an object, a list or a patch, for an event. It has
// LeftOut in place of
//
//   - all of an object whose kind has secret in its name, except its metadata without annotations,
//   - values of fields, headers and annotations that have the name of a credential,
//   - texts with a private key or a token.
//
// The error is ErrTooLong, or says why the text is no JSON.
func Object(text []byte, omitManagedFields bool) (json.RawMessage, error) {
	if len(text) > MostObject {
		return nil, ErrTooLong
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	out, err := json.Marshal(cleaner{omitManagedFields}.value(value))
	if err == nil && len(out) > MostObject {
		err = ErrTooLong
	}
	return out, err
}

// cleaner replaces what is private in a JSON value.
type cleaner struct{ omitManagedFields bool }

func (c cleaner) value(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return c.fields(v)
	case []any:
		for i := range v {
			v[i] = c.value(v[i])
		}
	case string:
		if isCredential(v) {
			return LeftOut
		}
	}
	return v
}

// managedFields is the field of metadata that says who owns which field.
const managedFields = "managedFields"

func (c cleaner) fields(fields map[string]any) map[string]any {
	keep := func(string) bool { return true }
	if isSecret(fields) {
		keep = func(name string) bool { return slices.Contains(keptOfSecrets, name) }
	}
	out := make(map[string]any, len(fields))
	for name, v := range fields {
		switch {
		case isCredential(name):
			out[LeftOut] = LeftOut
		case name == managedFields && c.omitManagedFields:
		case name == "metadata" && isSecret(fields):
			out[name] = c.metadata(v)
		case !keep(name), isPrivate(name, v), name == "value" && isPrivatePath(fields["path"], v):
			out[name] = LeftOut
		default:
			out[name] = c.value(v)
		}
	}
	return out
}

// metadata returns the metadata of a secret. Its annotations may have the whole secret.
func (c cleaner) metadata(v any) any {
	fields, ok := v.(map[string]any)
	if !ok {
		return LeftOut
	}
	if fields["annotations"] != nil {
		fields["annotations"] = LeftOut
	}
	return c.fields(fields)
}

// keptOfSecrets are the fields of a secret, or of an operation with one, that are no secret.
var keptOfSecrets = []string{"apiVersion", "kind", "metadata", "verb", "target", "patchType", "preconditions"}

// isSecret reports whether fields are those of an object of a secret kind, of a list of them, or
// of an operation with one.
func isSecret(fields map[string]any) bool {
	if target, ok := fields["target"].(map[string]any); ok && isSecret(target) {
		return true
	}
	for name, v := range fields {
		if kind, ok := v.(string); ok && strings.EqualFold(name, "kind") && strings.Contains(strings.ToLower(kind), "secret") {
			return true
		}
	}
	return false
}

// privateNames are names of fields, headers and annotations whose values are private, as
// plainName returns them. The last one is the annotation in which kubectl keeps a whole object.
var privateNames = []string{"cookie", "setcookie", "kubectl.kubernetes.io/lastappliedconfiguration"}

// privateEndings are endings of such names.
var privateEndings = []string{"authorization", "token", "password", "passphrase", "privatekey", "secret", "apikey", "secretkey", "clientkey"}

func plainName(name string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
}

// isPrivate reports whether the value of a name is private. A number or a truth value is not.
func isPrivate(name string, v any) bool {
	switch v.(type) {
	case nil, bool, json.Number:
		return false
	}
	name = plainName(name)
	return slices.Contains(privateNames, name) || slices.ContainsFunc(privateEndings, func(end string) bool { return strings.HasSuffix(name, end) })
}

// isPrivatePath reports whether the value of an operation of a JSON patch is private.
func isPrivatePath(path, v any) bool {
	text, _ := path.(string)
	for segment := range strings.SplitSeq(text, "/") {
		if isPrivate(strings.NewReplacer("~1", "/", "~0", "~").Replace(segment), v) {
			return true
		}
	}
	return false
}

// credentials are texts of private keys, in PEM or in base64 of it, of JSON web tokens, and of
// the header Authorization.
var credentials = regexp.MustCompile(`PRIVATE KEY|LS0tLS1CRUdJTi|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+|(?i:^\s*(?:bearer|basic|digest|negotiate)\s+\S)|(?i:\bbearer\s+[a-z0-9+/._~=-]{12,})`)

func isCredential(text string) bool { return credentials.MatchString(text) }
