package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// sameWays reads a text both ways, and reports whether the short one takes it.
// What it takes, the long one takes, and both make the same of it.
func sameWays(t *testing.T, text []byte) (short bool) {
	t.Helper()
	opts := Options{File: "f", Namespace: "elsewhere"}
	got, warnings := decodeWritten(text, opts)
	if got == nil {
		return false
	}
	want, list := decodeAny(text, opts)
	if want == nil {
		t.Fatalf("%s\nis taken by the short way alone, the long one says %v", text, list)
	}
	if diff := cmp.Diff(list, warnings); diff != "" {
		t.Fatalf("%s\nwarnings (-long +short):\n%s", text, diff)
	}
	if !bytes.Equal(got.JSON(), want.JSON()) || !bytes.Equal(got.SpecJSON(), want.SpecJSON()) || got.Kind != want.Kind {
		t.Fatalf("%s\nis  %s\nand %s", text, got.JSON(), want.JSON())
	}
	if diff := cmp.Diff(want.Meta, got.Meta); diff != "" {
		t.Fatalf("%s\nmetadata (-long +short):\n%s", text, diff)
	}
	if o, list := decodeWritten(got.JSON(), opts); o == nil || !bytes.Equal(o.JSON(), got.JSON()) {
		t.Fatalf("the written form takes the long way: %s\n%v", got.JSON(), list)
	}
	return true
}

// TestShortWay draws objects like the good ones that there are of each kind.
func TestShortWay(t *testing.T) {
	const total, often = 600, 100
	good := goodObjects(t)
	for _, kind := range Kinds() {
		if len(kind.private) > 0 || kind.Flat {
			continue // It always goes the long way.
		}
		t.Run(kind.Kind, func(t *testing.T) {
			taken := 0
			for seed := range uint64(total) {
				if sameWays(t, drawObject(seed, kind, good[kind])) {
					taken++
				}
			}
			if taken < often || total-taken < often {
				t.Errorf("%d of %d took the short way, want %d that do and that do not", taken, total, often)
			}
		})
	}
}

// goodObjects are those of the examples and of the tests of translation.
func goodObjects(t testing.TB) map[*Kind][]*Object {
	t.Helper()
	out := map[*Kind][]*Object{}
	add := func(text []byte, name string) {
		for _, doc := range Split(text, name) {
			objects, _, err := doc.Objects(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range objects {
				out[o.Kind] = append(out[o.Kind], o)
			}
		}
	}
	for _, pattern := range []string{"../examples/*/*.yaml", "../testdata/translate/*.txtar"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			if filepath.Ext(file) == ".yaml" {
				add(readFile(t, file), file)
				continue
			}
			for _, part := range txtar.Parse(readFile(t, file)).Files {
				if filepath.Ext(part.Name) == ".yaml" {
					add(part.Data, part.Name)
				}
			}
		}
	}
	return out
}

// drawObject spells one of the good objects anew, and puts something else in
// places.
func drawObject(seed uint64, kind *Kind, good []*Object) []byte {
	d := drawing{r: rand.New(rand.NewPCG(seed, 2)), wrong: []int{0, 0, 1, 2}[seed%4]}
	o := pick(&d, good...)
	var parts struct{ Metadata, Spec any }
	if err := json.Unmarshal(o.JSON(), &parts); err != nil {
		panic(err)
	}
	d.text.WriteString(`{"kind":`)
	d.quote(kind.Kind)
	fmt.Fprintf(&d.text, `,"apiVersion":%q,"metadata":`, kind.APIVersion())
	if d.one(4) {
		d.value(compiled()["object"].Properties["metadata"], 0)
	} else {
		d.like(parts.Metadata, compiled()["object"].Properties["metadata"])
	}
	d.text.WriteString(`,"spec":`)
	d.like(parts.Spec, compiled()[kind.Singular])
	d.text.WriteString(pick(&d, "}", "}", "}", `,"status":{"a":[1,null]}}`, "}\n", "} x", `,"status":{"a":1,"a":2}}`))
	return d.text.Bytes()
}

