package mesh

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// Expiries knows when the certificates of a mesh expire: those of Secrets, and those in
// files of the server. It reads each certificate once. The zero value knows none. Its
// methods are safe for concurrent use.
type Expiries struct {
	mu      sync.Mutex
	secrets []*schema.Object
	bySpec  map[*schema.Object][]credential.End
	files   *FileSecrets
	byFile  map[string][]credential.End
	named   map[string]SecretFile // of the settings
}

// Advance takes in a snapshot and returns its problems at a time: certificates that have
// expired, or soon will. They change without another snapshot (At).
func (e *Expiries) Advance(s *Snapshot, now time.Time) diag.List {
	e.mu.Lock()
	defer e.mu.Unlock()
	if all := s.Objects("Secret"); !slices.Equal(all, e.secrets) {
		e.secrets, e.bySpec = all, endsOfSecrets(all, e.bySpec)
	}
	if e.byFile == nil || s.Files != e.files {
		e.files, e.byFile = s.Files, map[string][]credential.End{}
		for name, f := range s.Files.All() {
			e.byFile[name] = f.Pair.Ends()
		}
	}
	e.named = s.Settings.SecretFiles
	return e.problems(now)
}

func endsOfSecrets(all []*schema.Object, known map[*schema.Object][]credential.End) map[*schema.Object][]credential.End {
	next := make(map[*schema.Object][]credential.End, len(all))
	for _, o := range all {
		ends, ok := known[o]
		if !ok {
			ends = endsOfSecret(o)
		}
		next[o] = ends
	}
	return next
}

func endsOfSecret(o *schema.Object) []credential.End {
	spec, err := o.Spec()
	if err != nil {
		return nil // That it does not decode is a problem of its own.
	}
	secret, ok := spec.(*schema.Secret)
	if !ok {
		return nil
	}
	return secret.Pair().Ends()
}

// Of returns what Advance would, without taking in the snapshot.
func (e *Expiries) Of(s *Snapshot, now time.Time) diag.List {
	e.mu.Lock()
	known := &Expiries{secrets: e.secrets, bySpec: e.bySpec, files: e.files, byFile: e.byFile}
	e.mu.Unlock()
	return known.Advance(s, now)
}

// At returns the problems at a later time.
func (e *Expiries) At(now time.Time) diag.List {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.problems(now)
}

func (e *Expiries) problems(now time.Time) (list diag.List) {
	for _, o := range e.secrets {
		list = append(list, schema.SecretExpiryProblems(o.Key().Ref(), e.bySpec[o], now)...)
	}
	for _, name := range slices.Sorted(maps.Keys(e.byFile)) {
		field := name // a flag of the server
		if _, named := e.named[name]; named {
			field = fmt.Sprintf("secretFiles[%s]", name)
		}
		list = append(list, schema.ExpiryProblems(diag.Ref{}, e.byFile[name], now,
			func(string) string { return field },
			func(ofPair string) string { return wordOf[ofPair] + " " })...)
	}
	return list
}

// wordOf says which file of a SecretFile has a field of a pair.
var wordOf = map[string]string{credential.CertificateField: "certificateFile", credential.CAField: "caFile"}

// Expiry is when the first certificate of a Secret expires.
type Expiry struct {
	Secret diag.Ref
	At     time.Time
}

// Timestamp returns the time in seconds since 1970 UTC, as metrics state times.
func (e Expiry) Timestamp() float64 { return float64(e.At.Unix()) }

// First returns the Secrets whose certificates expire first, at most n, in order.
func (e *Expiries) First(n int) []Expiry {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []Expiry
	for o, ends := range e.bySpec {
		if len(ends) > 0 {
			first := slices.MinFunc(ends, func(a, b credential.End) int { return a.At.Compare(b.At) })
			all = append(all, Expiry{o.Key().Ref(), first.At})
		}
	}
	slices.SortFunc(all, func(a, b Expiry) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Secret.String(), b.Secret.String()))
	})
	return all[:min(n, len(all))]
}
