package ads

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/pilot-api/pilot-api/server/admission"
)

const (
	// decodeFactor is the memory that decoding a request takes, as a multiple of its
	// wire length: a list of nulls in node.metadata takes 27 times its length, names
	// of one letter take 8 times theirs.
	decodeFactor = 32
	// smallRequest divides requests into two lines, so that the first requests of an
	// Envoy never wait for large ones.
	smallRequest = 128 << 10
	// intakeRoom is the memory of a line, in bytes. The largest request fits.
	intakeRoom = maxRequest * decodeFactor
	// intakeTimeout is how long a request may wait for room.
	intakeTimeout = 30 * time.Second
	// requestRate is how many requests a stream may send a second, once it has sent
	// requestBurst. Later ones wait on the wire, where the client's flow control stops
	// it. An Envoy sends one for each answer and for each change of its subscriptions.
	requestRate  = 200
	requestBurst = 2000
	// messageHead is the length of gRPC's prefix of a message.
	messageHead = 5
)

// intake bounds the memory for decoding requests.
type intake struct {
	lines   *admission.Lines
	refused prometheus.Counter
}

func newIntake(opts Options) *intake {
	return &intake{
		lines: admission.NewLines(smallRequest*decodeFactor, intakeRoom),
		refused: promauto.With(opts.Registry).NewCounter(prometheus.CounterOpts{
			Name: "pilot_stream_requests_refused_total",
			Help: "Requests over streams that were refused because there was no room to decode them, or because they ask for more names than a stream may have.",
		}),
	}
}

// receive returns the client's next message, decoded when there is room for that. It
// takes no more of a client than requestRate and requestBurst. The message counts as
// received until the caller has processed it and calls held.take with its size.
func (c *conversation) receive(first bool) (message, error) {
	if err := c.pace.Wait(c.stream.Context()); err != nil {
		return message{}, err
	}
	var w wire
	if err := c.stream.RecvMsg(&w); err != nil {
		return message{}, err
	}
	c.held.begin()
	length := int64(w.data.Len())
	defer w.data.Free()
	in := c.server.intake
	ctx, cancel := context.WithTimeout(c.stream.Context(), intakeTimeout)
	defer cancel()
	release, err := in.lines.Enter(ctx, length*decodeFactor)
	if errors.Is(err, context.DeadlineExceeded) {
		in.refused.Inc()
		return message{}, status.Error(codes.ResourceExhausted, "the server is at the limit of what it decodes at a time: ask again")
	} else if err != nil {
		return message{}, err
	}
	defer release()
	m, err := c.decodeMessage(w, first)
	m.size = length + messageHead
	return m, err
}

func (c *conversation) decodeMessage(w wire, first bool) (message, error) {
	text := w.data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer text.Free()
	n, request, err := c.decode(text.ReadOnlyData())
	if err != nil {
		return message{}, status.Errorf(codes.Internal, "the request cannot be decoded: %v", err)
	}
	if c.onlySecrets {
		if err := forSecrets(&request); err != nil {
			return message{}, err
		}
	}
	m := message{request: request}
	if first {
		m.who = node{n}.read(c.stream.Context())
	}
	// Until discovery has processed the request, it counts in addition to what the
	// stream holds.
	c.held.measure(func() int64 { return c.holds() + sizeOf(request) })
	return m, nil
}

func (c *conversation) holds() int64 {
	if c.d == nil {
		return 0
	}
	return c.d.Held()
}
