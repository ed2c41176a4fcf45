package schema

import (
	"time"

	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/diag"
)

// expiryCodes are those of problems that come and go with time alone.
var expiryCodes = map[credential.Phase]diag.Code{
	credential.Expiring:     diag.CertificateExpiring,
	credential.ExpiringSoon: diag.CertificateExpiringSoon,
	credential.Expired:      diag.CertificateExpired,
}

// dependsOnTime reports whether a problem comes and goes with time alone.
func dependsOnTime(p diag.Problem) bool {
	for _, code := range expiryCodes {
		if p.Code == code {
			return true
		}
	}
	return false
}

// ExpiryProblems returns a problem for each field of a Pair with a certificate that has
// expired at now or will expire soon. The problem is about the certificate that expires
// first. field returns the path of a field of the Pair, and message the text before the
// words about the certificate.
func ExpiryProblems(object diag.Ref, ends []credential.End, now time.Time, field func(ofPair string) string, message func(ofPair string) string) (list diag.List) {
	for _, e := range credential.Nearest(ends, now) {
		list = append(list, diag.Problem{
			Severity: diag.Warning, Reason: diag.NotHonoured, Code: expiryCodes[e.Phase(now)],
			Object: object, Field: field(e.Field), Message: message(e.Field) + e.Text(now),
		})
	}
	return list
}

// SecretExpiryProblems returns the ExpiryProblems of a Secret.
func SecretExpiryProblems(secret diag.Ref, ends []credential.End, now time.Time) diag.List {
	return ExpiryProblems(secret, ends, now, specField, func(string) string { return "" })
}

func specField(ofPair string) string { return "spec." + ofPair }
