package credential

import "time"

// Expiry is when the first of all certificates of the pair ends that can be read; zero
// without any.
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
