package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pilot-api/pilot-api/security/audit"
	"github.com/pilot-api/pilot-api/security/authz"
	"github.com/pilot-api/pilot-api/server/intake"
	"github.com/pilot-api/pilot-api/server/objects"
)

// recording is what the audit log keeps of a request while it runs.
type recording struct {
	event  *audit.Event
	wanted audit.Decision
	// streams says that the answer is a watch, which has an event when it begins.
	streams bool
	// request and response are the bodies; nil if they are not wanted.
	request, response *bodyCopy
}

type recordingKey struct{}

// withRecording returns a context of a request with its recording.
func withRecording(ctx context.Context, rec *recording) context.Context {
	return context.WithValue(audit.NewContext(ctx, rec.event), recordingKey{}, rec)
}

// recordObjects makes copies of the body of a request and of its answer, if the policy wants
// them in its event and they can have nothing private.
func (s *Server) recordObjects(r *http.Request, row right, asked authz.Attributes) {
	rec, ok := r.Context().Value(recordingKey{}).(*recording)
	if !ok {
		return
	}
	s.describe(r, rec.event)
	rec.wanted, rec.streams = s.opts.Audit.Decide(rec.event), row.streams || isStream(row, asked)
	if !row.objects {
		return
	}
	if rec.wanted.HasRequest() && r.Body != nil && r.Body != http.NoBody {
		rec.request = &bodyCopy{}
		r.Body = &copiedBody{r.Body, rec.request}
	}
	if rec.wanted.HasResponse() && !rec.streams {
		rec.response = &bodyCopy{}
	}
}

// bodyCopy is a copy of a body.
type bodyCopy struct {
	text  []byte // nil if it is too long
	long  bool
	atEnd bool // all of it was read
}

// add adds a part. If the body is too long, the copy ends, and add returns what it had.
func (c *bodyCopy) add(part []byte) (had []byte) {
	if c.long = c.long || len(c.text)+len(part) > audit.MostObject; c.long {
		had, c.text = c.text, nil
		return had
	}
	c.text = append(c.text, part...)
	return nil
}

// copiedBody is the body of a request that is copied as it is read.
type copiedBody struct {
	io.ReadCloser
	to *bodyCopy
}

func (b *copiedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.to.add(p[:n])
	b.to.atEnd = b.to.atEnd || errors.Is(err, io.EOF)
	return n, err
}

// addObjects adds the objects of a request with an answer to its event.
func (rec *recording) addObjects(r *http.Request, code int, answer http.Header) {
	// The server has read the body as a valid object or patch. A body that it refuses may be
	// anything, such as a Secret with a typo in its kind.
	understood := code < 300 || code == http.StatusForbidden || code == http.StatusConflict
	if rec.request != nil && understood && rec.request.atEnd {
		rec.event.RequestObject = rec.object(rec.request, r.Header.Get("Content-Type"))
	}
	if rec.response != nil {
		rec.response.long = rec.response.long || answer.Get("Content-Encoding") != "" // Only long ones are.
		rec.event.ResponseObject = rec.object(rec.response, answer.Get("Content-Type"))
	}
}

// object returns a body for an event; nil if there is none, or none that is an object.
func (rec *recording) object(body *bodyCopy, media string) json.RawMessage {
	if body.long {
		rec.event.SetTruncated()
		return nil
	}
	text, err := jsonOf(body.text, media)
	if err != nil || len(text) == 0 {
		return nil
	}
	out, err := audit.Object(text, rec.wanted.OmitManagedFields)
	if errors.Is(err, audit.ErrTooLong) {
		rec.event.SetTruncated()
	}
	if err != nil {
		return nil
	}
	return out
}

// jsonOf returns the JSON of a body.
func jsonOf(text []byte, media string) ([]byte, error) {
	switch {
	case len(text) == 0 || json.Valid(text):
		return text, nil
	case strings.HasPrefix(media, runtime.ContentTypeProtobuf):
		if out, err := objects.FromProtobuf(text); err == nil {
			return out, nil
		}
		review, kind, err := reviewCodec().Decode(text, nil, nil)
		if err != nil {
			return nil, err
		}
		review.GetObjectKind().SetGroupVersionKind(*kind)
		return json.Marshal(review)
	case strings.Contains(media, "yaml"):
		return intake.JSONOfYAML(text)
	}
	return nil, errors.New("no object")
}
