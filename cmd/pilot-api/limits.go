package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/server"
)

// limits are the flags that bound the resources of the process and of its clients.
type limits struct {
	memory         string // a quantity, or "off"
	grpcMemory     string // a quantity
	maxConnections int
	userWrites     int
	userBytes      string // a quantity
	userWatches    int
	hostNames      []string
}

func (l *limits) register(f *pflag.FlagSet) {
	f.StringVar(&l.memory, "memory-limit", "", "soft limit for the memory of the process, such as 2Gi, or off (default GOMEMLIMIT, else nine tenths of the limit of its cgroup, else off)")
	f.StringVar(&l.grpcMemory, "grpc-memory", "", "memory for all clients of --grpc-listen together, such as 256Mi: for requests being received and subscriptions, and as much again for responses that are not read yet; if it is exceeded, the connection that holds the most is ended (default an eighth of --memory-limit, at least 64Mi, or 128Mi without a limit)")
	f.IntVar(&l.maxConnections, "max-connections", 0, "connections at one time to --listen, and as many to --grpc-listen; one more replaces a connection whose next request has not arrived completely, or that has no proxy on a stream (default both together three quarters of the files that may be open, at most 32768 each)")
	f.IntVar(&l.userWrites, "user-max-writes", 0, "writes of one user in a second, or of one address that proves no user; more are refused with 429 (default no limit)")
	f.StringVar(&l.userBytes, "user-max-bytes", "", "bytes that one user, or one address that proves no user, may send and receive in a second, such as 10Mi; more are refused with 429 (default no limit)")
	f.IntVar(&l.userWatches, "user-max-watches", 0, "watches at one time of one user, or of one address that proves no user; more are refused with 429 (default no limit)")
	f.StringSliceVar(&l.hostNames, "host-name", nil, "name that clients may use for the server, besides localhost and addresses, if --listen is on loopback")
}

func (l *limits) validate() error {
	if _, err := l.memoryLimit(); err != nil {
		return err
	}
	if q, err := resource.ParseQuantity(l.grpcMemory); l.grpcMemory != "" && (err != nil || q.Value() < leastGRPCMemory) {
		return fmt.Errorf("%w: --grpc-memory %q: must be at least 16Mi, as in 128Mi or 1Gi", errUsage, l.grpcMemory)
	}
	if err := l.validateUsers(); err != nil {
		return err
	}
	if l.maxConnections < 0 {
		return fmt.Errorf("%w: --max-connections %d: must be 0 (the default) or more", errUsage, l.maxConnections)
	}
	for _, name := range l.hostNames {
		if _, _, err := net.SplitHostPort(name); err == nil || name == "" {
			return fmt.Errorf("%w: --host-name %q: must be a name without a port", errUsage, name)
		}
	}
	return nil
}

func (l *limits) validateUsers() error {
	if l.userWrites < 0 || l.userWatches < 0 {
		return fmt.Errorf("%w: --user-max-writes and --user-max-watches: must be 0 (no limit) or more", errUsage)
	}
	if q, err := resource.ParseQuantity(l.userBytes); l.userBytes != "" && (err != nil || q.Value() < leastUserBytes || q.Value() > mostUserBytes) {
		return fmt.Errorf("%w: --user-max-bytes %q: must be from 16Ki to 1Ti, as in 10Mi", errUsage, l.userBytes)
	}
	return nil
}

// Bounds of --user-max-bytes. With less, a single small list would exceed it.
const (
	leastUserBytes = 16 << 10
	mostUserBytes  = 1 << 40
)

// users returns the limits of each user.
func (l *limits) users() server.UserLimits {
	limits := server.UserLimits{Writes: l.userWrites, Watches: l.userWatches}
	if l.userBytes != "" {
		q := resource.MustParse(l.userBytes)
		limits.Bytes = int(q.Value())
	}
	return limits
}

// leastMemory is the memory that an empty server needs to run.
const leastMemory = 64 << 20

// memoryLimit returns the flag's value in bytes: 0 if it is not set, -1 for "off".
func (l *limits) memoryLimit() (int64, error) {
	switch l.memory {
	case "":
		return 0, nil
	case "off":
		return -1, nil
	}
	q, err := resource.ParseQuantity(l.memory)
	if err != nil || q.Value() < leastMemory {
		return 0, fmt.Errorf("%w: --memory-limit %q: must be off or at least 64Mi, as in 512Mi or 2Gi", errUsage, l.memory)
	}
	return q.Value(), nil
}

