// Package etcdlog writes the log of etcd to a slog.Logger. It passes on only warnings and
// errors, and drops those that no operator could act on.
package etcdlog

import (
	"context"
	"log/slog"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// New returns a logger for etcd that writes to log.
func New(log *slog.Logger, opts ...zap.Option) *zap.Logger {
	return zap.New(&slogCore{log: log.With("component", "etcd")}, opts...)
}

// beside lists warnings that no operator could act on. Most are about things that an
// embedded etcd does not have: ports, other members, users with tokens.
var beside = map[string]bool{
	"Running http and grpc server on single port. This is not recommended for production.":                                                                          true,
	"it isn't recommended to use default name, please set a value for --name. Note that etcd might run into issue when multiple members have the same default name": true,
	"simple token is not cryptographically signed": true,
	// A cluster of one publishes itself to itself, and retries until the log has been
	// replayed.
	"failed to publish local member to cluster through raft": true,
	"failed to update storage version":                       true,
	"Failed to detect schema version":                        true,
	// The client logs this for each failed call, whether it retries or not. The caller
	// gets the error and may expect it, for example when it looks how far back etcd
	// reaches.
	"retrying of unary invoker failed": true,
}

type slogCore struct{ log *slog.Logger }

func (c *slogCore) Enabled(level zapcore.Level) bool { return level >= zapcore.WarnLevel }

func (c *slogCore) With(fields []zapcore.Field) zapcore.Core {
	return &slogCore{log: c.log.With(attrs(fields)...)}
}

func (c *slogCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(entry.Level) || beside[entry.Message] {
		return checked
	}
	return checked.AddCore(entry, c)
}

func (c *slogCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	level := slog.LevelWarn
	if entry.Level > zapcore.WarnLevel {
		level = slog.LevelError
	}
	c.log.Log(context.Background(), level, entry.Message, attrs(fields)...)
	return nil
}

func (c *slogCore) Sync() error { return nil }

func attrs(fields []zapcore.Field) []any {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(enc)
	}
	out := make([]any, 0, len(enc.Fields))
	for key, value := range enc.Fields {
		out = append(out, slog.Any(key, value))
	}
	return out
}
