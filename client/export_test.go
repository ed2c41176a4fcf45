package client

import (
	"context"
	"time"
)

// Paused makes a client wait by f instead of by the clock.
func (c *Client) Paused(f func(context.Context, time.Duration) bool) { c.pause = f }

// MostPause bounds what is waited between two tries.
const MostPause = mostPause
