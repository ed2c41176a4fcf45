package schema_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pilot-api/pilot-api/schema"
)

const checkedRule = `{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule","metadata":{"name":"a","namespace":"default","labels":{"owner":"ünal"}},"spec":{"destination":{"name":"reviews"},"route":[{"labels":{"version":"v1"},"weight":100}]}}`

// TestEveryFlippedBitIsFound: no text that differs in one bit from one that was
// stored with a checksum is read as an object.
func TestEveryFlippedBitIsFound(t *testing.T) {
	stored := schema.WithChecksum([]byte(checkedRule))
	if o, err := schema.Stored(stored, 7); err != nil || string(o.Encoded()) != checkedRule {
		t.Fatalf("as it was stored: %v, %v", o, err)
	}
	for i := range 8 * len(stored) {
		flipped := slices.Clone(stored)
		flipped[i/8] ^= 1 << (i % 8)
		if o, err := schema.Stored(flipped, 7); err == nil {
			t.Errorf("bit %d flipped is read as %s\n%s", i, o.JSON(), flipped)
		}
	}
}

// TestFlippedBitsWithoutChecksum: in a text of an older version a flipped bit may
// go unnoticed, but what comes of it is an object, in UTF-8, with a spec.
func TestFlippedBitsWithoutChecksum(t *testing.T) {
	for i := range 8 * len(checkedRule) {
		flipped := []byte(checkedRule)
		flipped[i/8] ^= 1 << (i % 8)
		o, err := schema.Stored(flipped, 7)
		if err != nil {
			continue
		}
		var read struct{ Spec map[string]any }
		if !utf8.Valid(o.JSON()) || json.Unmarshal(o.JSON(), &read) != nil || read.Spec == nil {
			t.Errorf("bit %d flipped is read as %s", i, o.JSON())
		}
	}
}

// TestStoredOfOldVersions: what was stored without a checksum is read as before.
func TestStoredOfOldVersions(t *testing.T) {
	o, err := schema.Stored([]byte(checkedRule), 7)
	if err != nil || string(o.Encoded()) != checkedRule || o.Revision() != 7 {
		t.Errorf("%v, %v", o, err)
	}
}

// TestChecksumToOldVersions: a version that knows no checksum reads the members
// that it knows.
func TestChecksumToOldVersions(t *testing.T) {
	var e struct {
		Kind string          `json:"kind"`
		Spec json.RawMessage `json:"spec"`
	}
	stored := schema.WithChecksum([]byte(checkedRule))
	if err := json.Unmarshal(stored, &e); err != nil || e.Kind != "RouteRule" || !strings.Contains(checkedRule, string(e.Spec)) {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestStoredThatIsNoObject(t *testing.T) {
	with := func(old, new string) string { return strings.Replace(checkedRule, old, new, 1) }
	spec := checkedRule[strings.Index(checkedRule, `"spec":`)+len(`"spec":`) : len(checkedRule)-1]
	for name, text := range map[string]string{
		"null in place of the spec": with(spec, "null"),
		"a list":                    with(spec, "[]"),
		"no spec":                   with(`,"spec":`+spec, ""),
		"spec under another name":   with(`"spec"`, `"spdc"`),
		"spec in other letters":     with(`"spec"`, `"Spec"`),
		"one member more":           with(`,"spec"`, `,"status":{},"spec"`),
		"metadata that is a text":   with(`"metadata":{"name":"a","namespace":"default","labels":{"owner":"ünal"}}`, `"metadata":"x"`),
		"no UTF-8":                  with("ü", "\xc3"),
		"a checksum in part":        with(spec+"}", spec+`,"crc32c":"1234567"}`),
		"a checksum by another name": func() string {
			return string(bytes.Replace(schema.WithChecksum([]byte(checkedRule)), []byte("crc32c"), []byte("crc32b"), 1))
		}(),
	} {
		if o, err := schema.Stored([]byte(text), 7); err == nil {
			t.Errorf("%s: %s", name, o.JSON())
		}
	}
}
