package hostile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/internal/testbed"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store/etcd"
)

// memory is what a server may take. A watcher kills one that has more, and the most that
// it ever had, of which the kernel keeps count (VmHWM, the files that it maps included),
// is judged at the end of each combination.
const memory = 512 << 20

// softLimit is --memory-limit: what a pilot-api takes by itself in a container of 512 MiB.
const softLimit = memory / 10 * 9

// budgetOf are the budgets that follow from it.
var budgetOf = mesh.Budget{Object: softLimit / (32 << 10) / 4, Mesh: softLimit / (32 << 10)}

// server is a pilot-api with a memory limit.
type server struct {
	*testbed.Server
	dir    string
	killed atomic.Bool // for its memory
	stop   context.CancelFunc
}

// startServer starts one on a folder that may have data. Who has it must end it.
func startServer(ctx context.Context, dir string, flags ...string) (*server, error) {
	if err := build(); err != nil {
		return nil, err
	}
	flags = append([]string{"--data-dir", filepath.Join(dir, "data"), "--log-level", "error", "--memory-limit", fmt.Sprint(softLimit)}, flags...)
	program, err := testbed.NewServer(dir, "pilot-api", executable(), flags...)
	if err != nil {
		return nil, err
	}
	if err := program.Start(); err != nil {
		return nil, err
	}
	watched, stop := context.WithCancel(ctx)
	s := &server{Server: program, dir: dir, stop: stop}
	go s.watch(watched)
	ready, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.Ready(ready); err != nil {
		_ = s.end()
		return nil, s.explain(err)
	}
	return s, nil
}

// watch kills the program when it has more memory than it may.
func (s *server) watch(ctx context.Context) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.Ended():
			return
		case <-tick.C:
			if now, _ := s.Memory(); now > memory {
				s.killed.Store(true)
				s.Kill()
			}
		}
	}
}

func (s *server) end() error {
	defer s.stop()
	return s.Stop()
}

// explain says why nothing is answered, where the program has ended.
func (s *server) explain(err error) error {
	select {
	case <-s.Ended():
	default:
		return err
	}
	if s.killed.Load() {
		return fmt.Errorf("the server was killed: it had more than %d MiB: %w", memory>>20, err)
	}
	return fmt.Errorf("the server has ended: %w\n%s", err, s.Tail())
}

// send answers the code and the whole answer.
func (s *server) send(ctx context.Context, method, path string, body []byte) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, s.explain(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, s.explain(err)
	}
	return resp.StatusCode, text, nil
}

// until sends a request again as long as the answer is that one should, and returns the
// last answer when a while is over.
func (s *server) until(ctx context.Context, method, path string, body []byte, final func(code int) bool) (int, []byte, error) {
	for end := time.Now().Add(patience / 4); ; {
		code, text, err := s.send(ctx, method, path, body)
		if err != nil || final(code) || time.Now().After(end) {
			return code, text, err
		}
		select {
		case <-ctx.Done():
			return code, text, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func finalWrite(code int) bool {
	return code != http.StatusTooManyRequests && code != http.StatusServiceUnavailable
}

func pathOf(o object) string {
	kind, _ := schema.KindByName(o.kind)
	return fmt.Sprintf("/apis/%s/namespaces/%s/%s", kind.APIVersion(), o.namespace, kind.Plural)
}

// refusal is the answer to a write that changed nothing.
type refusal struct {
	object object
	code   int
	text   string
}

// write sends all objects, and returns what was refused, in no order.
func (s *server) write(ctx context.Context, objects []object) ([]refusal, error) {
	var writers errgroup.Group
	writers.SetLimit(8)
	refused := make([]*refusal, len(objects))
	for i, o := range objects {
		writers.Go(func() error {
			kind, _ := schema.KindByName(o.kind)
			text, err := json.Marshal(spec{"apiVersion": kind.APIVersion(), "kind": o.kind, "metadata": spec{"name": o.name}, "spec": o.spec})
			if err != nil {
				return err
			}
			code, answer, err := s.until(ctx, http.MethodPost, pathOf(o), text, finalWrite)
			if err != nil {
				return fmt.Errorf("writing %s: %w", o, err)
			}
			if code != http.StatusCreated {
				refused[i] = &refusal{o, code, string(answer)}
			}
			return nil
		})
	}
	err := writers.Wait()
	var out []refusal
	for _, r := range refused {
		if r != nil {
			out = append(out, *r)
		}
	}
	return out, err
}

// remove deletes all objects.
func (s *server) remove(ctx context.Context, objects []object) error {
	var writers errgroup.Group
	writers.SetLimit(8)
	for _, o := range objects {
		writers.Go(func() error {
			code, text, err := s.until(ctx, http.MethodDelete, pathOf(o)+"/"+o.name, nil, finalWrite)
			if err == nil && code != http.StatusOK {
				err = fmt.Errorf("%d: %.500s", code, text)
			}
			if err != nil {
				err = fmt.Errorf("%s cannot be deleted: %w", o.ref(), err)
			}
			return err
		})
	}
	return writers.Wait()
}

// problems are those of all that was written before.
func (s *server) problems(ctx context.Context) (diag.List, error) {
	code, text, err := s.until(ctx, http.MethodGet, "/debug/problems?local=true", nil, func(code int) bool { return code != http.StatusGatewayTimeout })
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("%d: %.500s", code, text)
	}
	if err != nil {
		return nil, fmt.Errorf("problems: %w", err)
	}
	var in struct{ Problems diag.List }
	err = json.Unmarshal(text, &in)
	return in.Problems, err
}

// storeUnchecked has the store of a folder hold the objects as an older version, which
// checked less, may have written them.
func storeUnchecked(ctx context.Context, dir string, objects []object) (err error) {
	log := slog.New(slog.DiscardHandler)
	embedded, err := etcd.StartEmbedded(ctx, etcd.EmbeddedOptions{Dir: filepath.Join(dir, "data"), Log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, embedded.Close()) }()
	to := embedded.Store(etcd.DefaultPrefix, log)
	var writers errgroup.Group
	writers.SetLimit(32)
	for _, of := range objects {
		writers.Go(func() error {
			kind, _ := schema.KindByName(of.kind)
			text, err := json.Marshal(of.spec)
			if err != nil {
				return err
			}
			o, err := schema.New(kind, metav1.ObjectMeta{Name: of.name, Namespace: of.namespace}, text)
			if err == nil {
				_, err = to.Create(ctx, o)
			}
			return err
		})
	}
	return writers.Wait()
}

// newFolder is in memory where there is such a place: an etcd waits for the disk at each
// write, which is not what is judged.
func newFolder() (string, error) {
	in := "/dev/shm"
	if info, err := os.Stat(in); err != nil || !info.IsDir() {
		in = ""
	}
	return os.MkdirTemp(in, "hostile-")
}
