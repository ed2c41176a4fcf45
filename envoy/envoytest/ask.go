package envoytest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"
)

// patience is how long a test waits for an answer.
const patience = time.Minute

// Get returns the text of a GET request, which asks to close the connection afterwards.
func Get(host, path string) string {
	return fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, host)
}

// Exchange writes a text to a connection, and returns what comes back until the other side
// closes the connection.
func Exchange(t *testing.T, conn net.Conn, text string) string {
	t.Helper()
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	// A side that closes at once may do so before or after the write.
	_, _ = io.WriteString(conn, text)
	answer, _ := io.ReadAll(conn)
	return string(answer)
}

// An Answer is an HTTP response. A Status of 0 says that there was none.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Ask writes the text of a request to a connection, reads one response, and closes the
// connection. It does not wait for the other side to close: an Envoy takes a second for that
// after an answer of its own. If the other side closes the connection without a response,
// the answer is the zero Answer. A response that is not HTTP fails the test.
func Ask(t *testing.T, conn net.Conn, text string) Answer {
	t.Helper()
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	// A side that closes at once may do so before or after the write.
	_, _ = io.WriteString(conn, text)
	reader := bufio.NewReader(conn)
	if _, err := reader.Peek(1); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("no answer to %q", text)
	} else if err != nil {
		return Answer{}
	}
	resp, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatalf("the answer to %q: %v", text, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("the answer to %q: %v", text, err)
	}
	return Answer{resp.StatusCode, resp.Header, string(body)}
}

// Status asks for a path over a captured connection to an address. The status is 0 if the
// proxy closes the connection without an answer.
func (e *Envoy) Status(t *testing.T, ip string, port int, host, path string) (status int, body string) {
	t.Helper()
	answer := Ask(t, e.Captured(ip, port), Get(host, path))
	return answer.Status, answer.Body
}
