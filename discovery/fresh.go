package discovery

// fresh are the names that a proxy has asked for since it was first sent something of
// their type, until it acknowledges what it is told of them. Nothing of them is taken
// yet, whatever it accepts of others meanwhile.
type fresh map[string]struct{}

func (f *fresh) add(name string) {
	if *f == nil {
		*f = fresh{}
	}
	(*f)[name] = struct{}{}
}

func (f *fresh) remove(name string) {
	if delete(*f, name); len(*f) == 0 {
		*f = nil
	}
}

func (f fresh) has(name string) bool {
	_, is := f[name]
	return is
}

// begin owes the proxy a name that it asks for, and perhaps wanted before.
func (t *subscribed) begin(name string, wanted bool) {
	t.owed.add(name)
	if !wanted && t.sent.Set != nil {
		t.fresh.add(name)
	}
}

// beginAll owes the proxy everything, whatever it is called and which of it it wanted
// before.
func (t *subscribed) beginAll(wanted func(name string) bool) {
	t.owed.answer, t.owed.all = true, true
	if t.sent.Set == nil {
		return
	}
	for _, r := range t.sent.Set.Sorted {
		if !wanted(r.Name) {
			t.fresh.add(r.Name)
		}
	}
}

// forget lets go of what was known of names that the proxy does not want any more: when
// it asks for one again, it has nothing of it.
func (t *subscribed) forget() {
	for name := range t.fresh {
		if !t.Wants(name) {
			t.fresh.remove(name)
		}
	}
	t.nacks.Forget(t.Wants)
}
