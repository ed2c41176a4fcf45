package xds

// Answer is an encoded answer and the content hash that is its version. Both
// are shared and must not be changed. The zero Answer is none.
type Answer struct {
	Version string
	Body    []byte

	Compose func() []byte // the body, while nobody has asked for it
}
