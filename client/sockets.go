package client

import "context"

// Sockets are where a server answers proxies that its own user runs on its machine.
// They are files there: what they say means nothing on another machine.
type Sockets struct {
	// Streams is the HOST:PORT of the server's streams over TCP, "" for none.
	Streams string `json:"streams"`
	// GRPC is the file of the socket for streams, HTTP of that for everything else; ""
	// for none.
	GRPC string `json:"grpc"`
	HTTP string `json:"http"`
}

// Sockets asks for those of the server.
func (c *Client) Sockets(ctx context.Context) (Sockets, error) {
	var told Sockets
	err := c.ask(ctx, "/v3/discovery:sockets", nil, &told)
	return told, err
}