// Bounds of the memory, in bytes, that clients of --grpc-listen may make the process
// hold: the least value of the flag, and the least default. An honest mesh of a few
// thousand proxies needs the latter.
const (
	leastGRPCMemory   = 16 << 20
	defaultGRPCMemory = 64 << 20
)

// streamMemory returns the memory, in bytes, that clients of --grpc-listen may make
// the process hold. It is 0, for the default, if there is no memory limit. It depends
// on the limit that apply has set.
func (l *limits) streamMemory() int64 {
	if l.grpcMemory != "" {
		q := resource.MustParse(l.grpcMemory)
		return q.Value()
	}
	if now := debug.SetMemoryLimit(-1); now < 1<<50 {
		return max(defaultGRPCMemory, now/8)
	}
	return 0
}

// apply sets when the runtime collects garbage and its soft memory limit. The limit
// comes from the flag, else from GOMEMLIMIT, which the runtime reads itself, else from
// the cgroup.
func (l *limits) apply(log *slog.Logger) {
	if os.Getenv("GOGC") == "" {
		keepGarbageInBounds()
	}
	if os.Getenv("GOMAXPROCS") == "" {
		pollSoon()
	}
	limit, _ := l.memoryLimit()
	if limit < 0 {
		debug.SetMemoryLimit(1<<63 - 1)
		return
	}
	if limit == 0 && os.Getenv("GOMEMLIMIT") == "" {
		limit = cgroupMemory("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes") / 10 * 9
	}
	if limit > 0 {
		debug.SetMemoryLimit(limit)
	}
	if now := debug.SetMemoryLimit(-1); now < 1<<50 {
		log.Info("memory is limited", "bytes", now)
	}
}

// fewProcessors is the number of processors up to which long work can occupy them all.
const fewProcessors = 4

// pollSoon raises the number of goroutines that run at once above the number of
// processors if there are few. While all its processors are busy, the runtime polls
// the network only every 10 ms; the kernel switches between threads much sooner.
func pollSoon() {
	if n := runtime.GOMAXPROCS(0); n <= fewProcessors {
		runtime.GOMAXPROCS(2 * n)
	}
}

// bytesPerPart is the memory for one part of the budget. A part of a cluster takes
// about 14 KiB in eleven views, including encoded forms and their sources. The rest is
// for garbage and for what clients make the process hold.
const bytesPerPart = 32 << 10

// budget returns the limit on how far objects may multiply in the available memory.
// It applies where the mesh settings set none.
func budget() mesh.Budget { return budgetWithin(availableMemory()) }

// availableMemory returns the memory for the process in bytes: the limit in effect, or
// nine tenths of the machine's memory if there is no limit.
func availableMemory() int64 { return memoryOr(debug.SetMemoryLimit(-1), "/proc/meminfo") }

func memoryOr(limit int64, meminfo string) int64 {
	if limit < 1<<50 {
		return limit
	}
	if has := machineMemory(meminfo); has > 0 {
		return has / 10 * 9
	}
	return limit
}

func budgetWithin(memory int64) mesh.Budget {
	parts := int(max(4, min(memory/bytesPerPart, int64(mesh.DefaultBudget.Mesh))))
	return mesh.Budget{Object: min(parts/4, mesh.DefaultBudget.Object), Mesh: parts}
}

// bytesPerResult is the memory for one result that the compiler keeps. Half of it is
// the result itself. The rest is for responses to proxies, garbage and everything else.
const bytesPerResult = 1 << 10

// maxResults returns the number of results to keep within a memory limit, 0 for the
// default.
func maxResults(memory int64) int {
	if memory >= 1<<50 {
		return 0
	}
	return int(memory / bytesPerResult)
}

// machineMemory returns MemTotal, in bytes, from a file like /proc/meminfo, or 0 if it
// is missing.
func machineMemory(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "MemTotal: %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	return 0
}

// cgroupMemory returns the limit in the first of the files that has one, or 0. No
// limit reads "max" in cgroup version 2 and a number near 2^63 in version 1.
func cgroupMemory(files ...string) int64 {
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil && n < 1<<50 {
			return n
		}
	}
	return 0
}