// like writes a value in another spelling, and what its schema draws instead of
// what is amiss.
func (d *drawing) like(v any, s *jsonschema.Schema) {
	if d.amiss() {
		d.value(s, 3)
		return
	}
	d.space()
	switch v := v.(type) {
	case map[string]any:
		d.text.WriteByte('{')
		names := slices.Sorted(maps.Keys(v))
		if d.one(3) {
			d.r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		}
		for i, name := range names {
			if i > 0 {
				d.text.WriteByte(',')
			}
			d.quote(name)
			d.text.WriteByte(':')
			inner, _ := below(s, v, name)
			d.like(v[name], inner)
		}
		d.text.WriteByte('}')
	case []any:
		d.text.WriteByte('[')
		for i := range v {
			if i > 0 {
				d.text.WriteByte(',')
			}
			inner, _ := below(s, v, strconv.Itoa(i))
			d.like(v[i], inner)
		}
		d.text.WriteByte(']')
	case string:
		d.quote(v)
	default:
		text, _ := json.Marshal(v)
		d.text.Write(text)
		if n, ok := v.(float64); ok && n == math.Trunc(n) && d.one(10) {
			d.text.WriteString(pick(d, ".0", "e0", ".00e+0"))
		}
	}
	d.space()
}

// Whoever sends back what was answered takes the short way, and so does what
// istioctl makes of the examples.
func TestExamplesTakeTheShortWay(t *testing.T) {
	files, err := filepath.Glob("../examples/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	taken := 0
	for _, file := range files {
		for _, doc := range Split(readFile(t, file), file) {
			objects, _, err := doc.Objects(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range objects {
				if sameWays(t, o.AtRevision(7).JSON()) {
					taken++
				} else if _, list := Decode(o.JSON(), Options{}); len(list) == 0 {
					t.Errorf("%s: the long way for %s", file, o.JSON())
				}
			}
		}
	}
	if taken < len(files)/2 {
		t.Errorf("%d of the objects in %d files", taken, len(files))
	}
}

func FuzzShortWay(f *testing.F) {
	good := goodObjects(f)
	for _, kind := range Kinds() {
		if kind.Flat {
			continue // It always goes the long way.
		}
		for seed := range uint64(8) {
			f.Add(drawObject(seed, kind, good[kind]))
		}
	}
	for _, odd := range oddValues {
		f.Add([]byte(`{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule","metadata":{"name":"a","annotations":{"a":` + odd + `}},"spec":{"precedence":` + odd + `,"destination":{"name":"a"}}}`))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		sameWays(t, text)
		if beginsAsJSON(text) {
			sameVerdict(t, "object", text)
		}
	})
}

// TestValidateIsTheSameBothWays: an object that was built by hand passes the
// short way only if nothing is to be said about it.
func TestValidateIsTheSameBothWays(t *testing.T) {
	short, long := 0, 0
	good := goodObjects(t)
	for _, kind := range Kinds() {
		if kind.Flat {
			continue // It always goes the long way.
		}
		for seed := range uint64(100) {
			d := drawing{r: rand.New(rand.NewPCG(seed, 3)), wrong: int(seed % 3)}
			var spec any
			if err := json.Unmarshal(pick(&d, good[kind]...).SpecJSON(), &spec); err != nil {
				t.Fatal(err)
			}
			d.like(spec, compiled()[kind.Singular])
			meta := metav1.ObjectMeta{Name: pick(&d, "a", "a", "A"), Namespace: pick(&d, "b", "b", "b", "")}
			o, err := New(kind, meta, d.text.Bytes())
			if err != nil {
				continue // No JSON.
			}
			list := o.complaints()
			if o.isWritten() {
				short++
				if len(list) > 0 {
					t.Fatalf("%s passes the short way alone: %v", o.JSON(), list)
				}
			} else {
				long++
			}
		}
	}
	if short < 200 || long < 200 {
		t.Errorf("%d passed the short way and %d did not", short, long)
	}
}

// TestMetaIsTheSame: metadata is read and written as encoding/json does.
func TestMetaIsTheSame(t *testing.T) {
	at, zero, grace := metav1.NewTime(time.Date(2026, 11, 22, 10, 0, 0, 0, time.FixedZone("x", 3600))), metav1.Time{}, int64(0)
	texts := []string{"", "a", "ä€", "<&>", "a\"b\\", "\u2028", "\n", strings.Repeat("x", 100)}
	for seed := range uint64(2000) {
		d := drawing{r: rand.New(rand.NewPCG(seed, 4))}
		text := func() string { return pick(&d, texts...) }
		m := metav1.ObjectMeta{
			Name: text(), GenerateName: text(), Namespace: text(), UID: types.UID(text()), Generation: pick[int64](&d, 0, 1, 1<<53),
			CreationTimestamp: pick(&d, zero, at), DeletionTimestamp: pick(&d, nil, &at), DeletionGracePeriodSeconds: pick(&d, nil, &grace),
		}
		for range d.r.IntN(20) {
			metav1.SetMetaDataLabel(&m, text()+text(), text())
			metav1.SetMetaDataAnnotation(&m, text()+text(), text())
		}
		for range d.r.IntN(3) {
			m.Finalizers = append(m.Finalizers, text())
		}
		if d.one(10) {
			m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: text(), Time: pick(&d, nil, &at), FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}}
		}
		want, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := appendMeta([]byte("{"), &m)
		if got = append(got, '}'); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s, %v, want %s", got, err, want)
		}
		sameMeta(t, want)
	}
}

