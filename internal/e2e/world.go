package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
)

// node is the front service's sidecar, as in the registries.
const node = "sidecar~127.0.0.10~productpage-v1.default~default.svc.cluster.local"

// Setting is the files that a World is made from. Their addresses are in 127.0.0.0/24. A
// World replaces these addresses, and the ports, with its own.
type Setting struct {
	Services string // The registry: ServiceEntries.
	Mesh     string // Mesh settings.
	Rules    string // Folder of rule files.
}

// Bookshop returns the setting in a folder like examples/bookshop.
func Bookshop(dir string) Setting {
	return Setting{
		Services: filepath.Join(dir, "services.yaml"),
		Mesh:     filepath.Join(dir, "mesh.yaml"),
		Rules:    filepath.Join(dir, "rules"),
	}
}

// World is the services of a setting with everything they need.
type World struct {
	Dir     string // Files, data and logs.
	Pilot   *Pilot
	Sidecar *Sidecar
	Shop    *Shop
	moved   *strings.Replacer // Replaces addresses in files with this world's.
	client  *http.Client      // Its requests go through the sidecar.
}

// entrance starts the Envoy of a world and makes the client that goes through it.
type entrance func(ctx context.Context, w *World) error

// OpenWorld starts everything and returns when requests reach each service, through the
// HTTP proxy port of a sidecar that polls over REST v3. It writes files below dir, which
// the caller owns. The programs end with Close or with ctx.
func OpenWorld(ctx context.Context, programs Programs, s Setting, dir string) (*World, error) {
	return openWorld(ctx, programs, s, dir, proxyPort)
}

func openWorld(ctx context.Context, programs Programs, s Setting, dir string, enter entrance) (*World, error) {
	w := &World{Dir: dir}
	if err := w.open(ctx, programs, s, enter); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *World) open(ctx context.Context, programs Programs, s Setting, enter entrance) error {
	err := w.openShop(s)
	if err != nil {
		return err
	}
	w.Pilot, err = StartPilot(ctx, programs, w.Dir, "--data-dir", filepath.Join(w.Dir, "data"), "--mesh-config", w.file("mesh"))
	if err != nil {
		return err
	}
	if _, err = w.Pilot.Istioctl(ctx, "create", "-f", w.file("services")); err != nil {
		return err
	}
	if err := w.Pilot.Published(ctx); err != nil {
		return err
	}
	return enter(ctx, w)
}

// file returns this world's copy of a file.
func (w *World) file(name string) string { return filepath.Join(w.Dir, name+".yaml") }

// openShop copies the files and opens the backends at addresses that are not in use.
func (w *World) openShop(s Setting) error {
	var err error
	for range 20 {
		if w.moved, err = elsewhere(); err != nil {
			return err
		}
		if err = w.copyFiles(s); err != nil {
			return err
		}
		if w.Shop, err = OpenShop(w.file("services")); err == nil {
			return nil
		}
	}
	return fmt.Errorf("no free addresses in 127.0.0.0/8: %w", err)
}

// proxyPort is the entrance for a client that uses an HTTP proxy.
func proxyPort(ctx context.Context, w *World) error { return proxyPortWith()(ctx, w) }

// proxyPortWith returns the entrance through a sidecar with additional options.
func proxyPortWith(options ...string) entrance {
	return func(ctx context.Context, w *World) (err error) {
		if w.Sidecar, err = StartSidecar(ctx, w.Pilot, w.Dir, w.moved.Replace(node), options...); err != nil {
			return err
		}
		return w.useProxyPort(ctx)
	}
}

func (w *World) useProxyPort(ctx context.Context) error {
	w.client = asking(&http.Transport{
		Proxy:               http.ProxyURL(&url.URL{Scheme: "http", Host: w.moved.Replace("127.0.0.1:15002")}),
		MaxIdleConnsPerHost: 16,
	})
	return w.reachable(ctx)
}

// reachable returns when every service answers through the sidecar.
func (w *World) reachable(ctx context.Context) error {
	if err := w.Sidecar.Settle(ctx); err != nil {
		return err
	}
	for _, service := range []string{"productpage", "details", "ratings", "reviews"} {
		answer, err := Ask{Service: service, Path: "/"}.send(ctx, w.client)
		if err != nil {
			return err
		}
		if answer.Status != http.StatusOK || answer.Echo.Service != service {
			return fmt.Errorf("%s answers %d through the sidecar, from %+v", service, answer.Status, answer.Echo)
		}
	}
	return nil
}

// apply creates the objects of the rule files and returns when Envoy uses them.
func (w *World) apply(ctx context.Context, rules []string) error {
	return w.change(ctx, "create", rules)
}

// withdraw is the opposite of apply.
func (w *World) withdraw(ctx context.Context, rules []string) error {
	return w.change(ctx, "delete", rules)
}

func (w *World) change(ctx context.Context, verb string, rules []string) error {
	args := []string{verb}
	for _, rule := range rules {
		args = append(args, "-f", w.file("rules/"+rule))
	}
	if _, err := w.Pilot.Istioctl(ctx, args...); err != nil {
		return err
	}
	if err := w.Pilot.Published(ctx); err != nil {
		return err
	}
	// An open connection keeps the listener that accepted it, even if Envoy has a newer
	// one.
	defer w.client.CloseIdleConnections()
	return w.Sidecar.Settle(ctx)
}

// Close stops everything that was started and returns the errors.
func (w *World) Close() error {
	var errs []error
	if w.client != nil {
		w.client.CloseIdleConnections()
	}
	if w.Sidecar != nil {
		errs = append(errs, w.Sidecar.Stop())
	}
	if w.Pilot != nil {
		errs = append(errs, w.Pilot.Stop())
	}
	if w.Shop != nil {
		w.Shop.Close()
	}
	return errors.Join(errs...)
}
