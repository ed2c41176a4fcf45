package ca

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"math/big"
)

// A serial number has random bytes, and a proof by the key of its authority. So an authority that
// keeps no record of its certificates knows its own numbers. A number has 127 bits at most.
const (
	serialRandom = 8 // bytes
	serialProof  = 8
)

// serials are the serial numbers of an authority. The zero value makes numbers that nobody knows.
type serials struct{ key []byte }

// serialsOf returns those of an authority with a private key in PKCS #8.
func serialsOf(private []byte) serials {
	key := hmac.New(sha256.New, private)
	key.Write([]byte("serial numbers"))
	return serials{key.Sum(nil)}
}

// next returns a new number.
func (s serials) next() *big.Int {
	number := make([]byte, serialRandom+serialProof)
	_, _ = rand.Read(number) // It never fails.
	number[0] = number[0]&0x7f | 0x40
	if s.key != nil {
		copy(number[serialRandom:], s.proof(number))
	}
	return new(big.Int).SetBytes(number)
}

// made reports whether next made a number.
func (s serials) made(number *big.Int) bool {
	if s.key == nil || number.BitLen() > 8*(serialRandom+serialProof) {
		return false
	}
	text := number.FillBytes(make([]byte, serialRandom+serialProof))
	return hmac.Equal(text[serialRandom:], s.proof(text))
}

// proof returns the second part of a number.
func (s serials) proof(number []byte) []byte {
	sum := hmac.New(sha256.New, s.key)
	sum.Write(number[:serialRandom])
	return sum.Sum(nil)[:serialProof]
}
