package server

import (
	"net/http"
	"net/url"

	"github.com/pilot-api/pilot-api/server/wire"
	"github.com/pilot-api/pilot-api/store"
)

// get answers GET on one object.
func (k *resource) get(w http.ResponseWriter, r *http.Request) error {
	f, err := wire.Negotiate(r, wire.JSON, wire.YAML, wire.Table, wire.Metadata)
	if err != nil {
		return err
	}
	q := queryOf(r)
	if err := wire.CheckParams(q, getParams); err != nil {
		return err
	}
	atLeast, err := atLeastParam(q)
	if err != nil {
		return err
	}
	fresh, err := wire.BoolParam(q, "freshStatus")
	if err != nil {
		return err
	}
	if fresh && k.Board != nil {
		k.Board.Refresh(r.Context())
	}
	ctx, cancel := waiting(r.Context(), atLeast, k.opts.RevisionTimeout)
	defer cancel()
	obj, err := k.opts.Reads.Get(ctx, k.target(r), store.ReadOptions{AtLeast: atLeast})
	if err != nil {
		return err
	}
	return k.writeObject(w, r, http.StatusOK, f, obj)
}

// list answers GET on a collection.
func (k *resource) list(w http.ResponseWriter, r *http.Request) error {
	f, err := wire.Negotiate(r, wire.JSON, wire.YAML, wire.Table, wire.MetadataList)
	if err != nil {
		return err
	}
	q := queryOf(r)
	if err := wire.CheckParams(q, listParams); err != nil {
		return err
	}
	if err := noInitialEvents(q); err != nil {
		return err
	}
	opts, err := k.pageOptions(q)
	if err != nil {
		return err
	}
	selected, err := k.selection(q)
	if err != nil {
		return err
	}
	warnOfUnreadable(w, k.opts.Reads, selected.narrow(k.scope(r)))
	if f == wire.JSON && opts.AtLeast == 0 && opts.Exact == 0 {
		if answered, err := k.answerAgain(w, r); answered || err != nil {
			return err
		}
	}
	ctx, cancel := waiting(r.Context(), opts.AtLeast, k.opts.RevisionTimeout)
	defer cancel()
	list, err := k.page(ctx, selected.narrow(k.scope(r)), selected, opts)
	if err != nil {
		return continueAnyway(err, opts)
	}
	return k.writeList(w, r, f, list)
}

// noInitialEvents refuses parameters that only a watch may have.
func noInitialEvents(q url.Values) error {
	if q.Get("sendInitialEvents") != "" {
		return badListOption("sendInitialEvents", "goes with watch=true only")
	}
	return nil
}
