package etcd

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// statusPage is the encoding of some statuses, as JSON in gzip: statuses have much text
// in common, and etcd limits the size of a transaction.
type statusPage struct {
	Version int               `json:"v"`
	Texts   []json.RawMessage `json:"texts"`
	Entries []statusEntry     `json:"entries"`
}

// statusPageVersion is the version of the format. Others cannot be read.
const statusPageVersion = 1

type statusEntry struct {
	Kind      string `json:"kind"`
	Namespace string `json:"ns"`
	Name      string `json:"name"`
	Of        int64  `json:"of"`
	// At is the status revision; 0 is the one that wrote this value, which is known only
	// after the write.
	At   int64 `json:"at,omitempty"`
	Text int   `json:"text"` // index of the status in Texts
}

// maxStatusPage bounds a value when it is read, in bytes of JSON.
const maxStatusPage = 256 << 20

// noStatuses is the encoding of no statuses.
var noStatuses = encodeStatuses(nil)

// encodeStatuses encodes statuses. Those without a revision get that of the write.
func encodeStatuses(all []store.StoredStatus) []byte {
	page := statusPage{Version: statusPageVersion, Texts: []json.RawMessage{}, Entries: make([]statusEntry, len(all))}
	known := map[string]int{}
	for i, one := range all {
		text, found := known[string(one.JSON)]
		if !found {
			text = len(page.Texts)
			known[string(one.JSON)] = text
			page.Texts = append(page.Texts, one.JSON)
		}
		page.Entries[i] = statusEntry{one.Key.Kind, one.Key.Namespace, one.Key.Name, one.Of, one.Revision, text}
	}
	var out bytes.Buffer
	to, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err == nil {
		err = json.NewEncoder(to).Encode(page)
	}
	if err == nil {
		err = to.Close()
	}
	if err != nil {
		panic(err) // Statuses are valid JSON, and the buffer takes everything.
	}
	return out.Bytes()
}

// decodeStatuses decodes a value that was written at a revision.
func decodeStatuses(value []byte, revision int64) ([]store.StoredStatus, error) {
	from, err := gzip.NewReader(bytes.NewReader(value))
	if err != nil {
		return nil, fmt.Errorf("decode statuses: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(from, maxStatusPage))
	if err != nil {
		return nil, fmt.Errorf("decode statuses: %w", err)
	}
	var page statusPage
	if err := json.Unmarshal(text, &page); err != nil {
		return nil, fmt.Errorf("decode statuses: %w", err)
	}
	if page.Version != statusPageVersion {
		return nil, fmt.Errorf("decode statuses: they are in version %d of the format, this server knows %d", page.Version, statusPageVersion)
	}
	return page.statuses(revision)
}

func (p *statusPage) statuses(revision int64) ([]store.StoredStatus, error) {
	texts := make([]*schema.StatusText, len(p.Texts))
	for i, text := range p.Texts {
		texts[i] = &schema.StatusText{JSON: text}
		if err := json.Unmarshal(text, &texts[i].Status); err != nil {
			return nil, fmt.Errorf("decode statuses: %w", err)
		}
	}
	all := make([]store.StoredStatus, len(p.Entries))
	for i, e := range p.Entries {
		if e.Text < 0 || e.Text >= len(texts) {
			return nil, fmt.Errorf("decode statuses: there is no status %d", e.Text)
		}
		if e.At == 0 {
			e.At = revision
		}
		all[i] = store.StoredStatus{Key: schema.Key{Kind: e.Kind, Namespace: e.Namespace, Name: e.Name}, Of: e.Of, Revision: e.At, StatusText: texts[e.Text]}
	}
	return all, nil
}
