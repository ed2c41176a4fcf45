package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

var historyFormats = []string{formatTable, formatWide, formatYAML, formatJSON}

func newHistory(s *session) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "history (KIND NAME | KIND/NAME)",
		Short: "Show the versions of an object, and their authors",
		Long: `Show the versions of an object that the server still has, the newest first: the
revision and time at which each began, the user and program that made it, and the
fields that changed. A deleted object has a history too. TRANSACTION is the end of an
ID that all changes of one transaction share. -o wide shows the whole ID and all
changed fields; -o yaml and -o json include each version.

WHO is the user that the change states. It is not verified, unless a proxy in front of
the server does that. istioctl states the user of the operating system, or
ISTIOCTL_USER. The server keeps the newest 10 changes of an object
(pilot-api --history).`,
		Example: `  # Who changed this, and what?
  istioctl history virtualservice reviews

  # With the states themselves, also of what was deleted
  istioctl history vs/reviews -o yaml

  # What did it look like, and back to it
  istioctl get virtualservice reviews --revision 1204 -o yaml
  istioctl rollback virtualservice reviews --to 1204`,
		ValidArgsFunction: s.completeName,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkOutput(output, historyFormats); err != nil {
			return err
		}
		key, err := s.oneObject("history", args)
		if err != nil {
			return err
		}
		return runHistory(cmd.Context(), s, output, key)
	}
	addOutput(cmd, &output, historyFormats)
	return cmd
}

func runHistory(ctx context.Context, s *session, output string, key schema.Key) error {
	c, err := s.connect(s.warn)
	if err != nil {
		return err
	}
	versions, err := s.versions(ctx, c, key)
	if err != nil {
		return err
	}
	entries, err := entriesOf(versions)
	if err != nil {
		return err
	}
	if !isTable(output) {
		return s.encode(output, struct {
			APIVersion string  `json:"apiVersion"`
			Kind       string  `json:"kind"`
			Items      []entry `json:"items"`
		}{"registry.istio.io/v1", "History", entries})
	}
	return s.showHistory(entries, output == formatWide)
}

// versions returns the versions of an object that the server knows. It returns an error
// if there are none.
func (s *session) versions(ctx context.Context, c *client.Client, key schema.Key) ([]store.Version, error) {
	versions, err := c.History(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("%s/%s is not in namespace %s, and was not as far as the server knows",
			strings.ToLower(key.Kind), key.Name, key.Namespace)
	}
	return versions, s.fail(ctx, err)
}

// entry is a version as a line of history.
type entry struct {
	Revision    int64      `json:"revision"`
	Generation  int64      `json:"generation,omitempty"`
	Time        *time.Time `json:"time,omitempty"`
	Verb        store.Verb `json:"verb,omitempty"` // this and the next three are "" if the write is unknown
	User        string     `json:"user,omitempty"`
	Program     string     `json:"program,omitempty"`
	Transaction string     `json:"transaction,omitempty"`
	// Changed lists the fields that differ from the version before, if there was one.
	Changed []string `json:"changed,omitempty"`
	// Object is nil after a delete, and where the server has Lost the state.
	Object json.RawMessage `json:"object,omitempty"`
	Lost   bool            `json:"lost,omitempty"`

	comparable bool // the version before is known
}

func entriesOf(versions []store.Version) ([]entry, error) {
	entries := make([]entry, len(versions))
	for i, v := range versions {
		e := entry{Revision: v.Revision, Lost: v.Lost}
		if c := v.Change; c != nil {
			e.Verb, e.User, e.Program, e.Transaction = c.Verb, c.Author.User, c.Author.Program, c.Transaction
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

func (s *session) showHistory(entries []entry, wide bool) error {
	tab := printers.GetNewTabWriter(s.Stdout)
	fmt.Fprintln(tab, "REVISION\tGENERATION\tWHEN\tVERB\tWHO\tPROGRAM\tTRANSACTION\tCHANGED")
	for _, e := range entries {
		generation := none
		if e.Object != nil {
			generation = strconv.FormatInt(e.Generation, 10)
		}
		fmt.Fprintf(tab, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.Revision, generation, e.when(), e.verb(), e.who(), e.program(), e.transaction(wide), e.changed(wide))
	}
	return tab.Flush()
}

func (e entry) when() string {
	if e.Time == nil {
		return unknown
	}
	return duration.HumanDuration(time.Since(*e.Time)) + " ago"
}

func (e entry) verb() string    { return cmp.Or(string(e.Verb), unknown) }
func (e entry) who() string     { return cmp.Or(printable(e.User), unknown) }
func (e entry) program() string { return cmp.Or(printable(e.Program), unknown) }

// transactionDigits is the number of digits that identify a transaction. They are at
// the end of its UUID, which is random; the beginning is the time.
const transactionDigits = 8

func (e entry) transaction(wide bool) string {
	id := cmp.Or(e.Transaction, unknown)
	if !wide && e.Transaction != "" {
		return id[max(0, len(id)-transactionDigits):]
	}
	return id
}

// changed returns the fields that differ, none for a create or delete, which concerns
// all fields.
func (e entry) changed(all bool) string {
	switch {
	case len(e.Changed) > 0:
		return fieldsText(e.Changed, all)
	case e.comparable || e.Verb == store.OpCreate || e.Verb == store.OpDelete:
		return none
	}
	return unknown
}
