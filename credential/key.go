// Package credential handles certificates and private keys in PEM: it checks them,
// returns the information that may be shown, and prevents a key from being shown.
package credential

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
)

// Key is a private key in PEM, or the Mark of one. The zero Key is no key.
// Printing, logging or encoding a Key does not show its text. Compare keys with
// Equal.
type Key struct {
	// text is a pointer, so that code that prints a surrounding struct by
	// reflection shows an address.
	text *string
}

// NewKey returns the Key with the given text, the zero Key for "".
func NewKey(text string) Key {
	if text == "" {
		return Key{}
	}
	return Key{&text}
}

// Reveal returns the text. It may go only to proxies and to the store.
func (k Key) Reveal() string {
	if k.text == nil {
		return ""
	}
	return *k.text
}

// None reports whether there is no key.
func (k Key) None() bool { return k.text == nil }

// Equal reports whether two keys have the same text.
func (k Key) Equal(other Key) bool { return k.Reveal() == other.Reveal() }

// String says whether there is a key, and does not show it.
func (k Key) String() string {
	if k.None() {
		return ""
	}
	return "(private key)"
}

// Format writes String for every verb.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// LogValue returns String.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalJSON encodes String.
func (k Key) MarshalJSON() ([]byte, error) { return json.Marshal(k.String()) }

// UnmarshalJSON decodes the text of the key.
func (k *Key) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	*k = NewKey(s)
	return nil
}

var mark = regexp.MustCompile(`^\(kept: sha256:[0-9a-f]{16}\)$`)

// IsMark reports whether a text is a Mark instead of a key.
func IsMark(text string) bool { return mark.MatchString(text) }

// Mark returns a text that stands for an owner's key where the key may not be
// shown. The key cannot be derived from it. The marks of one key differ between
// owners.
func Mark(owner, key string) string {
	h := hmac.New(sha256.New, []byte("private key of "+owner))
	h.Write([]byte(key))
	return "(kept: sha256:" + hex.EncodeToString(h.Sum(nil)[:8]) + ")"
}

// keyMark is a part of every private key in PEM.
const keyMark = "PRIVATE KEY-----"

// HoldsKey reports whether a text contains a private key in PEM, whole or in part, as it is
// or in base64. Kubernetes writes keys of Secrets in base64.
func HoldsKey(text string) bool {
	if strings.Contains(text, keyMark) {
		return true
	}
	text = oneLine.Replace(text)
	return slices.ContainsFunc(encodedKeyMarks, func(mark string) bool { return strings.Contains(text, mark) })
}

// oneLine joins the lines of a text, also of one that is in JSON, and writes base64 in its
// standard alphabet.
var oneLine = strings.NewReplacer("\n", "", "\r", "", "\t", "", " ", "", `\n`, "", `\r`, "", `\t`, "", "-", "+", "_", "/")

// encodedKeyMarks are the three texts that the mark has in base64, for the three positions
// in a group of three bytes that it may begin at.
var encodedKeyMarks = []string{encodedMark(0), encodedMark(1), encodedMark(2)}

// encodedMark returns the characters that encode only bits of the mark, if some bytes come
// before it in its group.
func encodedMark(before int) string {
	text := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + keyMark))
	bits := 8 * (before + len(keyMark))
	return text[(8*before+5)/6 : bits/6]
}
