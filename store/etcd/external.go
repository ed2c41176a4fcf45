package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilot-api/pilot-api/store/etcd/etcdlog"
)

// Timing of the connections to an external etcd. The client detects a silent member within
// keepAlive and keepAliveTimeout. It finds a member that comes back within reconnectAtMost.
const (
	dialTimeout      = 5 * time.Second
	keepAlive        = 10 * time.Second
	keepAliveTimeout = 3 * time.Second
	reconnectAtMost  = time.Second
)

// DialOptions are the endpoints of an etcd and the credentials for it.
type DialOptions struct {
	// Endpoints are URLs such as "https://10.0.0.1:2379", at least one.
	Endpoints []string
	// CAFile verifies the server. CertFile and KeyFile, both or none, authenticate the
	// client. They are PEM files and are read again for new connections.
	CAFile, CertFile, KeyFile string
	// Username and the first line of PasswordFile, both or none, log in a user.
	Username, PasswordFile string
	Log                    *slog.Logger
}

// Dial returns a client. It waits for etcd only if there is a user to log in, and at
// most until ctx ends; a refused password is an error. The client reconnects by itself
// until Close or until ctx ends.
func Dial(ctx context.Context, opts DialOptions) (*clientv3.Client, error) {
	if len(opts.Endpoints) == 0 {
		return nil, errors.New("no etcd endpoint given")
	}
	tlsConfig, err := opts.tls()
	if err != nil {
		return nil, err
	}
	password, err := opts.password()
	if err != nil {
		return nil, err
	}
	return connect(ctx, opts.Log, clientv3.Config{
		Context:              ctx,
		Endpoints:            opts.Endpoints,
		TLS:                  tlsConfig,
		Username:             opts.Username,
		Password:             password,
		DialTimeout:          dialTimeout,
		DialKeepAliveTime:    keepAlive,
		DialKeepAliveTimeout: keepAliveTimeout,
		PermitWithoutStream:  true,
		DialOptions:          []grpc.DialOption{reconnect()},
		Logger:               etcdlog.New(opts.Log),
	})
}

// connect returns a client. It retries the login until a server answers.
func connect(ctx context.Context, log *slog.Logger, config clientv3.Config) (*clientv3.Client, error) {
	at := strings.Join(config.Endpoints, ", ")
	for {
		client, err := clientv3.New(config)
		if err == nil {
			return client, nil
		}
		if ctx.Err() != nil || !nobodyThere(err) {
			return nil, fmt.Errorf("etcd at %s: %w", at, err)
		}
		log.WarnContext(ctx, "etcd does not answer yet, waiting for it", "endpoints", at, "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(reconnectAtMost / 10):
		}
	}
}

// nobodyThere reports whether err means that no server answered.
func nobodyThere(err error) bool {
	code := status.Code(err)
	return errors.Is(err, context.DeadlineExceeded) || code == codes.Unavailable || code == codes.DeadlineExceeded
}

func reconnect() grpc.DialOption {
	pace := backoff.DefaultConfig
	pace.BaseDelay, pace.MaxDelay = reconnectAtMost/10, reconnectAtMost
	return grpc.WithConnectParams(grpc.ConnectParams{Backoff: pace, MinConnectTimeout: dialTimeout})
}

func (o DialOptions) tls() (*tls.Config, error) {
	if (o.CertFile == "") != (o.KeyFile == "") {
		return nil, errors.New("an etcd client certificate needs its key, and a key its certificate")
	}
	info := transport.TLSInfo{CertFile: o.CertFile, KeyFile: o.KeyFile, TrustedCAFile: o.CAFile}
	if info.Empty() && o.CAFile == "" {
		return nil, nil
	}
	cfg, err := info.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("TLS to etcd: %w", err)
	}
	return cfg, nil
}

func (o DialOptions) password() (string, error) {
	if (o.Username == "") != (o.PasswordFile == "") {
		return "", errors.New("an etcd user needs a password file, and a password file a user")
	}
	if o.PasswordFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(o.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("password for etcd: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimRight(line, "\r"), nil
}
