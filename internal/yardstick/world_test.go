package yardstick_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/internal/testbed"
	"github.com/pilot-api/pilot-api/internal/yardstick"
)

func TestMain(m *testing.M) {
	yardstick.Run()
	os.Exit(m.Run())
}

// world is all that is measured, each a process of its own: ours with the embedded
// etcd and with an external one, the thin handler, and the etcd that it is over.
type world struct {
	embedded, external, thin *api
	raw                      *yardstick.Raw
	etcd                     *yardstick.Program
	spaces                   atomic.Int64
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	dir := tb.TempDir()
	build(tb, dir)
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	below, beside := startEtcd(ctx, tb, dir, "external"), startEtcd(ctx, tb, dir, "raw")
	thin := must(yardstick.StartThin(ctx, dir, beside))(tb)
	tb.Cleanup(thin.Kill)
	raw := must(yardstick.DialRaw(beside))(tb)
	tb.Cleanup(raw.Close)
	return &world{
		embedded: startOurs(ctx, tb, dir, "embedded", "--data-dir", filepath.Join(dir, "data")),
		external: startOurs(ctx, tb, dir, "over-etcd", "--etcd-endpoints", "http://"+below.Address),
		thin:     &api{program: thin.Process, address: thin.Address, paths: "/%s", versionInURL: true, clears: true},
		raw:      raw,
		etcd:     beside,
	}
}

func build(tb testing.TB, dir string) {
	if err := testbed.Build(dir, "pilot-api"); err != nil {
		tb.Fatal(err)
	}
}

func startEtcd(ctx context.Context, tb testing.TB, dir, name string) *yardstick.Program {
	p := must(yardstick.StartEtcd(ctx, dir, name))(tb)
	tb.Cleanup(p.Kill)
	return p
}

func startOurs(ctx context.Context, tb testing.TB, dir, name string, args ...string) *api {
	s := must(testbed.NewServer(dir, name, filepath.Join(dir, "pilot-api"), args...))(tb)
	if err := s.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Kill)
	if err := s.Ready(ctx); err != nil {
		tb.Fatal(err)
	}
	return &api{program: s.Process, address: s.URL[len("http://"):], paths: "/apis/config.istio.io/v1alpha2/namespaces/%s/routerules"}
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return v
	}
}

// space is a namespace that nobody had before.
func (w *world) space() string { return fmt.Sprintf("s%d", w.spaces.Add(1)) }

// api is a server of objects over HTTP: ours, or the thin handler.
type api struct {
	program *testbed.Process
	address string
	paths   string // of a namespace

	versionInURL bool // of an update; else in the object
	clears       bool // takes DELETE of a namespace
}

func (a *api) path(space string) string         { return fmt.Sprintf(a.paths, space) }
func (a *api) object(space, name string) string { return a.path(space) + "/" + name }

// load is yardstick.Load with a connection for each client.
func (a *api) load(clients int, d time.Duration, newStep func(i int, c *yardstick.Conn) (yardstick.Step, error)) (float64, error) {
	conns := make([]*yardstick.Conn, clients)
	defer func() {
		for _, c := range conns {
			if c != nil {
				_ = c.Close()
			}
		}
	}()
	return yardstick.Load(clients, d, func(i int) (yardstick.Step, error) {
		var err error
		if conns[i], err = yardstick.Dial(a.address); err != nil {
			return nil, err
		}
		return newStep(i, conns[i])
	})
}

// fill creates objects o-0 to o-(n-1).
func (a *api) fill(space string, n int) error {
	const clients = 16
	_, err := a.load(clients, time.Minute, func(i int, c *yardstick.Conn) (yardstick.Step, error) {
		return func() error {
			if i >= n {
				return io.EOF
			}
			_, err := c.Do("POST", a.path(space), yardstick.Rule(space, nameOf(i), i))
			i += clients
			return err
		}, nil
	})
	return err
}

func nameOf(i int) string { return "o-" + strconv.Itoa(i) }

// createFor is how many objects clients create in a second. They are deleted
// afterwards.
func (a *api) createFor(space string, clients int, d time.Duration) (float64, error) {
	made := make([]int, clients)
	rate, err := a.load(clients, d, func(i int, c *yardstick.Conn) (yardstick.Step, error) {
		return func() error {
			_, err := c.Do("POST", a.path(space), yardstick.Rule(space, fmt.Sprintf("c-%d-%d", i, made[i]), i))
			made[i]++
			return err
		}, nil
	})
	if err != nil {
		return 0, err
	}
	return rate, a.clear(space, made)
}

func (a *api) clear(space string, made []int) error {
	if a.clears {
		c, err := yardstick.Dial(a.address)
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Do("DELETE", a.path(space), nil)
		return err
	}
	_, err := a.load(len(made), time.Minute, func(i int, c *yardstick.Conn) (yardstick.Step, error) {
		return func() error {
			for ; made[i] > 0; made[i]-- {
				if _, err := c.Do("DELETE", a.object(space, fmt.Sprintf("c-%d-%d", i, made[i]-1)), nil); err != nil {
					return err
				}
			}
			return io.EOF
		}, nil
	})
	return err
}

// updateFor is how many updates clients make in a second, each of an object of its
// own and of the version that it wrote last.
func (a *api) updateFor(space string, clients int, d time.Duration) (float64, error) {
	return a.load(clients, d, func(i int, c *yardstick.Conn) (yardstick.Step, error) {
		made, err := c.Do("PUT", a.object(space, nameOf(i)), yardstick.Rule(space, nameOf(i), 0))
		if err != nil {
			return nil, err
		}
		version, n := yardstick.ResourceVersion(made), 0
		return func() error {
			n++
			path, rule := a.object(space, nameOf(i)), yardstick.Rule(space, nameOf(i), n)
			if a.versionInURL {
				path += "?resourceVersion=" + version
			} else {
				rule = bytes.Replace(rule, []byte(`{"name"`), []byte(`{"resourceVersion":"`+version+`","name"`), 1)
			}
			made, err := c.Do("PUT", path, rule)
			version = yardstick.ResourceVersion(made)
			return err
		}, nil
	})
}

// readFor is how many reads clients make in a second.
func (a *api) readFor(clients int, d time.Duration, path func(n int) string) (float64, error) {
	return a.load(clients, d, func(i int, c *yardstick.Conn) (yardstick.Step, error) {
		n := i
		return func() error {
			n += clients
			_, err := c.Do("GET", path(n), nil)
			return err
		}, nil
	})
}

func (a *api) getFor(space string, objects, clients int, d time.Duration) (float64, error) {
	return a.readFor(clients, d, func(n int) string { return a.object(space, nameOf(n%objects)) })
}

func (a *api) listFor(space string, clients int, d time.Duration) (float64, error) {
	return a.readFor(clients, d, func(int) string { return a.path(space) })
}
