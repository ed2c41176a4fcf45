package objects

import (
	"net/http"
	"net/url"

	"github.com/pilot-api/pilot-api/server/render"
	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// get answers GET on one object.
func (k *resource) get(w http.ResponseWriter, r *http.Request) error {
	f, err := wire.Negotiate(r, wire.JSON, wire.YAML, wire.Table, wire.Metadata)
	if err != nil {
		return err
	}
	q := wire.Query(r)
	if err := wire.CheckParams(q, getParams); err != nil {
		return err
	}
	atLeast, err := wire.AtLeastParam(q)
	if err != nil {
		return err
	}
	fresh, err := wire.BoolParam(q, "freshStatus")
	if err != nil {
		return err
	}
	if fresh && k.Board != nil {
		// The last writes may have changed the status of this object: another object may hide
		// it now.
		if err := k.opts.AwaitPublished(r.Context(), atLeast); err != nil {
			return err
		}
		k.Board.Refresh(r.Context())
	}
	ctx, cancel := wire.Waiting(r.Context(), atLeast, k.opts.RevisionTimeout)
	defer cancel()
	obj, err := k.opts.Reads.Get(ctx, k.Target(r), store.ReadOptions{AtLeast: atLeast})
	if err != nil {
		return err
	}
	if fresh && k.AreStored() {
		// No status revision has this status, so the answer has the version of the object's
		// own write.
		obj, k = obj.WithoutStatus(), &resource{k.API, render.New(k.Live(), k.Kind, k.Version)}
	}
	return k.writeObject(w, r, http.StatusOK, f, obj)
}

// list answers GET on a collection.
func (k *resource) list(w http.ResponseWriter, r *http.Request) error {
	f, err := wire.Negotiate(r, wire.JSON, wire.YAML, wire.Table, wire.MetadataList)
	if err != nil {
		return err
	}
	q := wire.Query(r)
	if err := wire.CheckParams(q, render.ListParams); err != nil {
		return err
	}
	if err := noInitialEvents(q); err != nil {
		return err
	}
	opts, err := k.pageOptions(q)
	if err != nil {
		return err
	}
	selected, err := k.ParseSelection(q)
	if err != nil {
		return err
	}
	wire.WarnOfUnreadable(w, k.opts.Reads, selected.Narrow(k.Scope(r)))
	if f == wire.JSON && opts.AtLeast == 0 && opts.Exact == 0 {
		if answered, err := k.answerAgain(w, r); answered || err != nil {
			return err
		}
	}
	ctx, cancel := wire.Waiting(r.Context(), opts.AtLeast, k.opts.RevisionTimeout)
	defer cancel()
	list, err := k.page(ctx, selected.Narrow(k.Scope(r)), selected, opts)
	if err != nil {
		return continueAnyway(err, opts)
	}
	return k.writeList(w, r, f, list)
}

// noInitialEvents refuses parameters that only a watch may have.
func noInitialEvents(q url.Values) error {
	if q.Get("sendInitialEvents") != "" {
		return wire.BadListOption("sendInitialEvents", "goes with watch=true only")
	}
	return nil
}
