package audit

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// planted is a text that no event may have.
const planted = "planted-text-that-is-private"

// pemKey looks like a private key, with a line that is planted.
const pemKey = `-----BEGIN EC PRIVATE KEY-----\n` + planted + `\n-----END EC PRIVATE KEY-----`

// TestObjectsWithoutWhatIsPrivate checks what is left of objects.
func TestObjectsWithoutWhatIsPrivate(t *testing.T) {
	jwt := "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJh." + planted
	for text, want := range map[string]string{
		`{"kind":"RouteRule","metadata":{"name":"a"},"spec":{"precedence":12345678901234567890}}`:                                                                                                       `{"kind":"RouteRule","metadata":{"name":"a"},"spec":{"precedence":12345678901234567890}}`,
		`{"kind":"Secret","apiVersion":"x/v1","metadata":{"name":"a","labels":{"x":"y"},"annotations":{"note":"` + planted + `"}},"spec":{"certificate":"` + planted + `"},"data":["` + planted + `"]}`: `{"apiVersion":"x/v1","data":"(left out)","kind":"Secret","metadata":{"annotations":"(left out)","labels":{"x":"y"},"name":"a"},"spec":"(left out)"}`,
		`{"KIND":"secret","spec":"` + planted + `"}`:                 `{"KIND":"(left out)","spec":"(left out)"}`,
		`{"kind":"SecretList","items":[{"spec":"` + planted + `"}]}`: `{"items":"(left out)","kind":"SecretList"}`,
		`{"spec":{"operations":[{"verb":"patch","target":{"kind":"Secret","name":"a"},"patch":{"spec":"` + planted + `"}},{"verb":"create","object":{"kind":"Secret","metadata":"` + planted + `"}}]}}`:         `{"spec":{"operations":[{"patch":"(left out)","target":{"kind":"Secret","name":"(left out)"},"verb":"patch"},{"object":{"kind":"Secret","metadata":"(left out)"},"verb":"create"}]}}`,
		`{"spec":{"headers":{"Authorization":"` + planted + `","x-api-key":"` + planted + `","Set-Cookie":{"exact":"` + planted + `"}},"forwardOriginalToken":true,"token":null}}`:                              `{"spec":{"forwardOriginalToken":true,"headers":{"Authorization":"(left out)","Set-Cookie":"(left out)","x-api-key":"(left out)"},"token":null}}`,
		`{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"` + planted + `"}}}`:                                                                                                   `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"(left out)"}}}`,
		`[{"op":"add","path":"/spec/headers/Authorization","value":"` + planted + `"},{"op":"add","path":"/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration","value":"` + planted + `"}]`: `[{"op":"add","path":"/spec/headers/Authorization","value":"(left out)"},{"op":"add","path":"/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration","value":"(left out)"}]`,
		`{"a":"` + pemKey + `","b":"Bearer ` + planted + `","c":"x ` + jwt + `","d":["LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWS0tLS0t"],"e":{"` + jwt + `":1},"f":"curl -H 'Authorization: bearer ` + planted + `'"}`:  `{"a":"(left out)","b":"(left out)","c":"(left out)","d":["(left out)"],"e":{"(left out)":"(left out)"},"f":"(left out)"}`,
		`{"kind":"Role","rules":[{"resources":["secrets"],"verbs":["get"]}]}`:                                                                                                                                   `{"kind":"Role","rules":[{"resources":["secrets"],"verbs":["get"]}]}`,
		`"` + pemKey + `"`: `"(left out)"`,
	} {
		out, err := Object([]byte(text), false)
		if err != nil || string(out) != want {
			t.Errorf("%s\ngives %s, %v\nwant  %s", text, out, err, want)
		}
	}
}

// TestManagedFieldsAreLeftOut checks the objects of a rule with omitManagedFields.
func TestManagedFieldsAreLeftOut(t *testing.T) {
	const text = `{"items":[{"metadata":{"managedFields":[{"manager":"x"}],"name":"a"}}],"metadata":{"managedFields":[]}}`
	if out, err := Object([]byte(text), false); err != nil || string(out) != text {
		t.Errorf("%s, %v", out, err)
	}
	if out, err := Object([]byte(text), true); err != nil || string(out) != `{"items":[{"metadata":{"name":"a"}}],"metadata":{}}` {
		t.Errorf("%s, %v", out, err)
	}
}

// TestLongObjectsAreLeftOut checks the bound, also of a text that becomes longer as JSON.
func TestLongObjectsAreLeftOut(t *testing.T) {
	for _, tc := range []struct {
		unit string
		n    int
		fits bool
	}{{"a", MostObject - 2, true}, {"a", MostObject - 1, false}, {"<", MostObject / 2, false}} {
		out, err := Object([]byte(`"`+strings.Repeat(tc.unit, tc.n)+`"`), false)
		if fits := err == nil; fits != tc.fits || !fits && !errors.Is(err, ErrTooLong) || len(out) > MostObject && fits {
			t.Errorf("%d of %s: %d bytes, %v", tc.n, tc.unit, len(out), err)
		}
	}
	if _, err := Object([]byte(`{"a":`), false); err == nil {
		t.Error("half an object is an object")
	}
}

// FuzzObject plants a private key in any JSON, and looks for it in the result.
func FuzzObject(f *testing.F) {
	f.Add(`{"kind":"Secret","spec":{"x":%}}`, false)
	f.Add(`[{"op":"add","path":"/x","value":%}]`, true)
	f.Add(`{"a":[{"metadata":{"managedFields":[%],"annotations":{"x":%}}}]}`, true)
	f.Fuzz(func(t *testing.T, text string, omit bool) {
		text = strings.ReplaceAll(text, "%", `"`+pemKey+`"`)
		if !json.Valid([]byte(text)) {
			return
		}
		out, err := Object([]byte(text), omit)
		if err != nil && !errors.Is(err, ErrTooLong) {
			t.Fatal(err)
		}
		if err == nil && (!json.Valid(out) || len(out) > MostObject || strings.Contains(string(out), planted)) {
			t.Errorf("%s gives %s", text, out)
		}
	})
}
