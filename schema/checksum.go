package schema

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
)

// A stored text ends with the checksum of everything before it, as the last member
// of the JSON object:
//
//	{"apiVersion":…,"kind":…,"metadata":…,"spec":…,"crc32c":"1a2b3c4d"}
//
// A flipped bit often leaves JSON that is a valid object with another meaning. The
// checksum detects it. Versions that know no checksum ignore the member, and their
// texts are read without one.
const (
	beforeChecksum = `,"crc32c":"`
	afterChecksum  = `"}`
	checksumBytes  = len(beforeChecksum) + 8 + len(afterChecksum)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errChecksum = errors.New("its checksum does not match: the stored bytes were changed")

// WithChecksum returns the text to store for a JSON object with at least one
// member.
func WithChecksum(text []byte) []byte {
	content := text[:len(text)-1]
	return appendChecksum(append(make([]byte, 0, len(content)+checksumBytes), content...), content)
}

func appendChecksum(out, content []byte) []byte {
	return fmt.Appendf(out, "%s%08x%s", beforeChecksum, crc32.Checksum(content, castagnoli), afterChecksum)
}

// WithoutChecksum reverses WithChecksum. It returns a text without a checksum as it
// is. An error means that the text is not the one that was stored.
func WithoutChecksum(stored []byte) (text []byte, err error) {
	at := len(stored) - checksumBytes
	if at < 0 || !bytes.HasPrefix(stored[at:], []byte(beforeChecksum)) {
		return stored, nil
	}
	content := stored[:at]
	if !bytes.Equal(appendChecksum(nil, content), stored[at:]) {
		return nil, errChecksum
	}
	return slices.Concat(content, []byte("}")), nil
}
