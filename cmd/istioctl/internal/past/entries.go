package past

import (
	"cmp"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/store"
)

// Entry is a version as a line of history.
type Entry struct {
	Revision    int64      `json:"revision"`
	Generation  int64      `json:"generation,omitempty"`
	Time        *time.Time `json:"time,omitempty"`
	Verb        store.Verb `json:"verb,omitempty"` // this and the next three are "" if the write is unknown
	User        string     `json:"user,omitempty"`
	UserAgent   string     `json:"userAgent,omitempty"`
	Transaction string     `json:"transaction,omitempty"`
	// Changed lists the fields that differ from the version before, if there was one.
	Changed []string `json:"changed,omitempty"`
	// Object is nil after a delete, and if the server has lost the state (Lost).
	Object json.RawMessage `json:"object,omitempty"`
	Lost   bool            `json:"lost,omitempty"`

	comparable bool // the version before is known
}

// Entries returns the entries of versions, which are the newest first.
func Entries(versions []store.Version) ([]Entry, error) {
	entries := make([]Entry, len(versions))
	for i, v := range versions {
		e := Entry{Revision: v.Revision, Lost: v.Lost}
		if c := v.Change; c != nil {
			e.Verb, e.User, e.UserAgent, e.Transaction = c.Verb, c.Author.User, c.Author.UserAgent, c.Transaction
			if !c.Time.IsZero() {
				e.Time = &c.Time
			}
		}
		if v.Object != nil {
			e.Generation, e.Object = v.Object.Meta.Generation, v.Object.JSON()
			if i+1 < len(versions) && versions[i+1].Object != nil {
				var err error
				if e.Changed, err = changedFields(versions[i+1].Object, v.Object); err != nil {
					return nil, err
				}
				e.comparable = true
			}
		}
		entries[i] = e
	}
	return entries, nil
}

// unknown is the text for what the server has forgotten.
const unknown = "<unknown>"

// WhenText returns the age of the write.
func (e Entry) WhenText() string {
	if e.Time == nil {
		return unknown
	}
	return duration.HumanDuration(time.Since(*e.Time)) + " ago"
}

// VerbText returns the kind of the write.
func (e Entry) VerbText() string { return cmp.Or(string(e.Verb), unknown) }

// Who returns the user that the write states.
func (e Entry) Who() string { return cmp.Or(cli.Printable(e.User), unknown) }

// UserAgentText returns the program that the write states.
func (e Entry) UserAgentText() string { return cmp.Or(cli.Printable(e.UserAgent), unknown) }

// transactionDigits is the number of digits that identify a transaction. They are at
// the end of its UUID, which is random; the beginning is the time.
const transactionDigits = 8

// TransactionText returns the ID of the transaction, or its end.
func (e Entry) TransactionText(wide bool) string {
	id := cmp.Or(e.Transaction, unknown)
	if !wide && e.Transaction != "" {
		return id[max(0, len(id)-transactionDigits):]
	}
	return id
}

// ChangedText returns the fields that differ. It returns none for a create or delete,
// because that concerns all fields.
func (e Entry) ChangedText(all bool) string {
	switch {
	case len(e.Changed) > 0:
		return fieldsText(e.Changed, all)
	case e.comparable || e.Verb == store.OpCreate || e.Verb == store.OpDelete:
		return printer.None
	}
	return unknown
}
