package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/contexts"
	"github.com/pilot-api/pilot-api/envoy"
)

// A server sends private keys only to proxies that prove their right to them. A proxy
// of the user who runs the server proves it by connecting over the server's socket.

// socketPatience is the time that a server on this machine has to say where its sockets
// are.
const socketPatience = 3 * time.Second

// useSocket makes the Envoy of a bootstrap connect over the server's socket if the
// server is on this machine and this user may open the socket. Otherwise it warns that
// the Envoy receives no private keys.
func (o *Options) useSocket(ctx context.Context, s *cli.Session) {
	if o.envoy.API == envoy.V1 || o.envoy.API == envoy.GRPC || o.envoy.XDSCertFile != "" || o.envoy.XDSTokenFile != "" {
		return // These receive no secrets, or prove their right to them in another way.
	}
	var file string
	err := errors.New("--socket=false has it ask over TCP")
	if o.socket {
		file, err = o.findSocket(ctx, s)
	}
	if ctx.Err() != nil {
		return // The caller ends the command.
	}
	if err != nil {
		s.Warn("this Envoy is sent no private keys: " + err.Error())
		return
	}
	o.envoy.Socket = file
}

// findSocket returns the file of the socket for an Envoy. The error says why there is
// none.
func (o *Options) findSocket(ctx context.Context, s *cli.Session) (string, error) {
	server, err := url.Parse(s.Server)
	if err != nil || !contexts.IsLoopback(server.Hostname()) || len(o.envoy.XDS) > 1 {
		return "", errors.New("only one that asks a server of its own machine and user gets them without a certificate (--xds-cert)")
	}
	c, err := o.Connect(s.Warn)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, socketPatience)
	defer cancel()
	told, err := c.Sockets(ctx)
	if err != nil {
		return "", errors.New("the server does not say where its socket is: " + s.Explain(ctx, err))
	}
	file, asked := told.GRPC, told.Streams
	if !o.envoy.API.Streams() {
		file, asked = told.HTTP, server.Host
	}
	switch {
	case len(o.envoy.XDS) == 1 && !sameLocal(o.envoy.XDS[0], asked):
		return "", fmt.Errorf("%s is not where the server at %s answers Envoys (%s)", o.envoy.XDS[0], s.Server, asked)
	case file == "":
		return "", errors.New("the server has no socket for it; its log says why")
	}
	return file, checkSocket(ctx, file)
}

// checkSocket checks that this user may open the socket, and that this user or root
// made it: its owner decides what the Envoy does.
func checkSocket(ctx context.Context, file string) error {
	info, err := os.Lstat(file)
	switch {
	case err != nil:
	case !filepath.IsAbs(file) || info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("the server names %q, which is not the path of a socket", file)
	case !mayTrust(info, os.Geteuid()):
		return fmt.Errorf("the socket %s belongs to another user", file)
	default:
		var conn net.Conn
		var dialer net.Dialer
		if conn, err = dialer.DialContext(ctx, "unix", file); err == nil {
			return conn.Close()
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("the socket %s is for Envoys of the user who runs the server", file)
	}
	return err
}

// mayTrust reports whether a user may rely on the owner of a file.
func mayTrust(info fs.FileInfo, user int) bool {
	of, ok := info.Sys().(*syscall.Stat_t)
	return ok && (user == 0 || of.Uid == 0 || int(of.Uid) == user)
}

// sameLocal reports whether two HOST:PORT addresses of this machine mean the same
// listener.
func sameLocal(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	return errA == nil && errB == nil && portA == portB && contexts.IsLoopback(hostA) && (contexts.IsLoopback(hostB) || net.ParseIP(hostB).IsUnspecified())
}
