package client

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Limits of the pause between two tries.
const (
	mostPause         = 30 * time.Second
	leastConflict     = 5 * time.Millisecond
	mostConflictPause = time.Second
)

// send calls sendOnce as often as Options.Retries allow.
func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	for try := 0; ; try++ {
		resp, again, err := c.sendOnce(ctx, r)
		if err == nil || again == 0 || try >= c.opts.Retries || !c.pause(ctx, retryPause(again, try)) {
			return resp, err
		}
	}
}

// retryAfter returns the Retry-After of an answer, 0 if the request must not be
// repeated.
func retryAfter(resp *http.Response) time.Duration {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || seconds <= 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// retryPause returns at least the time that the server asks for, up to the bound. It
// adds a random time of up to again, doubled with each try.
func retryPause(again time.Duration, try int) time.Duration {
	again = min(again, mostPause)
	return min(again+rand.N(again<<min(try, 5)), mostPause)
}

// conflictPause returns a random pause that separates writers of the same object. The
// first few are short.
func conflictPause(try int) time.Duration {
	return rand.N(min(leastConflict<<min(try, 10), mostConflictPause))
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
