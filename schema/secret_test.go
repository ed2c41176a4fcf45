package schema_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/schema"
)

// secretText is a Secret as JSON.
func secretText(t *testing.T, name string, annotations, spec map[string]string) []byte {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"apiVersion": "registry.istio.io/v1", "kind": "Secret",
		"metadata": map[string]any{"name": name, "annotations": annotations}, "spec": spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func decodeSecret(t *testing.T, text []byte) *schema.Object {
	t.Helper()
	o, problems := schema.Decode(text, schema.Options{})
	if o == nil {
		t.Fatal(problems.Err())
	}
	return o
}

// shows reports whether a text has some of a key in it.
func shows(text, key string) bool {
	for line := range strings.Lines(key) {
		if line = strings.TrimSpace(line); len(line) > 20 && !strings.Contains(line, "-----") && strings.Contains(text, line) {
			return true
		}
	}
	numbers, hex := fmt.Sprint([]byte(key)[30:60]), fmt.Sprintf("%x", key[30:60])
	return strings.Contains(text, numbers[1:len(numbers)-1]) || strings.Contains(strings.ToLower(text), hex)
}

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

func TestSecretIsShownWithoutItsKey(t *testing.T) {
	certificate, key := selfsigned.NewAuthority(t, t.TempDir()).PEM(t, "a.example")
	spec := map[string]string{"certificate": certificate, "privateKey": key}
	o := decodeSecret(t, secretText(t, "a", map[string]string{lastApplied: string(secretText(t, "a", nil, spec))}, spec))
	encoded := o.Encoded()
	stored, err := schema.Stored(encoded, 7)
	if err != nil {
		t.Fatal(err)
	}
	meta := stored.Meta
	meta.Labels = map[string]string{"a": "b"}
	labelled, err := stored.WithMeta(meta)
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]*schema.Object{"decoded": o, "stored": stored, "labelled": labelled} {
		var log strings.Builder
		typed, err := o.Spec()
		if err != nil {
			t.Fatal(err)
		}
		slog.New(slog.NewTextHandler(&log, nil)).Info("an object", "object", o, "value", *o, "spec", typed, "meta", o.Meta)
		texts := []string{string(o.JSON()), string(o.SpecJSON()), log.String(), fmt.Sprint(schema.WideTableCells(o, time.Now())...), fmt.Sprint(schema.OwnOf(o))}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			for _, value := range []any{o, *o, []*schema.Object{o}, typed, o.Meta, struct{ o *schema.Object }{o}} {
				texts = append(texts, fmt.Sprintf(verb, value))
			}
		}
		for _, text := range texts {
			if shows(text, key) {
				t.Errorf("%s: the key shows in %.60s…", name, text)
			}
		}
		if got := typed.(*schema.Secret).PrivateKey.Reveal(); got != key {
			t.Errorf("%s: the key is %q", name, got)
		}
		if again, problems := schema.Decode(o.Written(), schema.Options{}); again == nil || problems.Err() != nil {
			t.Errorf("%s: what is written does not decode: %v", name, problems)
		}
		if !strings.Contains(o.Meta.Annotations[lastApplied], "(kept: sha256:") {
			t.Errorf("%s: applied last: %s", name, o.Meta.Annotations[lastApplied])
		}
	}
	if !shows(string(encoded), key) {
		t.Error("the key is not stored")
	}
}

func TestMarkIsTheKeyThatStays(t *testing.T) {
	authority := selfsigned.NewAuthority(t, t.TempDir())
	certificate, key := authority.PEM(t, "a.example")
	other, otherKey := authority.PEM(t, "b.example")
	secret := func(name, certificate, key string) *schema.Object {
		return decodeSecret(t, secretText(t, name, nil, map[string]string{"certificate": certificate, "privateKey": key}))
	}
	markOf := func(o *schema.Object) string {
		var spec map[string]string
		if err := json.Unmarshal(o.SpecJSON(), &spec); err != nil {
			t.Fatal(err)
		}
		return spec["privateKey"]
	}
	stored := secret("a", certificate, key)
	mark := markOf(stored)
	if markOf(secret("b", certificate, key)) == mark || markOf(secret("a", other, otherKey)) == mark {
		t.Error("the mark tells no object, or no key, from others")
	}
	for _, c := range []struct {
		name   string
		given  *schema.Object
		stored *schema.Object
		refuse bool
	}{
		{"the stored key", secret("a", certificate, mark), stored, false},
		{"the stored key behind a chain", secret("a", certificate+authority.AuthorityPEM(t), mark), stored, false},
		{"a new key", secret("a", other, otherKey), stored, false},
		{"the stored key to a new certificate", secret("a", other, mark), stored, true},
		{"of another key", secret("a", certificate, "(kept: sha256:0123456789abcdef)"), stored, true},
		{"of another object", secret("a", certificate, markOf(secret("b", certificate, key))), stored, true},
		{"nothing stored", secret("a", certificate, mark), nil, true},
		{"no key stored", secret("a", certificate, mark), decodeSecret(t, secretText(t, "a", nil, map[string]string{"caCertificates": certificate})), true},
	} {
		got, problems := c.given.Keeping(c.stored)
		if refused := len(problems) > 0; refused != c.refuse {
			t.Errorf("%s: %v", c.name, problems)
		}
		if !c.refuse && !shows(string(got.Written()), key) && !shows(string(got.Written()), otherKey) {
			t.Errorf("%s: has no key", c.name)
		}
	}
}

