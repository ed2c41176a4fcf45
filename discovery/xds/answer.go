package xds

// Answer is an encoded answer and the content hash that is its version. Both are shared and
// must not be changed. The zero Answer means that there is none.
type Answer struct {
	Version string
	Body    []byte

	Compose func() []byte // makes the body at the first call
}
