package stream

import "maps"

// newlySubscribed has the names that a proxy subscribed to after the first response of
// their type, until the proxy acks what it is sent of them. Until then it has acked nothing
// of these names, whatever it acks of others.
type newlySubscribed map[string]struct{}

func (f *newlySubscribed) add(name string) {
	if *f == nil {
		*f = newlySubscribed{}
	}
	(*f)[name] = struct{}{}
}

func (f *newlySubscribed) remove(name string) {
	if delete(*f, name); len(*f) == 0 {
		*f = nil
	}
}

func (f newlySubscribed) clone() newlySubscribed { return maps.Clone(f) }

func (f newlySubscribed) has(name string) bool {
	_, is := f[name]
	return is
}

// begin makes a name pending that the proxy subscribes to, even if it was subscribed
// before.
func (t *subscription) begin(name string, wanted bool) {
	t.pending.add(name)
	if !wanted && t.sent.Set != nil {
		t.newly.add(name)
	}
}

// beginAll makes all names pending, even those that were subscribed before.
func (t *subscription) beginAll(wanted func(name string) bool) {
	t.pending.answer, t.pending.all = true, true
	if t.sent.Set == nil {
		return
	}
	for _, r := range t.sent.Set.Sorted {
		if !wanted(r.Name) {
			t.newly.add(r.Name)
		}
	}
}

// forget drops names that the proxy has unsubscribed from. If it subscribes to one again,
// it has nothing of it.
func (t *subscription) forget() {
	for name := range t.newly {
		if !t.Wants(name) {
			t.newly.remove(name)
		}
	}
	t.nacks.Forget(t.Wants)
}
