package ads

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"

	"google.golang.org/grpc/credentials"
)

// counting wraps transport credentials. Its connections count the bytes of
// requests, after TLS. gRPC reads a whole message before it reports it, on any
// number of streams at a time.
type counting struct {
	credentials.TransportCredentials
}

func (c counting) Clone() credentials.TransportCredentials {
	return counting{c.TransportCredentials.Clone()}
}

func (c counting) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	own, ok := raw.(*connection)
	if err != nil || !ok {
		return conn, info, err
	}
	return &countedConn{Conn: conn, own: own, left: prefaceLength}, info, nil
}

// countedConn counts the payload of DATA frames. Once the client must go, it drops
// these frames. One goroutine reads it.
type countedConn struct {
	net.Conn
	own    *connection
	head   [frameHead]byte
	have   int  // bytes of head
	passed int  // bytes of head already passed to gRPC, of a frame that began before frames were dropped
	left   int  // bytes left of the payload, or of the preface
	data   bool // whether the payload is of a DATA frame
	drop   bool // whether the payload is dropped
}

// Constants of HTTP/2 (RFC 9113): the lengths of the client's preface and of a
// frame's header, and the type of a DATA frame.
const (
	prefaceLength = 24
	frameHead     = 9
	frameData     = 0
)

// Read passes received bytes on. If the server ends the connection, it stays open for a
// moment, so that the client learns why. In that time Read passes on the client's
// acknowledgments, but not its requests.
func (c *countedConn) Read(p []byte) (int, error) {
	conn := c.own.memory
	conn.awaitSlot()
	if conn.over.Err() == nil {
		n, err := c.Conn.Read(p)
		if bytes := c.dataIn(p[:n]); bytes > 0 {
			conn.receive(int64(bytes))
		}
		c.passed = c.have
		return n, err
	}
	if len(p) <= frameHead {
		return 0, context.Cause(conn.over)
	}
	for {
		// A head may have been held back before.
		n, err := c.Conn.Read(p[:len(p)-frameHead])
		if rest := c.withoutData(bytes.Clone(p[:n]), p[:0]); len(rest) > 0 || err != nil {
			return len(rest), err
		}
	}
}

// withoutData appends to out what was read, without DATA frames. It holds a head
// back until that is complete.
func (c *countedConn) withoutData(p, out []byte) []byte {
	for len(p) > 0 {
		if c.left == 0 {
			if p = c.readHead(p); c.have > 0 {
				return out
			}
			if c.drop = c.data && c.passed == 0; !c.drop {
				out = append(out, c.head[c.passed:]...)
			}
			c.passed = 0
			continue
		}
		n := min(c.left, len(p))
		if !c.drop {
			out = append(out, p[:n]...)
		}
		c.left -= n
		p = p[n:]
	}
	return out
}

// dataIn returns how many of the bytes read are payload of DATA frames.
func (c *countedConn) dataIn(p []byte) (bytes int) {
	for len(p) > 0 {
		if c.left == 0 {
			p = c.readHead(p)
			continue
		}
		n := min(c.left, len(p))
		if c.data {
			bytes += n
		}
		c.left -= n
		p = p[n:]
	}
	return bytes
}

// readHead reads the head of a frame, or a part of it, and returns the rest of p.
func (c *countedConn) readHead(p []byte) []byte {
	n := copy(c.head[c.have:], p)
	if c.have += n; c.have == frameHead {
		c.have = 0
		c.left = int(binary.BigEndian.Uint32(c.head[:4]) >> 8)
		c.data = c.head[3] == frameData
	}
	return p[n:]
}
