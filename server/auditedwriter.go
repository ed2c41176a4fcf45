package server

import (
	"encoding/json"
	"errors"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/security/audit"
	"github.com/pilot-api/pilot-api/server/answer"
	"github.com/pilot-api/pilot-api/server/wire"
)

// auditedWriter writes the events of a request when its answer begins and ends. If the log is
// strict, it holds back the answer until its event is on disk.
type auditedWriter struct {
	http.ResponseWriter
	strict bool
	rec    *recording
	write  func(stage string) error // writes the event, with code

	code     int // of the answer; 0 if it is not known yet
	begun    bool
	complete bool // the last event was written
	refused  bool // the event could not be written: the answer is another one
}

// Unwrap is for http.ResponseController, which finds Flush here, and deadlines below.
func (w *auditedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// FlushError is for http.ResponseController. A flush begins the answer, as a write does.
func (w *auditedWriter) FlushError() error {
	if w.begin(); w.refused {
		return errNotWrittenDown
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// errNotWrittenDown ends an answer whose event could not be written.
var errNotWrittenDown = errors.New("the event of the request cannot be written to the audit log")

// holds reports whether the answer waits until all of it is known, because its event has it.
func (w *auditedWriter) holds() bool { return w.strict && w.rec.response != nil }

// WriteHeader implements http.ResponseWriter.
func (w *auditedWriter) WriteHeader(code int) {
	switch {
	case w.begun:
	case code < 200:
		w.ResponseWriter.WriteHeader(code)
	default:
		if w.code = code; !w.holds() {
			w.begin()
		} else if len(w.rec.response.text) > 0 { // An answer that failed is replaced.
			w.rec.response = &bodyCopy{}
		}
	}
}

// Write implements http.ResponseWriter.
func (w *auditedWriter) Write(text []byte) (int, error) {
	if w.code == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if to := w.rec.response; to != nil {
		had := to.add(text)
		switch {
		case w.begun:
		case !to.long:
			return len(text), nil
		default:
			w.begin()
			if err := w.send(had); err != nil {
				return 0, err
			}
		}
	}
	return len(text), w.send(text)
}

// send sends a part of the answer, unless the answer is another one.
func (w *auditedWriter) send(text []byte) error {
	if w.refused || len(text) == 0 {
		return nil
	}
	_, err := w.ResponseWriter.Write(text)
	return err
}

// begin begins the answer if nothing else did.
func (w *auditedWriter) begin() {
	if w.begun {
		return
	}
	if w.code == 0 {
		w.code = http.StatusOK
	}
	w.begun = true
	var err error
	switch {
	case w.rec.streams && w.code < 300:
		err = w.write(audit.StageStarted)
	case w.strict:
		w.complete, err = true, w.write(audit.StageComplete)
	}
	if err == nil || !w.strict || w.code >= 400 {
		w.ResponseWriter.WriteHeader(w.code)
		return
	}
	w.refused, w.complete = true, true
	clear(w.Header())
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusInsufficientStorage, Reason: "InsufficientStorage",
		Message: "it may have been done: the audit log cannot be written, and the server may acknowledge nothing that is not in it",
	}
	body, _ := json.Marshal(status) // Texts always encode.
	_ = answer.WriteText(w.ResponseWriter, http.StatusInsufficientStorage, wire.JSON, body)
}

// finish sends what is held back.
func (w *auditedWriter) finish() {
	if w.begun {
		return
	}
	w.begin()
	if held := w.rec.response; held != nil {
		_ = w.send(held.text) // A client that is gone is not our failure.
	}
}

// end writes the last event, also of a request whose connection is cut.
func (w *auditedWriter) end() {
	if !w.begun {
		w.code, w.begun = http.StatusInternalServerError, true
	}
	if !w.complete {
		w.complete = true
		_ = w.write(audit.StageComplete) // There is nobody to tell, and the log counts what it loses.
	}
}
