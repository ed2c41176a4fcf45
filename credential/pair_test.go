package credential_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
)

func TestCheck(t *testing.T) {
	authority := selfsigned.NewAuthority(t, t.TempDir())
	ca := authority.AuthorityPEM(t)
	certificate, key := authority.PEM(t, "a.example")
	other, otherKey := authority.PEM(t, "b.example")
	smallCertificate, smallKey := small(t)
	now := time.Now()
	for _, c := range []struct {
		name             string
		certificate, key string
		ca               string
		at               time.Time
		want             []string // field, and what the message says
	}{
		{"pair", certificate, key, "", now, nil},
		{"pair with chain and authorities", certificate + ca, key, ca + ca, now, nil},
		{"authorities alone", "", "", ca, now, nil},
		{"text around", "subject=a\n" + certificate, key + "\n", "", now, nil},
		{"mark", certificate, credential.Mark("default/a", key), "", now, nil},
		{"nothing", "", "", "", now, []string{"certificate must be given with"}},
		{"no key", certificate, "", ca, now, []string{"privateKey must be given"}},
		{"no certificate", "", key, ca, now, []string{"certificate must be given"}},
		{"key of another", certificate, otherKey, "", now, []string{"privateKey belongs to the certificate"}},
		{"chain the wrong way", ca + certificate, key, "", now, []string{"privateKey belongs", "certificate did not sign"}},
		{"stranger in the chain", certificate + other, key, "", now, []string{"certificate did not sign"}},
		{"key in the certificate", certificate + key, key, "", now, []string{"certificate must not hold a private key"}},
		{"key among the authorities", certificate, key, ca + key, now, []string{"caCertificates must not hold a private key"}},
		{"certificate in the key", certificate, key + certificate, "", now, []string{"privateKey must hold a private key and nothing else"}},
		{"two keys", certificate, key + otherKey, "", now, []string{"privateKey one private key"}},
		{"half a certificate", certificate[:len(certificate)/2], key, "", now, []string{"certificate cut off"}},
		{"half a key", certificate, key[:len(key)/2], "", now, []string{"privateKey whole private key"}},
		{"no PEM", "hello", key, "", now, []string{"certificate must be in PEM"}},
		{"encrypted", certificate, strings.ReplaceAll(key, "PRIVATE KEY", "ENCRYPTED PRIVATE KEY"), "", now, []string{"privateKey encrypted"}},
		{"authority of none", certificate, key, other, now, []string{"caCertificates no authority"}},
		{"expired", certificate, key, ca, now.Add(365 * 24 * time.Hour), nil},
		{"not yet", certificate, key, "", now.Add(-2 * time.Hour), []string{"certificate not valid before"}},
		{"small RSA key", smallCertificate, smallKey, "", now, []string{"certificate 1024 bits"}},
	} {
		flaws := credential.Pair{Certificate: c.certificate, Key: credential.NewKey(c.key), CACertificates: c.ca}.Check(c.at)
		if len(flaws) != len(c.want) {
			t.Errorf("%s: found %v, want %q", c.name, flaws, c.want)
			continue
		}
		for i, flaw := range flaws {
			field, says, _ := strings.Cut(c.want[i], " ")
			if flaw.Field != field || !strings.Contains(flaw.Message, says) {
				t.Errorf("%s: found %+v, want %q", c.name, flaw, c.want[i])
			}
		}
	}
}

func small(t *testing.T) (certificate, key string) {
	t.Setenv("GODEBUG", "rsa1024min=0")
	k, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(k)}))
}

func TestKeyIsNotPrinted(t *testing.T) {
	key := credential.NewKey("hidden")
	pair := credential.Pair{Certificate: "shown", Key: key}
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	logger.Info("a pair", "pair", pair, "pointer", &pair, "key", key, "group", slog.GroupValue(slog.Any("key", key)))
	json := slog.New(slog.NewJSONHandler(&log, nil))
	json.Info("a pair", "pair", pair, "key", key)
	texts := []string{log.String()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, value := range []any{key, &key, pair, &pair, []credential.Pair{pair}, map[string]*credential.Pair{"a": &pair}, struct{ pair credential.Pair }{pair}} {
			texts = append(texts, fmt.Sprintf(verb, value))
		}
	}
	for _, text := range texts {
		if strings.Contains(text, "hidden") || strings.Contains(text, fmt.Sprintf("%x", "hidden")) {
			t.Errorf("printed as %s", text)
		}
	}
	if key.Reveal() != "hidden" {
		t.Errorf("revealed as %q", key.Reveal())
	}
}
