package mesh

import (
	"cmp"
	"maps"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// workload is a WorkloadEntry that selectors may pick. Its labels are those of its
// metadata, overridden by those of its spec, as in Istio.
type workload struct {
	endpoint                 // without a spec if it cannot be used
	pickers  map[*entry]bool // entries that have picked it
	fitting  int             // number of entries whose selector matches it, whether or not they have picked it
	problems diag.Collector  // problems of its own
	own      schema.Own
}

func (r *registry) readWorkload(o *schema.Object) *workload {
	w := &workload{endpoint: endpoint{origin: o.Key(), at: "spec"}, pickers: map[*entry]bool{}, own: schema.OwnOf(o)}
	report := func(p diag.Problem) { w.problems.Add(p) }
	spec, err := o.Spec()
	entry, ok := spec.(*networking.WorkloadEntry)
	if err != nil || !ok {
		report(unreadable(o, err))
		return w
	}
	w.spec, w.labels, w.weight = entry, workloadLabels(o, entry), int(entry.GetWeight())
	r.reportUnheeded(entry, w.labels, o.Key().Ref(), "spec", report)
	return w
}

func workloadLabels(o *schema.Object, entry *networking.WorkloadEntry) Labels {
	labels := Labels{}
	maps.Copy(labels, o.Meta.Labels)
	maps.Copy(labels, entry.GetLabels())
	return labels
}

// workloads are all WorkloadEntries. Usable ones are indexed by each single label
// and by namespace, so that a selector looks only at likely candidates. Each list
// is in key order.
type workloads struct {
	byKey   map[schema.Key]*workload
	byLabel map[label][]*workload
}

// label is a label in a namespace or, if there is set, the namespace itself.
type label struct {
	namespace, name, value string
	there                  bool
}

func newWorkloads() workloads {
	return workloads{byKey: map[schema.Key]*workload{}, byLabel: map[label][]*workload{}}
}

// found returns the labels under which it is indexed.
func (w *workload) found() []label {
	if w.spec == nil {
		return nil
	}
	out := []label{{namespace: w.origin.Namespace, there: true}}
	for name, value := range w.labels {
		out = append(out, label{namespace: w.origin.Namespace, name: name, value: value})
	}
	return out
}

// byName is key order within a namespace.
func byName(a, b *workload) int { return cmp.Compare(a.origin.Name, b.origin.Name) }

func (ws *workloads) add(w *workload) {
	ws.byKey[w.origin] = w
	for _, at := range w.found() {
		ws.byLabel[at] = insert(ws.byLabel[at], w, byName)
	}
}

func (ws *workloads) remove(w *workload) {
	delete(ws.byKey, w.origin)
	for _, at := range w.found() {
		if ws.byLabel[at] = remove(ws.byLabel[at], w, byName); len(ws.byLabel[at]) == 0 {
			delete(ws.byLabel, at)
		}
	}
}

// with returns the workloads of a namespace that have all the labels, in key order.
// A selector without labels matches all.
func (ws *workloads) with(namespace string, selector Labels) []*workload {
	candidates := ws.byLabel[label{namespace: namespace, there: true}]
	for name, value := range selector {
		if some := ws.byLabel[label{namespace: namespace, name: name, value: value}]; len(some) < len(candidates) {
			candidates = some
		}
	}
	var out []*workload
	for _, w := range candidates {
		if selector.SubsetOf(w.labels) {
			out = append(out, w)
		}
	}
	return out
}

// replaceWorkload replaces a workload and touches the entries that pick it, before
// or after.
func (r *registry) replaceWorkload(c schema.Change, t *touched) {
	key := c.Key()
	t.objects[key.Ref()] = true
	if old := r.workloads.byKey[key]; old != nil {
		r.workloads.remove(old)
		for _, e := range r.selectors.fitting(old) {
			e.fits--
			t.touch(e)
		}
	}
	if c.After == nil {
		return
	}
	w := r.readWorkload(c.After)
	r.workloads.add(w)
	for _, e := range r.selectors.fitting(w) {
		e.fits++
		w.fitting++
		t.touch(e)
	}
}

// fit counts an entry at the workloads that its selector matches; n is 1 or -1.
func (r *registry) fit(e *entry, n int, t *touched) {
	for _, w := range r.fitting(e) {
		e.fits += n
		if w.fitting += n; w.fitting <= 1 {
			t.objects[w.origin.Ref()] = true
		}
	}
}

// fitting returns the workloads that the selector of an entry matches.
func (r *registry) fitting(e *entry) []*workload {
	if e.spec.GetWorkloadSelector() == nil {
		return nil
	}
	return r.workloads.with(e.Meta.Namespace, e.spec.GetWorkloadSelector().GetLabels())
}

// wanted returns the workloads that an entry picks.
func (r *registry) wanted(e *entry) []*workload {
	if r.withheld.has(e) {
		return nil
	}
	return r.fitting(e)
}

// pick replaces the workloads that an entry has picked.
func (r *registry) pick(e *entry, picked []*workload, t *touched) {
	for _, w := range e.picked {
		delete(w.pickers, e)
		t.objects[w.origin.Ref()] = true
	}
	e.picked = picked
	for _, w := range picked {
		w.pickers[e] = true
		t.objects[w.origin.Ref()] = true
	}
}

// selectors are the entries that pick workloads. Each entry is under one label that
// all its workloads have, or under that of the namespace if it picks all.
type selectors map[label]map[*entry]bool

// add chooses the label with the fewest entries so far, as each workload with the
// label is compared with all of them.
func (s selectors) add(e *entry) {
	if e.spec.GetWorkloadSelector() == nil {
		return
	}
	e.under = label{namespace: e.Meta.Namespace, there: true}
	for name, value := range e.spec.GetWorkloadSelector().GetLabels() {
		at := label{namespace: e.Meta.Namespace, name: name, value: value}
		if e.under.there || len(s[at]) < len(s[e.under]) {
			e.under = at
		}
	}
	if s[e.under] == nil {
		s[e.under] = map[*entry]bool{}
	}
	s[e.under][e] = true
}

func (s selectors) remove(e *entry) {
	if delete(s[e.under], e); len(s[e.under]) == 0 {
		delete(s, e.under)
	}
}

// fitting returns the entries whose selector matches a workload.
func (s selectors) fitting(w *workload) []*entry {
	var out []*entry
	for _, at := range w.found() {
		for e := range s[at] {
			if Labels(e.spec.GetWorkloadSelector().GetLabels()).SubsetOf(w.labels) {
				out = append(out, e)
			}
		}
	}
	return out
}
