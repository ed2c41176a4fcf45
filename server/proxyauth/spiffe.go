package proxyauth

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"k8s.io/apimachinery/pkg/util/validation"
)

// SPIFFE returns the namespace and service account of the only SPIFFE ID in a proxy's
// certificate: spiffe://TRUST-DOMAIN/ns/NAMESPACE/sa/ACCOUNT, as Istio writes it. It
// returns an error if the URIs are not exactly one such ID of the trust domain.
func SPIFFE(uris []*url.URL, trustDomain string) (namespace, account string, err error) {
	if len(uris) != 1 {
		return "", "", fmt.Errorf("it has %d URIs, want one", len(uris))
	}
	// String keeps escapes, and spiffeid refuses a % in them.
	found := uris[0].String()
	wrong := func(why error) error {
		return fmt.Errorf("want spiffe://%s/ns/NAMESPACE/sa/ACCOUNT, found %q: %w", trustDomain, found, why)
	}
	id, err := spiffeid.FromString(found)
	switch {
	case err != nil:
		return "", "", wrong(err)
	case id.TrustDomain().Name() != trustDomain:
		return "", "", wrong(errors.New("it is of another trust domain"))
	}
	parts := strings.Split(id.Path(), "/")
	switch {
	case len(parts) != 5 || parts[1] != "ns" || parts[3] != "sa":
		return "", "", wrong(errors.New("its path has another form"))
	case len(validation.IsDNS1123Label(parts[2])) > 0:
		return "", "", wrong(errors.New("NAMESPACE must be the name of one"))
	}
	return parts[2], parts[4], nil
}
