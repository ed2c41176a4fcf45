package stream

// fresh are the names that a proxy has asked for since it was first sent something of
// their type, until it acknowledges what it is told of them. Nothing of them is taken
// yet, whatever it accepts of others meanwhile.
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

func (f newlySubscribed) has(name string) bool {
	_, is := f[name]
	return is
}

// begin owes the proxy a name that it asks for, and perhaps wanted before.
func (t *subscription) begin(name string, wanted bool) {
	t.pending.add(name)
	if !wanted && t.sent.Set != nil {
		t.newly.add(name)
	}
}

// beginAll owes the proxy everything, whatever it is called and which of it it wanted
// before.
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

// forget lets go of what was known of names that the proxy does not want any more: when
// it asks for one again, it has nothing of it.
func (t *subscription) forget() {
	for name := range t.newly {
		if !t.Wants(name) {
			t.newly.remove(name)
		}
	}
	t.nacks.Forget(t.Wants)
}
