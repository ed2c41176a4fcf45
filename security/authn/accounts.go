package authn

import (
	"sync"
	"sync/atomic"
)

// Accounts are the service accounts that exist. The zero Accounts has none. It is safe for
// concurrent use.
type Accounts struct {
	mu      sync.RWMutex
	uids    map[account]string
	changes atomic.Uint64
}

type account struct{ namespace, name string }

// Put adds an account, or replaces it by another one with the same name.
func (a *Accounts) Put(namespace, name, uid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.uids == nil {
		a.uids = map[account]string{}
	}
	if a.uids[account{namespace, name}] != uid {
		a.uids[account{namespace, name}] = uid
		a.changes.Add(1)
	}
}

// Delete removes an account.
func (a *Accounts) Delete(namespace, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.uids, account{namespace, name})
	a.changes.Add(1)
}

// has reports whether an account exists with a uid.
func (a *Accounts) has(of account, uid string) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return uid != "" && a.uids[of] == uid
}

// Exists reports whether there is an account with a name.
func (a *Accounts) Exists(namespace, name string) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	_, is := a.uids[account{namespace, name}]
	return is
}