// TestProblemsOfSecretsHaveNoData: whatever is wrong, nothing that was given comes
// back.
func TestProblemsOfSecretsHaveNoData(t *testing.T) {
	certificate, key := selfsigned.NewAuthority(t, t.TempDir()).PEM(t, "a.example")
	quoted, err := json.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	head := `{"apiVersion":"registry.istio.io/v1","kind":"Secret","metadata":{"name":"a"},`
	wholeSpec := string(secretText(t, "a", nil, map[string]string{"certificate": certificate, "privateKey": key}))
	for name, text := range map[string]string{
		"list":              head + `"spec":{"privateKey":[` + string(quoted) + `]}}`,
		"number":            head + `"spec":{"privateKey":12345}}`,
		"wrong name":        head + `"spec":{"private-key":` + string(quoted) + `}}`,
		"spec is the key":   head + `"spec":` + string(quoted) + `}`,
		"in certificate":    head + `"spec":{"certificate":` + string(quoted) + `,"privateKey":` + string(quoted) + `}}`,
		"in an annotation":  strings.Replace(wholeSpec, `"annotations":null`, `"annotations":{"note":`+string(quoted)+`}`, 1),
		"no kind":           `{"apiVersion":"registry.istio.io/v1","metadata":{"name":"a"},"spec":` + string(quoted) + `}`,
		"cut off":           wholeSpec[:len(wholeSpec)-100],
		"in YAML, unquoted": "apiVersion: registry.istio.io/v1\nkind: Secret\nmetadata: {name: a}\nspec:\n  privateKey: |\n" + key,
	} {
		o, problems := schema.Decode([]byte(text), schema.Options{})
		if o != nil {
			t.Errorf("%s: accepted", name)
		}
		if said := fmt.Sprintf("%+v %v", problems, problems.Err()); shows(said, key) || strings.Contains(said, "12345") {
			t.Errorf("%s: %s", name, said)
		}
	}
}

// TestUnreadableAnnotationOfASecret is not kept: what is in it cannot be told.
// TestKeyInMetadataOfASecret checks that no annotation and no label holds a private key, in
// whatever form tools write it.
func TestKeyInMetadataOfASecret(t *testing.T) {
	const key = "-----BEGIN EC PRIVATE KEY-----\nTUlHSEFnRUFNQk1HQnlxR1NNNDlBZ0VHQ0NxR1NNNDlBd0VIQkcwd2F3SUJBUVFn\n-----END EC PRIVATE KEY-----\n"
	encode := base64.StdEncoding.EncodeToString
	wrapped := encode([]byte(key))
	wrapped = wrapped[:30] + "\n" + wrapped[30:40] + "\r\n" + wrapped[40:]
	for name, text := range map[string]string{
		"text": key, "base64": encode([]byte(key)), "one byte before": encode([]byte("x" + key)), "two bytes before": encode([]byte("xx" + key)),
		"for URLs": base64.RawURLEncoding.EncodeToString([]byte("\xff\xfe" + key)), "in lines": wrapped, "JSON": fmt.Sprintf("{%q: %q}", "tls.key", wrapped),
		"the end alone": encode([]byte(key[70:])),
	} {
		o, list := schema.Decode(secretText(t, "a", map[string]string{"example.com/b": text}, map[string]string{"caCertificates": "x"}), schema.Options{})
		if o != nil || !strings.Contains(fmt.Sprint(list.Err()), "metadata.annotations[example.com/b]: must not hold a private key") {
			t.Errorf("%s: %v", name, list)
		}
		if strings.Contains(fmt.Sprint(list), text[10:30]) {
			t.Errorf("%s: the error shows it: %v", name, list)
		}
	}
	label := encode([]byte(key))[6:66]
	text := strings.Replace(string(secretText(t, "a", nil, map[string]string{"caCertificates": "x"})), `"annotations":null`, `"labels":{"b":"`+label+`"}`, 1)
	if _, list := schema.Decode([]byte(text), schema.Options{}); !strings.Contains(fmt.Sprint(list.Err()), "metadata.labels.b: must not hold a private key") {
		t.Errorf("label: %v", list)
	}
	for _, text := range []string{"PRIVATE KEY", encode([]byte("-----BEGIN PUBLIC KEY-----")), encode([]byte("-----BEGIN CERTIFICATE-----")), strings.Repeat("LS0t", 40)} {
		if _, list := schema.Decode(secretText(t, "a", map[string]string{"example.com/b": text}, map[string]string{"caCertificates": "x"}), schema.Options{}); strings.Contains(fmt.Sprint(list), "private key") {
			t.Errorf("%s: %v", text, list)
		}
	}
}

func TestUnreadableAnnotationOfASecret(t *testing.T) {
	certificate, key := selfsigned.NewAuthority(t, t.TempDir()).PEM(t, "a.example")
	kind, _ := schema.KindByName("Secret")
	spec, err := json.Marshal(map[string]string{"certificate": certificate, "privateKey": key})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{key, "spec: {privateKey: x}", `{"other":` + string(spec) + `}`} {
		o, err := schema.New(kind, metav1.ObjectMeta{Name: "a", Namespace: "default", Annotations: map[string]string{lastApplied: text}}, spec)
		if err != nil {
			t.Fatal(err)
		}
		if shows(string(o.JSON()), key) || o.Meta.Annotations[lastApplied] != "" {
			t.Errorf("kept: %s", o.JSON())
		}
	}
}
