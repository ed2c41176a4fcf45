package yardstick

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"strconv"
	"strings"
)

// Conn is a connection to an HTTP server for one request at a time. It reads only what
// the servers here send. A client of net/http would take as much processor time as they
// do.
type Conn struct {
	conn    net.Conn
	in      *bufio.Reader
	out     []byte
	body    []byte
	address string
}

// Dial connects to host:port.
func Dial(address string) (*Conn, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &Conn{conn: c, in: bufio.NewReader(c), address: address}, nil
}

// Close disconnects.
func (c *Conn) Close() error { return c.conn.Close() }

// Do sends a request and returns the body of the answer. The body is valid until the next
// request. A status of 400 or more is an error.
func (c *Conn) Do(method, path string, body []byte) ([]byte, error) {
	if err := c.send(method, path, body); err != nil {
		return nil, err
	}
	status, length, _, err := c.head()
	if err != nil {
		return nil, err
	}
	if cap(c.body) < length {
		c.body = make([]byte, length)
	}
	c.body = c.body[:length]
	if _, err := io.ReadFull(c.in, c.body); err != nil {
		return nil, err
	}
	if status >= 400 {
		return nil, fmt.Errorf("%s %s: %d %s", method, path, status, c.body)
	}
	return c.body, nil
}

// Stream sends a GET and returns its endless answer.
func (c *Conn) Stream(path string) (*bufio.Reader, error) {
	if err := c.send("GET", path, nil); err != nil {
		return nil, err
	}
	status, _, chunked, err := c.head()
	if err != nil {
		return nil, err
	}
	if status != 200 || !chunked {
		return nil, fmt.Errorf("GET %s: %d, chunked: %v", path, status, chunked)
	}
	return bufio.NewReader(httputil.NewChunkedReader(c.in)), nil
}

func (c *Conn) send(method, path string, body []byte) error {
	c.out = fmt.Appendf(c.out[:0], "%s %s HTTP/1.1\r\nHost: %s\r\n", method, path, c.address)
	if body != nil {
		c.out = fmt.Appendf(c.out, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	c.out = append(append(c.out, "\r\n"...), body...)
	_, err := c.conn.Write(c.out)
	return err
}

func (c *Conn) head() (status, length int, chunked bool, err error) {
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return 0, 0, false, err
		}
		line = bytes.TrimRight(line, "\r\n")
		name, value, _ := strings.Cut(string(line), ": ")
		switch {
		case len(line) == 0:
			return status, length, chunked, nil
		case status == 0:
			_, code, _ := strings.Cut(name, " ")
			status, err = strconv.Atoi(code[:min(3, len(code))])
		case name == "Content-Length":
			length, err = strconv.Atoi(value)
		case name == "Transfer-Encoding":
			chunked = value == "chunked"
		}
		if err != nil {
			return 0, 0, false, err
		}
	}
}

// ResourceVersion returns the first resourceVersion in a JSON text.
func ResourceVersion(text []byte) string {
	_, rest, _ := bytes.Cut(text, []byte(`"resourceVersion":"`))
	revision, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(revision)
}
