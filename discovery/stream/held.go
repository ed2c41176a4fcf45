package stream

// What parts of a stream take in memory beside what all streams share, in bytes.
const (
	nameCost = 48 // of a name in a map, beside the name
	// madeCost is that of a resource made for a name that does not exist, beside the name:
	// the resource and its encoded form.
	madeCost = 640
	// maxMade bounds the resources of that kind in one response. The other names wait
	// for the next one.
	maxMade = 1 << 12
)

// Held returns about how many bytes the server holds for this stream alone: for names
// that the proxy asks for and that do not exist, and for the responses that they need.
func (st *Stream) Held() int64 {
	st.mu.Lock()
	defer st.mu.Unlock()
	held := 0
	for _, t := range st.subscriptions() {
		held += t.held()
	}
	return int64(held)
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
