package client

import "context"

// Sockets are the addresses at which a server answers proxies of its own user on its
// own machine. They name files of that machine and mean nothing on another one.
type Sockets struct {
	// Streams is the HOST:PORT of the server's streams over TCP, "" for none.
	Streams string `json:"streams"`
	// GRPC is the socket file for streams, HTTP the socket file for everything else; ""
	// for none.
	GRPC string `json:"grpc"`
	HTTP string `json:"http"`
}

// Sockets returns the sockets of the server.
func (c *Client) Sockets(ctx context.Context) (Sockets, error) {
	var told *Sockets // A server without sockets answers {}.
	err := c.ask(ctx, "/v3/discovery:sockets", nil, &told, func() error { return member("sockets", told != nil) })
	if err != nil {
		return Sockets{}, err
	}
	return *told, nil
}
