package yardstick

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// thin is a minimal handler between HTTP and etcd: it parses the JSON, makes one
// transaction of it and answers with the revision. It has no schema, history, router or
// log. It reads from its own memory without asking etcd whether that is current, so its
// reads promise nothing.
//
//	POST   /SPACE                          create
//	PUT    /SPACE/NAME?resourceVersion=N   update, of that version if given
//	GET    /SPACE/NAME, /SPACE             what was written last
//	DELETE /SPACE                          all of it
type thin struct {
	etcd *clientv3.Client

	mu     sync.RWMutex
	spaces map[string]*space
}

// space is a namespace in memory.
type space struct {
	at     map[string]int
	values [][]byte
	bytes  int
}

func newThin(client *clientv3.Client) http.Handler {
	return &thin{etcd: client, spaces: map[string]*space{}}
}

func (t *thin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	in, name, _ := strings.Cut(r.URL.Path[1:], "/")
	switch {
	case r.Method == http.MethodPost:
		t.write(w, r, in, http.StatusCreated, 0)
	case r.Method == http.MethodPut:
		revision, err := strconv.ParseInt(r.URL.Query().Get("resourceVersion"), 10, 64)
		if err != nil {
			revision = whatever
		}
		t.write(w, r, in, http.StatusOK, revision)
	case r.Method == http.MethodDelete:
		t.clear(w, r, in)
	case name == "":
		t.list(w, in)
	default:
		t.get(w, in, name)
	}
}

func (t *thin) write(w http.ResponseWriter, r *http.Request, in string, code int, revision int64) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var object struct {
		Metadata struct{ Name string }
		Spec     map[string]any
	}
	if err := json.Unmarshal(body, &object); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	written, err := put(r.Context(), t.etcd, in+"/"+object.Metadata.Name, body, revision)
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	t.keep(in, object.Metadata.Name, body)
	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, `{"metadata":{"resourceVersion":"%d"}}`, written)
}

func (t *thin) keep(in, name string, body []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.spaces[in]
	if s == nil {
		s = &space{at: map[string]int{}}
		t.spaces[in] = s
	}
	i, known := s.at[name]
	if !known {
		i = len(s.values)
		s.at[name], s.values = i, append(s.values, nil)
	}
	s.bytes += len(body) - len(s.values[i])
	s.values[i] = body
}

func (t *thin) clear(w http.ResponseWriter, r *http.Request, in string) {
	if _, err := t.etcd.Delete(r.Context(), in+"/", clientv3.WithPrefix()); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.spaces, in)
}

func (t *thin) get(w http.ResponseWriter, in, name string) {
	t.mu.RLock()
	s := t.spaces[in]
	var value []byte
	if i, ok := s.at[name]; ok {
		value = s.values[i]
	}
	t.mu.RUnlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(value)
}

func (t *thin) list(w http.ResponseWriter, in string) {
	const head, tail = `{"items":[`, `]}`
	t.mu.RLock()
	values, size := slices.Clone(t.spaces[in].values), t.spaces[in].bytes
	t.mu.RUnlock()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(head)+size+max(0, len(values)-1)+len(tail)))
	out := bufio.NewWriterSize(w, 64<<10)
	_, _ = out.WriteString(head)
	for i, value := range values {
		if i > 0 {
			_ = out.WriteByte(',')
		}
		_, _ = out.Write(value)
	}
	_, _ = out.WriteString(tail)
	_ = out.Flush()
}
