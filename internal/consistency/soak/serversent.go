package main

import (
	"bufio"
	"bytes"
	"net/http"
	"strconv"

	"github.com/pilot-api/pilot-api/internal/consistency"
)

// asBrowser turns a watch into one of server-sent events that resumes from the last id,
// whatever start its URL names.
func asBrowser(req *http.Request, last int64) {
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Last-Event-ID", strconv.FormatInt(last, 10))
}

// readEvents reads server-sent events. An id takes effect at the end of its event and,
// like a bookmark, says that everything up to it was sent.
func (w *watcher) readEvents(lines *bufio.Reader) error {
	var id int64
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return err
		}
		field, value, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(": "))
		switch string(field) {
		case "data":
			if err := w.line(value); err != nil {
				return err
			}
		case "id":
			id, _ = strconv.ParseInt(string(value), 10, 64)
		case "":
			if id != 0 {
				w.told(consistency.Frame{Type: consistency.Bookmark, Revision: id})
			}
			id = 0
			w.dawdle()
		}
	}
}
