package proxyauth

import (
	"fmt"
	"maps"
	"sync"
	"time"
)

const (
	// DefaultMaxNodes is the default of Options.MaxNodes.
	DefaultMaxNodes = 1000
	// nodeAge is how long a proxy counts after its last poll. An Envoy polls at least once a
	// minute. A proxy with a stream counts until the stream ends.
	nodeAge = 5 * time.Minute
	// streamsOfNode is how many streams an account may have for each of its nodes: an Envoy
	// that reconnects has two for a moment.
	streamsOfNode = 2
	// secretStreamsOfNode is the same for streams of secrets. An Envoy has one for each secret
	// that its bootstrap takes from a source of its own.
	secretStreamsOfNode = 16
)

// crowd counts the proxies and the streams of each account. Without a bound, one proof would
// suffice to make the server compile a configuration for any number of invented nodes. It is
// safe for concurrent use.
type crowd struct {
	most int // nodes of one account

	mu       sync.Mutex
	accounts map[string]*nodes
}

// nodes are those of one account.
type nodes struct {
	seen    map[string]time.Time // by id
	streams int
	secrets int // streams of secrets
}

func newCrowd(most int) *crowd { return &crowd{most: most, accounts: map[string]*nodes{}} }

// see records that a node of an account is here. It returns ErrForbidden if the account has
// the most nodes already.
func (c *crowd) see(account, node string) error {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.of(account)
	if _, known := of.seen[node]; !known && len(of.seen) >= c.most {
		maps.DeleteFunc(of.seen, func(_ string, last time.Time) bool { return now.Sub(last) > nodeAge })
		if len(of.seen) >= c.most {
			return fmt.Errorf("%w: %s: %s has %d proxies already, the most that one account may have (--proxy-max-nodes)", ErrForbidden, node, account, c.most)
		}
	}
	of.seen[node] = now
	return nil
}

// open counts a stream of a node until closed is called. Then the node makes room for
// another one at once, such as its successor in a new deployment.
func (c *crowd) open(account, node string) (closed func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.of(account)
	if of.streams >= streamsOfNode*c.most {
		return nil, fmt.Errorf("%w: %s has %d streams already, the most that one account may have (twice --proxy-max-nodes)", ErrForbidden, account, of.streams)
	}
	of.streams++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		of.streams--
		delete(of.seen, node) // A second stream of the node is seen again in some seconds.
	}, nil
}

// openSecrets counts a stream of secrets of a node until closed is called.
func (c *crowd) openSecrets(account string) (closed func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.of(account)
	if of.secrets >= secretStreamsOfNode*c.most {
		return nil, fmt.Errorf("%w: %s has %d streams of secrets already, the most that one account may have (%d times --proxy-max-nodes)", ErrForbidden, account, of.secrets, secretStreamsOfNode)
	}
	of.secrets++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		of.secrets--
	}, nil
}

func (c *crowd) of(account string) *nodes {
	of := c.accounts[account]
	if of == nil {
		of = &nodes{seen: map[string]time.Time{}}
		c.accounts[account] = of
	}
	return of
}
