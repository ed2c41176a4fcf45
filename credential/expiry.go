package credential

import (
	"fmt"
	"slices"
	"time"
)

// How long before a certificate expires it is reported, and reported again.
const (
	Notice     = 30 * 24 * time.Hour
	LastNotice = 7 * 24 * time.Hour
)

// Expiry returns the earliest expiry of the pair's certificates. It skips
// certificates that cannot be read, and is zero if there are none.
func (p Pair) Expiry() (end time.Time) {
	for _, e := range p.Ends() {
		if end.IsZero() || e.At.Before(end) {
			end = e.At
		}
	}
	return end
}

// End is when one certificate of a Pair expires.
type End struct {
	Field string // CertificateField or CAField
	Index int    // of the certificate in the field, from 0
	At    time.Time
}

// Ends returns when each of the pair's certificates expires. It skips certificates that
// cannot be read.
func (p Pair) Ends() (all []End) {
	for _, of := range []struct{ field, text string }{{CertificateField, p.Certificate}, {CAField, p.CACertificates}} {
		list, _ := Certificates(of.text)
		for i, c := range list {
			all = append(all, End{of.field, i, c.NotAfter})
		}
	}
	return all
}

// Phase says how near the end of a certificate is.
type Phase int

// The phases of a certificate, in order.
const (
	Valid        Phase = iota
	Expiring           // in less than Notice
	ExpiringSoon       // in less than LastNotice
	Expired
)

// Phase returns the phase at a time.
func (e End) Phase(now time.Time) Phase {
	switch left := e.At.Sub(now); {
	case left < 0:
		return Expired
	case left < LastNotice:
		return ExpiringSoon
	case left < Notice:
		return Expiring
	}
	return Valid
}

// Text says when the certificate expires, or expired. It does not change within a phase.
func (e End) Text(now time.Time) string {
	at := e.At.UTC().Format("2006-01-02 15:04 MST")
	switch e.Phase(now) {
	case Expired:
		return fmt.Sprintf("certificate %d expired at %s", e.Index+1, at)
	case ExpiringSoon:
		return fmt.Sprintf("certificate %d expires at %s, in less than 7 days", e.Index+1, at)
	case Expiring:
		return fmt.Sprintf("certificate %d expires at %s, in less than 30 days", e.Index+1, at)
	}
	return fmt.Sprintf("certificate %d expires at %s", e.Index+1, at)
}

// Nearest returns the end that comes first, for each field that has one in less than
// Notice, in the order of ends.
func Nearest(ends []End, now time.Time) (first []End) {
	for _, e := range ends {
		if e.Phase(now) == Valid {
			continue
		}
		i := slices.IndexFunc(first, func(f End) bool { return f.Field == e.Field })
		switch {
		case i < 0:
			first = append(first, e)
		case e.At.Before(first[i].At):
			first[i] = e
		}
	}
	return first
}
