package stream

// Estimated sizes, in bytes, of the parts of a stream that other streams do not share.
const (
	nameCost = 48 // of a name in a map, without the name
	// madeCost is the memory of a resource that is made for a name that does not exist,
	// without the name: the resource and its encoded form.
	madeCost = 640
	// maxMade bounds such resources in one response. The other names wait for the next one.
	maxMade = 1 << 12
)

// Held estimates the memory, in bytes, that only this stream uses: for requested names that
// do not exist, and for the responses to them.
func (st *Stream) Held() int64 {
	st.mu.Lock()
	defer st.mu.Unlock()
	held := 0
	for _, t := range st.subscriptions() {
		held += t.held()
	}
	return int64(held + len(st.gone.closed)*madeCost + st.hosts.held())
}

func (t *subscription) held() int {
	held := len(t.named.extra)*nameCost + t.named.bytes
	held += len(t.pending.names)*nameCost + t.pending.bytes + len(t.pending.later)*nameCost
	held += len(t.newly) * nameCost
	held += len(t.initial.versions)*2*nameCost + len(t.initial.gone)*nameCost + t.initial.bytes
	for _, s := range t.inFlight {
		held += s.made * madeCost
	}
	return held
}
