package objects

import (
	"net/http"

	"github.com/pilot-api/pilot-api/server/intake"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// admitted admits a write of an object of the kind.
func (k *resource) admitted(h wire.Handler) wire.Handler {
	return k.bodies.Admitted(intake.Work{Stored: k.storedLength}, h)
}

// storedLength returns the length of the stored object that a PATCH or a PUT changes,
// which is decoded as well.
func (k *resource) storedLength(r *http.Request) int {
	if r.Method != http.MethodPatch && r.Method != http.MethodPut {
		return 0
	}
	current, err := k.opts.Reads.Get(r.Context(), k.Target(r), store.ReadOptions{AtLeast: store.Any})
	if err != nil {
		return 0
	}
	return len(current.JSON())
}
