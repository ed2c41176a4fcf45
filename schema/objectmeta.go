package schema

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// encoding/json takes longer for the metadata than for all the rest of an object.
// The code here reads and writes the same, byte for byte, and leaves rare cases to
// encoding/json.

// meta reads the metadata at a node; ok is false if encoding/json must read it. Its
// strings share one copy of the metadata's text and do not keep the whole text in
// memory.
func (s *scan) meta(i int32) (meta metav1.ObjectMeta, ok bool) {
	n := &s.nodes[i]
	if n.what != '{' {
		return meta, false
	}
	r := metaReader{scan: s, own: strings.Clone(s.text[n.start:n.end]), from: n.start, ok: true}
	for m := i + 1; m < n.after && r.ok; m = s.nodes[m].after {
		if s.nodes[m].what != dropped {
			r.field(&meta, m)
		}
	}
	return meta, r.ok
}

type metaReader struct {
	*scan
	own  string // the text of the metadata, which begins at from
	from int32
	ok   bool
}

func (r *metaReader) field(meta *metav1.ObjectMeta, i int32) {
	switch r.name(i) {
	case "name":
		meta.Name = r.value(i)
	case "generateName":
		meta.GenerateName = r.value(i)
	case "namespace":
		meta.Namespace = r.value(i)
	case "uid":
		meta.UID = types.UID(r.value(i))
	case "resourceVersion":
		meta.ResourceVersion = r.value(i)
	case "generation":
		meta.Generation = r.integer(i)
	case "creationTimestamp":
		meta.CreationTimestamp = r.time(i)
	case "deletionTimestamp":
		at := r.time(i)
		meta.DeletionTimestamp = &at
	case "deletionGracePeriodSeconds":
		seconds := r.integer(i)
		meta.DeletionGracePeriodSeconds = &seconds
	case "labels":
		meta.Labels = r.texts(i)
	case "annotations":
		meta.Annotations = r.texts(i)
	case "finalizers":
		meta.Finalizers = r.list(i)
	case "managedFields":
		n := &r.nodes[i]
		r.ok = r.ok && json.Unmarshal([]byte(r.text[n.start:n.end]), &meta.ManagedFields) == nil
	default:
		r.ok = false
	}
}

func (r *metaReader) value(i int32) string {
	n := &r.nodes[i]
	if n.what == '"' && !n.escaped {
		return r.own[n.start+1-r.from : n.end-1-r.from]
	}
	text, ok := r.of(i)
	r.ok = r.ok && ok
	return text
}

func (r *metaReader) integer(i int32) int64 {
	n := &r.nodes[i]
	v, err := strconv.ParseInt(r.text[n.start:n.end], 10, 64)
	r.ok = r.ok && n.what == 0 && n.plain && err == nil
	return v
}

// time parses a time as metav1.Time does.
func (r *metaReader) time(i int32) metav1.Time {
	at, err := time.Parse(time.RFC3339, r.value(i))
	r.ok = r.ok && err == nil
	return metav1.Time{Time: at.Local()}
}

func (r *metaReader) texts(i int32) map[string]string {
	n := &r.nodes[i]
	r.ok = r.ok && n.what == '{'
	out := make(map[string]string, n.members)
	for m := i + 1; m < n.after; m = r.nodes[m].after {
		name := r.name(m)
		if at := &r.nodes[m]; at.nameStart >= 0 {
			name = r.own[at.nameStart-r.from : at.nameEnd-r.from]
		}
		out[name] = r.value(m)
	}
	return out
}

func (r *metaReader) list(i int32) []string {
	n := &r.nodes[i]
	r.ok = r.ok && n.what == '['
	out := make([]string, 0, n.members)
	for m := i + 1; m < n.after; m = r.nodes[m].after {
		out = append(out, r.value(m))
	}
	return out
}

// appendMeta appends the members of metadata except the resourceVersion, which
// precedes them.
func appendMeta(out []byte, meta *metav1.ObjectMeta) ([]byte, error) {
	//lint:ignore SA1019 What is given is written.
	if meta.SelfLink != "" || len(meta.OwnerReferences) > 0 {
		return appendRareMeta(out, *meta)
	}
	w := metaWriter{out: out, first: len(out)}
	w.text("name", meta.Name)
	w.text("generateName", meta.GenerateName)
	w.text("namespace", meta.Namespace)
	w.text("uid", string(meta.UID))
	if meta.Generation != 0 {
		w.integer("generation", meta.Generation)
	}
	if !meta.CreationTimestamp.IsZero() {
		w.time("creationTimestamp", meta.CreationTimestamp)
	}
	if meta.DeletionTimestamp != nil {
		w.time("deletionTimestamp", *meta.DeletionTimestamp)
	}
	if meta.DeletionGracePeriodSeconds != nil {
		w.integer("deletionGracePeriodSeconds", *meta.DeletionGracePeriodSeconds)
	}
	w.texts("labels", meta.Labels)
	w.texts("annotations", meta.Annotations)
	w.list("finalizers", meta.Finalizers)
	if len(meta.ManagedFields) == 0 {
		return w.out, nil
	}
	text, err := json.Marshal(meta.ManagedFields)
	if err != nil {
		return nil, err
	}
	w.name("managedFields")
	return append(w.out, text...), nil
}

func appendRareMeta(out []byte, meta metav1.ObjectMeta) ([]byte, error) {
	meta.ResourceVersion = ""
	text, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	return append(out, text[1:len(text)-1]...), nil
}

type metaWriter struct {
	out   []byte
	first int // where the first member goes
}

func (w *metaWriter) name(name string) {
	if len(w.out) > w.first {
		w.out = append(w.out, ',')
	}
	w.out = append(w.out, '"')
	w.out = append(w.out, name...)
	w.out = append(w.out, `":`...)
}

func (w *metaWriter) text(name, value string) {
	if value != "" {
		w.name(name)
		w.out = appendText(w.out, value)
	}
}

func (w *metaWriter) integer(name string, value int64) {
	w.name(name)
	w.out = strconv.AppendInt(w.out, value, 10)
}

func (w *metaWriter) time(name string, value metav1.Time) {
	w.name(name)
	if value.IsZero() {
		w.out = append(w.out, "null"...)
		return
	}
	w.out = append(w.out, '"')
	w.out = value.UTC().AppendFormat(w.out, time.RFC3339)
	w.out = append(w.out, '"')
}

func (w *metaWriter) texts(name string, values map[string]string) {
	if len(values) == 0 {
		return
	}
	w.name(name)
	var few [16]string // Most maps have no more keys, and so need no allocation.
	mark := byte('{')
	keys := slices.AppendSeq(few[:0], maps.Keys(values))
	slices.Sort(keys)
	for _, key := range keys {
		w.out = append(appendText(append(w.out, mark), key), ':')
		w.out = appendText(w.out, values[key])
		mark = ','
	}
	w.out = append(w.out, '}')
}

func (w *metaWriter) list(name string, values []string) {
	if len(values) == 0 {
		return
	}
	w.name(name)
	mark := byte('[')
	for _, value := range values {
		w.out = appendText(append(w.out, mark), value)
		mark = ','
	}
	w.out = append(w.out, ']')
}