func sameMeta(t *testing.T, text []byte) {
	t.Helper()
	s, ok := read(string(text))
	defer s.done()
	if !ok {
		t.Fatalf("%s is not read", text)
	}
	got, ok := s.meta(0)
	if !ok {
		t.Fatalf("%s is not read", text)
	}
	var want metav1.ObjectMeta
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", text, diff)
	}
}

// TestAtRevision: an object at a revision is what is read of what was stored, and
// what is stored of it is the same again.
func TestAtRevision(t *testing.T) {
	good := goodObjects(t)
	for _, kind := range Kinds() {
		if kind.Flat {
			continue // TestFlatObjects has them.
		}
		for seed := range uint64(50) {
			o, _ := Decode(drawObject(4*seed, kind, good[kind]), Options{})
			if o == nil {
				continue
			}
			for _, revision := range []string{"", "5", "a\"b"} {
				meta := o.Meta
				meta.ResourceVersion = revision
				given, err := o.WithMeta(meta)
				if err != nil {
					t.Fatal(err)
				}
				meta.ResourceVersion = ""
				bare, err := New(kind, meta, slices.Clone(o.SpecJSON()))
				if err != nil {
					t.Fatal(err)
				}
				sameStored(t, given, bare)
			}
		}
	}
	bare, err := New(Kinds()[0], metav1.ObjectMeta{}, []byte("{ }"))
	if err != nil {
		t.Fatal(err)
	}
	sameStored(t, bare.AtRevision(3), bare)
}

func sameStored(t *testing.T, given, bare *Object) {
	t.Helper()
	if !bytes.Equal(given.Encoded(), bare.JSON()) || !given.IsEncodedAs(bare.JSON()) {
		t.Fatalf("%s is stored as %s", given.JSON(), given.Encoded())
	}
	if given.IsEncodedAs(append(slices.Clone(bare.JSON()), ' ')) || given.IsEncodedAs(bytes.Replace(bare.JSON(), []byte(`"spec"`), []byte(`"Spec"`), 1)) {
		t.Fatalf("%s is stored as something else, too", given.JSON())
	}
	stored, err := Stored(given.Encoded(), 1234)
	if err != nil {
		t.Fatal(err)
	}
	at := given.AtRevision(1234)
	if !bytes.Equal(stored.JSON(), at.JSON()) || !bytes.Equal(stored.SpecJSON(), at.SpecJSON()) || !json.Valid(at.JSON()) || at.Revision() != 1234 {
		t.Fatalf("stored %s\nat     %s", stored.JSON(), at.JSON())
	}
	var whole struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal(at.JSON(), &whole); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole.Metadata, stored.Meta); diff != "" {
		t.Fatalf("metadata of %s (-want +got):\n%s", at.JSON(), diff)
	}
}

// TestCopiesAreNotTaken: only the very object that Decode made passes unseen.
func TestCopiesAreNotTaken(t *testing.T) {
	o, list := Decode([]byte(benchRule), Options{})
	if o == nil {
		t.Fatal(list)
	}
	if o.decoded != o {
		t.Error("Decode made an object that will be checked again")
	}
	meta := o.Meta
	meta.Name = "Not_A_Name"
	renamed, err := o.WithMeta(meta)
	if err != nil {
		t.Fatal(err)
	}
	forged := *o
	forged.raw = renamed.raw
	for _, other := range []*Object{renamed, &forged, o.AtRevision(3)} {
		if other.decoded == other {
			t.Errorf("%s passes unseen", other.JSON())
		}
	}
	if Validate(&forged).Err() == nil || Validate(renamed).Err() == nil {
		t.Error("a name that is none passes")
	}
}
