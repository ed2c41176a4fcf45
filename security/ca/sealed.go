package ca

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// sealerBytes is the length of the key of a Sealer.
const sealerBytes = 32

// Sealer encrypts keys that are stored, with AES-256-GCM. It is safe for concurrent use.
type Sealer struct{ aead cipher.AEAD }

// NewSealer returns the Sealer of a key in base64.
func NewSealer(text string) (*Sealer, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != sealerBytes {
		return nil, fmt.Errorf("must have %d random bytes in base64 (openssl rand -base64 %d)", sealerBytes, sealerBytes)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return &Sealer{aead}, nil
}

// seal encrypts a text that belongs to a name.
func (s *Sealer) seal(name string, text []byte) []byte {
	return s.aead.Seal(nil, nil, text, []byte(name))
}

// open decrypts a text that was sealed for a name.
func (s *Sealer) open(name string, sealed []byte) ([]byte, error) {
	text, err := s.aead.Open(nil, nil, sealed, []byte(name))
	if err != nil {
		return nil, errors.New("it was encrypted with another key")
	}
	return text, nil
}
