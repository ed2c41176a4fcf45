// Package credential knows certificates and private keys in PEM: what is wrong
// with them, what a person may be told of them, and how a key is kept from
// being told.
package credential

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"
)

// Key is a private key in PEM, or the Mark of one. The zero Key is none. However
// it is printed, logged or encoded, its text does not show. Keys must be compared
// with Equal.
type Key struct {
	// A pointer: who prints a struct around it by reflection sees an address.
	text *string
}

// NewKey makes one of its text.
func NewKey(text string) Key {
	if text == "" {
		return Key{}
	}
	return Key{&text}
}

// Reveal is the text. What it gives may go to proxies and to the store.
func (k Key) Reveal() string {
	if k.text == nil {
		return ""
	}
	return *k.text
}

// None reports whether there is no key.
func (k Key) None() bool { return k.text == nil }

// Equal reports whether two keys are the same text.
func (k Key) Equal(other Key) bool { return k.Reveal() == other.Reveal() }

// String says whether there is one.
func (k Key) String() string {
	if k.None() {
		return ""
	}
	return "(private key)"
}

// Format is String for every verb.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// LogValue is String.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalJSON is String.
func (k Key) MarshalJSON() ([]byte, error) { return json.Marshal(k.String()) }

// UnmarshalJSON reads the text.
func (k *Key) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	*k = NewKey(s)
	return nil
}

var mark = regexp.MustCompile(`^\(kept: sha256:[0-9a-f]{16}\)$`)

// IsMark tells a mark from a key.
func IsMark(text string) bool { return mark.MatchString(text) }

// Mark stands for a key of an owner, where it may not be told. No key can be
// found by it, and that of another owner with the same key is another one.
func Mark(owner, key string) string {
	h := hmac.New(sha256.New, []byte("private key of "+owner))
	h.Write([]byte(key))
	return "(kept: sha256:" + hex.EncodeToString(h.Sum(nil)[:8]) + ")"
}

// HoldsKey reports whether a text has a private key in it, whole or in part.
func HoldsKey(text string) bool { return strings.Contains(text, "PRIVATE KEY-----") }
