package etcd

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
)

// Limits of a page, and of one transaction, within the defaults of etcd: 128 requests and
// 1.5 MiB. A transaction has the statuses that moved twice, in pages and by themselves. The
// statuses of a page may grow after they got their place, so store.MaxStoredStatus times
// statusesInPage is a third of what a transaction may have.
const (
	statusesInPage = 128
	pageBytes      = 128 << 10 // of JSON, for statuses that are added
	maxStatusPages = 100
	maxStatusBytes = 512 << 10 // of encoded pages
)

// StatusWriter writes status revisions. At any time only one may write for a store. It is
// for use by one goroutine.
type StatusWriter struct {
	store *Store
	while []clientv3.Cmp

	pages  map[int]*statusesOnPage
	pageOf map[schema.Key]int
	room   map[int]struct{} // pages that take more statuses
}

type statusesOnPage struct {
	statuses map[schema.Key]store.StoredStatus
	bytes    int // of their JSON
}

func (p *statusesOnPage) isFull() bool {
	return len(p.statuses) >= statusesInPage || p.bytes >= pageBytes
}

// StatusWriter reads what the store keeps and returns a writer. Each of its writes happens
// only while the conditions hold. The error is ErrStatusesLost if the store keeps no
// statuses.
func (s *Store) StatusWriter(ctx context.Context, while ...clientv3.Cmp) (*StatusWriter, error) {
	kept, pages, err := s.statusPages(ctx)
	switch {
	case err != nil:
		return nil, err
	case !kept:
		return nil, ErrStatusesLost
	}
	w := &StatusWriter{
		store: s, while: append(while, clientv3.Compare(clientv3.CreateRevision(s.keys.statuses), ">", 0)),
		pages: map[int]*statusesOnPage{}, pageOf: map[schema.Key]int{}, room: map[int]struct{}{},
	}
	for key, statuses := range pages {
		if page, err := strconv.Atoi(strings.TrimPrefix(key, s.keys.statusPages)); err == nil {
			w.open(page)
			for _, one := range statuses {
				w.put(page, one)
			}
		}
	}
	return w, nil
}

// Known returns the status of each object, as it is stored.
func (w *StatusWriter) Known() map[schema.Key]store.StoredStatus {
	all := make(map[schema.Key]store.StoredStatus, len(w.pageOf))
	for _, page := range w.pages {
		maps.Copy(all, page.statuses)
	}
	return all
}

// Write writes statuses of at most store.MaxStoredStatus bytes of JSON, whose revisions do not
// count, and removes those of objects that are gone. It makes as many status revisions as it needs. After an error it is not known
// which statuses were written, and the writer must not be used again.
func (w *StatusWriter) Write(ctx context.Context, moved []store.StoredStatus, gone []schema.Key) error {
	dirty := map[int][]store.StoredStatus{} // those that move, by page
	for _, key := range gone {
		if page, known := w.pageOf[key]; known {
			w.remove(key)
			dirty[page] = nil
		}
	}
	for _, one := range moved {
		one.Revision = 0
		page := w.place(one)
		dirty[page] = append(dirty[page], one)
	}
	pages := slices.Sorted(maps.Keys(dirty))
	for len(pages) > 0 {
		n, err := w.writeSome(ctx, pages, dirty)
		if err != nil {
			return err
		}
		pages = pages[n:]
	}
	return nil
}

// writeSome makes one status revision with the first of the pages, as many as fit. It
// returns how many those are.
func (w *StatusWriter) writeSome(ctx context.Context, pages []int, dirty map[int][]store.StoredStatus) (n int, err error) {
	var puts []clientv3.Op
	var moved []store.StoredStatus
	size := 0
	for ; n < len(pages) && n < maxStatusPages && size < maxStatusBytes; n++ {
		op := w.encode(pages[n])
		if n > 0 && size+len(op.ValueBytes()) > maxStatusBytes {
			break
		}
		puts, moved = append(puts, op), append(moved, dirty[pages[n]]...)
		size += len(op.ValueBytes()) + embedded.EntryOverhead
	}
	revision, err := w.commit(ctx, puts, encodeStatuses(moved), size)
	if err != nil {
		return 0, err
	}
	for _, one := range moved {
		page := w.pages[w.pageOf[one.Key]]
		one.Revision = revision
		page.statuses[one.Key] = one
	}
	return n, nil
}

// encode returns the write of a page.
func (w *StatusWriter) encode(page int) clientv3.Op {
	key, now := w.store.keys.statusPages+strconv.Itoa(page), w.pages[page]
	if len(now.statuses) == 0 {
		return clientv3.OpDelete(key)
	}
	all := slices.SortedFunc(maps.Values(now.statuses), func(a, b store.StoredStatus) int {
		return cmp.Or(strings.Compare(a.Key.Kind, b.Key.Kind), strings.Compare(a.Key.Namespace, b.Key.Namespace), strings.Compare(a.Key.Name, b.Key.Name))
	})
	return clientv3.OpPut(key, string(encodeStatuses(all)))
}

func (w *StatusWriter) commit(ctx context.Context, puts []clientv3.Op, moved []byte, size int) (revision int64, err error) {
	if door, ok := w.store.client.KV.(room); ok {
		if err := door.AdmitNow(int64(size + len(moved))); err != nil {
			return 0, err
		}
	}
	puts = append(puts, clientv3.OpPut(w.store.keys.statuses, string(moved)), w.store.keys.tick())
	resp, err := w.store.client.Txn(ctx).If(w.while...).Then(puts...).Commit()
	switch {
	case err != nil:
		return 0, translate("write statuses", err, schema.Key{})
	case !resp.Succeeded:
		return 0, ErrStatusesLost
	}
	return resp.Header.Revision, nil
}

// place puts a status on its page. An object that has none gets one with room. It stays there:
// if it moved, a list between the writes of the two pages would have it twice or not at all.
func (w *StatusWriter) place(one store.StoredStatus) (page int) {
	if page, known := w.pageOf[one.Key]; known {
		w.remove(one.Key)
		w.put(page, one)
		return page
	}
	for page := range w.room {
		w.put(page, one)
		return page
	}
	for page = len(w.pages); w.pages[page] != nil; page++ {
		continue
	}
	w.open(page)
	w.put(page, one)
	return page
}

func (w *StatusWriter) open(page int) {
	w.pages[page] = &statusesOnPage{statuses: map[schema.Key]store.StoredStatus{}}
	w.room[page] = struct{}{}
}

func (w *StatusWriter) put(page int, one store.StoredStatus) {
	now := w.pages[page]
	now.statuses[one.Key] = one
	now.bytes += len(one.JSON)
	w.pageOf[one.Key] = page
	if now.isFull() {
		delete(w.room, page)
	}
}

func (w *StatusWriter) remove(key schema.Key) {
	page := w.pageOf[key]
	now := w.pages[page]
	now.bytes -= len(now.statuses[key].JSON)
	delete(now.statuses, key)
	delete(w.pageOf, key)
	if !now.isFull() {
		w.room[page] = struct{}{}
	}
}
