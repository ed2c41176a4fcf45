package client

import (
	"context"
	"time"
)

// Paused makes a client call f instead of waiting.
func (c *Client) Paused(f func(context.Context, time.Duration) bool) { c.pause = f }

// Bounded makes a client accept answers that take so many bytes of memory.
func (c *Client) Bounded(weight int) { c.maxWeight = weight }

// MostPause is the maximum pause between two tries.
const MostPause = mostPause
