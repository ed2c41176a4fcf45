package ca

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/credential"
)

// mostRevoked bounds the revoked certificates that have not ended. Each proxy is sent some 50
// bytes for each of them.
const mostRevoked = 1000

// revokedCertificate is a certificate that counts no longer.
type revokedCertificate struct {
	Serial string    `json:"serial"` // in hexadecimal
	At     time.Time `json:"at"`
	// End is a time after which no certificate counts that an authority had signed then.
	End time.Time `json:"end"`
}

// ErrSerial means that a text is no serial number of a certificate.
var ErrSerial = errors.New("a serial number has 1 to 32 hexadecimal digits, with or without colons")

// ErrTooManyRevoked means that as many certificates as may are revoked and have not ended.
var ErrTooManyRevoked = fmt.Errorf("%d certificates are revoked and have not ended, and more may not be: rotate the root", mostRevoked)

// ErrForeign means that no authority of the mesh has signed a certificate with a number.
var ErrForeign = errors.New("no present authority of the mesh has issued a certificate with this number")

var serialText = regexp.MustCompile(`^[0-9a-f]{1,32}$`)

// parseSerial reads a serial number as tools print it.
func parseSerial(text string) (*big.Int, error) {
	digits := strings.ToLower(strings.ReplaceAll(text, ":", ""))
	serial, ok := new(big.Int).SetString(digits, 16)
	if !serialText.MatchString(digits) || !ok || serial.Sign() == 0 {
		return nil, fmt.Errorf("%w, found %.60q", ErrSerial, text)
	}
	return serial, nil
}

// Revoke ends a certificate before its time, for all servers: workloads refuse it from then on,
// and end the connections that they have. The error is ErrSerial, ErrForeign unless force is
// true, ErrTooManyRevoked, or one of the document.
func (s *Shared) Revoke(ctx context.Context, serial string, force bool) error {
	number, err := parseSerial(serial)
	if err != nil {
		return err
	}
	return s.decide(ctx, func(state *sharedState) (changed bool, err error) {
		if !force {
			if err := s.checkMade(state, number); err != nil {
				return false, err
			}
		}
		switch {
		case !state.revoke(number.Text(16), time.Now()):
			return false, nil
		case len(state.Revoked) > mostRevoked:
			return false, ErrTooManyRevoked
		}
		return true, s.list(state, state.Authorities)
	})
}

// checkMade returns ErrForeign unless one of the authorities made a serial number.
func (s *Shared) checkMade(state *sharedState, number *big.Int) error {
	for _, one := range state.Authorities {
		_, numbers, err := s.keyOf(one)
		if err != nil {
			return err
		}
		if numbers.made(number) {
			return nil
		}
	}
	return ErrForeign
}

// revoke adds a certificate, and forgets those that have ended. It reports whether it was not
// revoked before.
func (s *sharedState) revoke(serial string, now time.Time) bool {
	if slices.ContainsFunc(s.Revoked, func(r revokedCertificate) bool { return r.Serial == serial }) {
		return false
	}
	var end time.Time
	for _, a := range s.Authorities {
		last := a.LastEnd
		if last.IsZero() {
			last = now.Add(rootLife)
		}
		if last.After(end) {
			end = last
		}
	}
	s.Revoked = slices.DeleteFunc(s.Revoked, func(r revokedCertificate) bool { return now.After(r.End) })
	s.Revoked = append(s.Revoked, revokedCertificate{serial, now.UTC(), end})
	s.Revocations++
	return true
}

// list gives authorities of a state their lists of revoked certificates, once there are any. Envoy
// refuses the certificates of an issuer without one. A certificate is in all lists, because the
// number does not say which authority signed it.
func (s *Shared) list(state *sharedState, authorities []sharedAuthority) error {
	if state.Revocations == 0 {
		return nil
	}
	now := time.Now()
	template := &x509.RevocationList{Number: big.NewInt(now.UnixNano()), ThisUpdate: now.Add(-s.ca.opts.Skew)}
	for _, one := range state.Revoked {
		serial, err := parseSerial(one.Serial)
		if err != nil {
			return err
		}
		template.RevokedCertificateEntries = append(template.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: serial, RevocationTime: one.At})
	}
	for i := range authorities {
		one := &authorities[i]
		chain, err := credential.Certificates(one.Certificate)
		if err != nil {
			return fmt.Errorf("authority %s: %w", one.Name, err)
		}
		key, _, err := s.keyOf(*one)
		if err != nil {
			return err
		}
		// A list that ends would end all traffic.
		template.NextUpdate = chain[0].NotAfter
		raw, err := x509.CreateRevocationList(rand.Reader, template, chain[0], key)
		if err != nil {
			return fmt.Errorf("authority %s: %w", one.Name, err)
		}
		one.List = string(pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: raw}))
	}
	return nil
}

// addList adds the list of an authority to a trust.
func (t *Trust) addList(text string) error {
	if text == "" {
		return nil
	}
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return errors.New("its list of revoked certificates is no PEM")
	}
	list, err := x509.ParseRevocationList(block.Bytes)
	if err != nil {
		return fmt.Errorf("its list of revoked certificates: %w", err)
	}
	t.Lists, t.ListsPEM = append(t.Lists, list), t.ListsPEM+text
	return nil
}
