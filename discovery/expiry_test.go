package discovery_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/mesh"
)

// TestCertificatesExpireWithoutAWrite checks that certificates in Secrets, authorities and
// files of the server become problems 30 and 7 days before they expire, and when they
// have, while nothing is written; that the object is Accepted until then; and that a new
// certificate ends the problem. The clock is that of the bubble.
func TestCertificatesExpireWithoutAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		authority := selfsigned.NewAuthority(t, t.TempDir())
		certificate, key := authority.PEM(t, "shop.example")
		ends := credential.Pair{Certificate: certificate}.Expiry()
		pair := object(t, "Secret", "shop", fmt.Sprintf(`{"certificate":%q,"privateKey":%q}`, certificate, key))
		partners := object(t, "Secret", "partners", fmt.Sprintf(`{"caCertificates":%q}`, authority.AuthorityPEM(t)))
		settings := mesh.DefaultSettings()
		settings.SecretFiles = map[string]mesh.SecretFile{"default/files": {CertificateFile: "/a.crt", KeyFile: "/a.key"}}
		held := mesh.FileSecret{Pair: credential.Pair{Certificate: certificate, Key: credential.NewKey(key)}}
		from := &files{changed: make(chan struct{}), holds: map[string]mesh.FileSecret{"default/files": held, "--grpc-tls-cert": held}}
		registry := prometheus.NewRegistry()
		src := newObjects(pair, partners)
		s := follow(t, src, discovery.Options{Settings: settings, Files: from, Registry: registry})

		for _, at := range []struct {
			left time.Duration
			code diag.Code
		}{
			{30*24*time.Hour + time.Hour, ""},
			{29 * 24 * time.Hour, diag.CertificateExpiring},
			{6 * 24 * time.Hour, diag.CertificateExpiringSoon},
			{-time.Hour, diag.CertificateExpired},
		} {
			time.Sleep(time.Until(ends.Add(-at.left)))
			synctest.Wait()
			wantExpiries(t, s, at.code)
			all := s.ObjectStatuses(nil)
			if got := all.Of(pair.Key().Ref(), 1).Problems.Unhonoured(); (len(got) > 0) != (at.code == diag.CertificateExpired) {
				t.Errorf("%s left: not honoured are %v", at.left, got)
			}
		}
		if s.Revision() != 1 {
			t.Errorf("something was written: revision %d", s.Revision())
		}
		want := fmt.Sprintf(`# HELP pilot_secret_expiry_timestamp_seconds When the first certificate of a Secret expires, in seconds since 1970, of the 1000 Secrets that expire first.
# TYPE pilot_secret_expiry_timestamp_seconds gauge
pilot_secret_expiry_timestamp_seconds{name="partners",namespace="default"} %[1]d
pilot_secret_expiry_timestamp_seconds{name="shop",namespace="default"} %[1]d
`, ends.Unix())
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "pilot_secret_expiry_timestamp_seconds"); err != nil {
			t.Error(err)
		}

		certificate, key = selfsigned.NewAuthority(t, t.TempDir()).PEM(t, "shop.example")
		src.replace(0, object(t, "Secret", "shop", fmt.Sprintf(`{"certificate":%q,"privateKey":%q}`, certificate, key)))
		time.Sleep(pause)
		if got := s.ObjectStatuses(nil).Of(pair.Key().Ref(), 1).Problems; len(got) > 0 {
			t.Errorf("a new certificate has %v", got)
		}
	})
}

// wantExpiries checks that each of the four places has one problem, of a code; none for "".
func wantExpiries(t *testing.T, s *discovery.Publisher, code diag.Code) {
	t.Helper()
	var got, want []string
	for _, p := range s.Report().Problems {
		got = append(got, string(p.Code)+" "+p.Object.Name+" "+p.Field)
	}
	if code != "" {
		for _, at := range []string{" --grpc-tls-cert", " secretFiles[default/files]", "partners spec.caCertificates", "shop spec.certificate"} {
			want = append(want, string(code)+" "+at)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("problems:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
