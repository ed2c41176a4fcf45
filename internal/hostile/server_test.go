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
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/internal/testbed"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/embedded"
)

// memory is what a server may take of its own, beside the files that it maps, which the
// kernel drops when memory is short. A watcher kills one that has more. As it may look
// away at the wrong moment, the most that the kernel ever counted (VmHWM) is judged at the
// end of each combination.
const memory = 512 << 20

// softLimit is --memory-limit: what a pilot-api takes by itself in a container of 512 MiB.
const softLimit = memory / 10 * 9

// budgetOf are the budgets that follow from it.
var budgetOf = mesh.Budget{Object: softLimit / (32 << 10) / 4, Mesh: softLimit / (32 << 10)}

// server is a pilot-api with a memory limit.
type server struct {
	*testbed.Server
	pid    int
	peak   atomic.Int64 // memory, in bytes
	killed atomic.Bool  // for its memory
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
	s := &server{Server: program, pid: program.PID(), stop: stop}
	go s.watch(watched)
	ready, cancel := s.impatient(ctx)
	defer cancel()
	if err := s.Ready(ready); err != nil {
		err = s.explain(err)
		s.end()
		return nil, err
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
			if s.look() > memory {
				s.killed.Store(true)
				s.Kill()
			}
		}
	}
}

// look returns the most memory of its own that the program was seen to have so far.
func (s *server) look() int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	if err != nil {
		return s.peak.Load()
	}
	of := map[string]int64{}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[2] == "kB" {
			n, _ := strconv.ParseInt(fields[1], 10, 64)
			of[fields[0]] = n << 10
		}
	}
	now := max(of["RssAnon:"], of["VmHWM:"]-of["RssFile:"]-of["RssShmem:"])
	for {
		most := s.peak.Load()
		if now <= most || s.peak.CompareAndSwap(most, now) {
			return max(now, most)
		}
	}
}

func (s *server) end() {
	s.stop()
	s.Kill()
}

// A server hangs when it works for so long on one thing, or does not work at all: on a
// busy machine anything may take long by the clock.
const (
	patience      = time.Minute
	clockPatience = 20 * time.Minute
)

// impatient is a context that ends when the server hangs.
func (s *server) impatient(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, clockPatience)
	begin := s.CPU()
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if s.CPU()-begin > patience {
					cancel()
				}
			}
		}
	}()
	return ctx, cancel
}

// explain says why nothing is answered, where the program has ended.
func (s *server) explain(err error) error {
	select {
	case <-s.Ended():
	case <-time.After(5 * time.Second): // The connection may end before the process does.
		return err
	}
	if s.killed.Load() {
		return fmt.Errorf("the server was killed: it had more than %d MiB: %w", memory>>20, err)
	}
	return fmt.Errorf("the server has ended: %w\n%s", err, s.Tail())
}

// send answers the code and the whole answer.
func (s *server) send(ctx context.Context, method, path string, body []byte) (int, []byte, error) {
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

// until sends a request again as long as the answer is that one should, or a living server
// ends the connection, as it does by its own clock on a machine that is busy with others.
func (s *server) until(ctx context.Context, method, path string, body []byte, final func(code int) bool) (int, []byte, error) {
	ctx, cancel := s.impatient(ctx)
	defer cancel()
	for again := 0; ; again++ {
		code, text, err := s.send(ctx, method, path, body)
		late := errors.Is(err, io.EOF) && !s.over() && again < 3
		if !late && (err != nil || final(code) || again == mostAgain) {
			return code, text, err
		}
		select {
		case <-ctx.Done():
			return code, text, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// over reports whether the program has ended.
func (s *server) over() bool {
	select {
	case <-s.Ended():
		return true
	default:
		return false
	}
}

// mostAgain bounds how often a request is sent again that was answered at once.
const mostAgain = 300

// finalWrite is false for answers that say to try again, and for a timeout by the
// server's own clock.
func finalWrite(code int) bool {
	return code != http.StatusTooManyRequests && code != http.StatusServiceUnavailable && code != http.StatusGatewayTimeout
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
			if code != http.StatusCreated && code != http.StatusConflict { // It was written the first time.
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
			if err == nil && code != http.StatusOK && code != http.StatusNotFound { // It was deleted the first time.
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
	db, err := embedded.Start(ctx, embedded.Options{Dir: filepath.Join(dir, "data"), Log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	to := etcd.NewEmbedded(db, etcd.DefaultPrefix, log)
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
