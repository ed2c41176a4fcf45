package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// node is the front service's sidecar, as examples/bookshop has it.
const node = "sidecar~127.0.0.10~productpage-v1.default~default.svc.cluster.local"

// World is the bookshop with everything it needs. Its files are a copy of
// examples/bookshop with addresses and ports of its own.
type World struct {
	Dir     string // Files, data and logs.
	Pilot   *Pilot
	Sidecar *Sidecar
	Shop    *Shop
	client  *http.Client
}

// OpenWorld starts everything and returns when a request gets through to each
// service. Files are made below dir, which stays the caller's; bookshop is
// examples/bookshop. The programs end with Close or with ctx.
func OpenWorld(ctx context.Context, programs Programs, bookshop, dir string) (*World, error) {
	w := &World{Dir: dir}
	if err := w.open(ctx, programs, bookshop); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *World) open(ctx context.Context, programs Programs, bookshop string) error {
	moved, err := w.openShop(bookshop)
	if err != nil {
		return err
	}
	w.Pilot, err = StartPilot(ctx, programs, w.Dir, "--data-dir", filepath.Join(w.Dir, "data"), "--mesh-config", w.file("mesh.yaml"))
	if err != nil {
		return err
	}
	if _, err = w.Pilot.Istioctl(ctx, "create", "-f", w.file("services.yaml")); err != nil {
		return err
	}
	if err := w.Pilot.Published(ctx); err != nil {
		return err
	}
	if w.Sidecar, err = StartSidecar(ctx, w.Pilot, w.Dir, moved.Replace(node)); err != nil {
		return err
	}
	w.client = proxied(&url.URL{Scheme: "http", Host: moved.Replace("127.0.0.1:15002")})
	return w.reachable(ctx)
}

func (w *World) file(name string) string { return filepath.Join(w.Dir, "bookshop", name) }

// openShop opens the backends at addresses that nobody else has. It returns
// what was put in place of the addresses in the files.
func (w *World) openShop(bookshop string) (*strings.Replacer, error) {
	var err error
	for range 20 {
		var moved *strings.Replacer
		if moved, err = elsewhere(); err != nil {
			return nil, err
		}
		if err = copyFiles(w.file(""), bookshop, moved); err != nil {
			return nil, err
		}
		if w.Shop, err = OpenShop(w.file("services.yaml")); err == nil {
			return moved, nil
		}
	}
	return nil, fmt.Errorf("no free addresses in 127.0.0.0/8: %w", err)
}

// elsewhere moves the instances, 127.0.0.10 and up in the files, into a random
// /24 of the loopback network, and Envoy's listeners to free ports.
func elsewhere() (*strings.Replacer, error) {
	listen, err := freePort()
	if err != nil {
		return nil, err
	}
	proxy, err := freePort()
	if err != nil {
		return nil, err
	}
	block := fmt.Sprintf("127.%d.%d.", 1+rand.IntN(254), rand.IntN(256))
	return strings.NewReplacer(
		"127.0.0.1:15002", fmt.Sprintf("127.0.0.1:%d", proxy),
		"15002", strconv.Itoa(proxy),
		"15001", strconv.Itoa(listen),
		"127.0.0.", block,
	), nil
}

// copyFiles copies the YAML files of a folder and of its folder rules.
func copyFiles(to, from string, moved *strings.Replacer) error {
	if err := os.MkdirAll(filepath.Join(to, "rules"), 0o700); err != nil {
		return err
	}
	for _, pattern := range []string{"*.yaml", "rules/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(from, pattern))
		if err != nil {
			return err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			copied := filepath.Join(to, filepath.Dir(pattern), filepath.Base(file))
			if err := os.WriteFile(copied, []byte(moved.Replace(string(text))), 0o600); err != nil {
				return err
			}
		}
	}
	return nil
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

// apply creates what the rule file holds and returns when Envoy works by it.
func (w *World) apply(ctx context.Context, rule string) error { return w.change(ctx, "create", rule) }

// withdraw is the opposite of apply.
func (w *World) withdraw(ctx context.Context, rule string) error {
	return w.change(ctx, "delete", rule)
}

func (w *World) change(ctx context.Context, verb, rule string) error {
	if _, err := w.Pilot.Istioctl(ctx, verb, "-f", w.file("rules/"+rule+".yaml")); err != nil {
		return err
	}
	if err := w.Pilot.Published(ctx); err != nil {
		return err
	}
	return w.Sidecar.Settle(ctx)
}

// Close stops what was started and returns what did not end well.
func (w *World) Close() error {
	var errs []error
	if w.client != nil {
		w.client.CloseIdleConnections()
	}
	if w.Sidecar != nil {
		errs = append(errs, w.Sidecar.stop())
	}
	if w.Pilot != nil {
		errs = append(errs, w.Pilot.stop())
	}
	if w.Shop != nil {
		w.Shop.Close()
	}
	return errors.Join(errs...)
}
