package main

import (
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/pilot-api/pilot-api/server/rest"
)

// Proxies of the server's own user on its machine connect to sockets in the data
// folder. Besides root, no other user may open them, so private keys are sent over
// them (decision 021).
const (
	grpcSocket = "grpc.sock"
	httpSocket = "http.sock"
)

// localSockets are the sockets of this server. A socket that could not be made is nil.
type localSockets struct{ grpc, http *localSocket }

// localSocket is a socket that this server made.
type localSocket struct {
	net.Listener
	file string
	made fs.FileInfo
}

// openSockets makes the sockets. Without a socket the server still serves, but sends
// private keys to fewer proxies.
func (o *options) openSockets(log *slog.Logger) localSockets {
	open := func(name string) *localSocket {
		s, err := openSocket(o.dataDir, name)
		if err != nil {
			log.Warn("no private keys for proxies of this machine: the data folder has no socket for them", "socket", name, "error", err)
		}
		return s
	}
	sockets := localSockets{http: open(httpSocket)}
	if o.grpcListen != "" {
		sockets.grpc = open(grpcSocket)
	}
	return sockets
}

// openSocket replaces a socket that a killed server left behind. It fails if a server
// answers on the socket.
func openSocket(dir, name string) (*localSocket, error) {
	file, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if conn, err := net.Dial("unix", file); err == nil {
		conn.Close()
		return nil, fmt.Errorf("another server answers on %s: give each its own --data-dir", file)
	}
	listener, err := listenPrivately(file)
	if err != nil {
		return nil, err
	}
	made, err := os.Lstat(file)
	if err != nil {
		listener.Close()
		return nil, err
	}
	return &localSocket{listener, file, made}, nil
}

func (s *localSocket) listeners() []net.Listener {
	if s == nil {
		return nil
	}
	return []net.Listener{s}
}

func (s *localSocket) path() string {
	if s == nil {
		return ""
	}
	return s.file
}

// remove removes the socket, unless another server has replaced it.
func (s *localSocket) remove() {
	if s == nil {
		return
	}
	s.Close()
	if now, err := os.Lstat(s.file); err == nil && os.SameFile(now, s.made) {
		_ = os.Remove(s.file)
	}
}

func (l localSockets) remove() {
	l.grpc.remove()
	l.http.remove()
}

// addresses returns what clients learn about the sockets. streams is the listener for
// streams, nil if there is none.
func (l localSockets) addresses(streams net.Listener) rest.Sockets {
	addresses := rest.Sockets{GRPC: l.grpc.path(), HTTP: l.http.path()}
	if streams != nil {
		addresses.Streams = streams.Addr().String()
	}
	return addresses
}
