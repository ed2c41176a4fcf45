package rest

import (
	"encoding/json"
	"net/http"
)

// Sockets are the addresses at which the server answers proxies of its own user on this
// machine. It sends private keys over these sockets.
type Sockets struct {
	// Streams is the HOST:PORT of streams over TCP, or "" for none. A caller compares it
	// with its own address to find out whether the socket belongs to the same server.
	Streams string `json:"streams,omitempty"`
	// GRPC is the socket file for streams, HTTP the one for everything else; "" means
	// none.
	GRPC string `json:"grpc,omitempty"`
	HTTP string `json:"http,omitempty"`
}

func (s Sockets) show(w http.ResponseWriter, _ *http.Request) {
	text, err := json.Marshal(s)
	if err != nil {
		text = []byte("{}") // Strings always encode.
	}
	writeBody(w, append(text, '\n'))
}
