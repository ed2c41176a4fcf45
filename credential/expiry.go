package credential

import "time"

// Expiry returns the earliest expiry of the pair's certificates. It skips
// certificates that cannot be read, and is zero if there are none.
func (p Pair) Expiry() (end time.Time) {
	for _, text := range []string{p.Certificate, p.CACertificates} {
		list, _ := Certificates(text)
		for _, c := range list {
			if end.IsZero() || c.NotAfter.Before(end) {
				end = c.NotAfter
			}
		}
	}
	return end
}
