package rest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
)

// nodeHash identifies the text of a node.
type nodeHash [16]byte

// nodeHasher hashes nodes by AES-GMAC with a random key. A collision would give one
// proxy's answers to another, so collisions must be proven unlikely: with a secret
// key, two texts of a node's size collide with a probability of less than 2^-110,
// even if an attacker chose them. The two 64-bit seeds of hash/maphash have no such
// proof. SHA-256 takes four times as long, and a copy of each node to compare with
// takes 77 KB for each proxy. It is safe for concurrent use.
type nodeHasher struct{ gcm cipher.AEAD }

func newNodeHasher() *nodeHasher {
	key := make([]byte, 16)
	_, _ = rand.Read(key) // It never fails.
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // only for keys of another length
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // only for blocks of another length
	}
	return &nodeHasher{gcm}
}

// gmacNonce is the same for all nodes. A repeated nonce reveals the key only to
// somebody who sees tags, and tags never leave the process.
var gmacNonce = make([]byte, 12)

func (h *nodeHasher) hash(node []byte) nodeHash {
	return nodeHash(h.gcm.Seal(nil, gmacNonce, nil, node))
}
