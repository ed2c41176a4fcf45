package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// memberCommand makes a program that calls RunMember an etcd. So tests can kill an
// etcd that nobody has to install.
const memberCommand = "run-etcd-member"

// RunMember must be the first call of main or TestMain. It returns at once unless the
// program was started as a member of etcd.
func RunMember() {
	if len(os.Args) != 8 || os.Args[1] != memberCommand {
		return
	}
	if err := runMember(os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func runMember(args []string) error {
	config := embed.NewConfig()
	config.Name, config.Dir = args[0], args[1]
	config.LogLevel = "error"
	config.TickMs, config.ElectionMs = 50, 500
	config.UnsafeNoFsync = true // A killed process loses nothing by it.
	var err error
	if config.ListenClientUrls, err = urls(args[2]); err != nil {
		return err
	}
	config.AdvertiseClientUrls = config.ListenClientUrls
	if config.ListenPeerUrls, err = urls(args[3]); err != nil {
		return err
	}
	if config.AdvertisePeerUrls, err = urls(args[4]); err != nil {
		return err
	}
	config.InitialCluster = args[5]
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	defer server.Close()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	select {
	case <-ctx.Done():
		return nil
	case err := <-server.Err():
		return err
	}
}

func urls(text string) ([]url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	return []url.URL{*u}, nil
}

// Etcd is a cluster of members, each a process. They reach each other over links.
type Etcd struct {
	Members []*Member
}

// Member is one member of an Etcd.
type Member struct {
	*Process
	Client string // The address for clients, host:port.

	id    string // The id that it sends to its peers.
	peers *Link  // The link by which others reach it.
}

// URL returns the URL for clients.
func (m *Member) URL() string { return "http://" + m.Client }

// StartEtcd starts a cluster of n members and waits until it works.
func StartEtcd(ctx context.Context, dir string, n int) (*Etcd, error) {
	e := &Etcd{}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	listen := make([]string, n)
	var cluster []string
	for i := range n {
		m := &Member{}
		if m.Client, err = FreeAddress(); err != nil {
			return nil, err
		}
		if listen[i], err = FreeAddress(); err != nil {
			return nil, err
		}
		if m.peers, err = NewLink(listen[i], sender); err != nil {
			return nil, err
		}
		e.Members = append(e.Members, m)
		cluster = append(cluster, fmt.Sprintf("m%d=http://%s", i, m.peers.Addr()))
	}
	for i, m := range e.Members {
		name := fmt.Sprintf("m%d", i)
		m.Process = NewProcess(dir, "etcd-"+name, self, memberCommand, name, filepath.Join(dir, "data-"+name),
			m.URL(), "http://"+listen[i], "http://"+m.peers.Addr(), strings.Join(cluster, ","))
		if err := m.Start(); err != nil {
			return e, err
		}
	}
	return e, e.identify(ctx)
}

// sender returns the member that sent a request, from the header of a peer's request.
func sender(first []byte) string {
	_, rest, _ := bytes.Cut(first, []byte("\r\nX-Server-From: "))
	id, _, _ := bytes.Cut(rest, []byte("\r\n"))
	return string(id)
}

// Dial returns a client of all members, without links in between.
func (e *Etcd) Dial() (*clientv3.Client, error) {
	var endpoints []string
	for _, m := range e.Members {
		endpoints = append(endpoints, m.Client)
	}
	return clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
}

func (e *Etcd) identify(ctx context.Context) error {
	client, err := e.Dial()
	if err != nil {
		return err
	}
	defer client.Close()
	return Until(ctx, "etcd", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		answer, err := client.MemberList(ctx)
		if err != nil {
			return err
		}
		for _, m := range answer.Members {
			var i int
			if _, err := fmt.Sscanf(m.Name, "m%d", &i); err != nil {
				return errors.New("a member has not started")
			}
			e.Members[i].id = fmt.Sprintf("%x", m.ID)
		}
		_, err = client.Get(ctx, "k")
		return err
	})
}

// Leader returns the current leader according to all members that answer.
func (e *Etcd) Leader(ctx context.Context) (*Member, error) {
	client, err := e.Dial()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var leader *Member
	err = Until(ctx, "a leader of etcd", func(ctx context.Context) error {
		leader, err = e.leader(ctx, client)
		return err
	})
	return leader, err
}

func (e *Etcd) leader(ctx context.Context, client *clientv3.Client) (*Member, error) {
	ids := map[string]bool{}
	for _, m := range e.Members {
		if m.over() {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		status, err := client.Status(ctx, m.Client)
		cancel()
		if err != nil {
			return nil, err
		}
		ids[fmt.Sprintf("%x", status.Leader)] = true
	}
	for _, m := range e.Members {
		if len(ids) == 1 && ids[m.id] && !m.over() {
			return m, nil
		}
	}
	return nil, fmt.Errorf("members say that those lead: %v", ids)
}

// Cut separates one member from the others in both directions. The mode Open heals it.
func (e *Etcd) Cut(i int, m Mode) {
	for j, other := range e.Members {
		if j == i {
			other.peers.Set(m)
		} else {
			other.peers.SetFor(e.Members[i].id, m)
		}
	}
}

// Close ends all members.
func (e *Etcd) Close() {
	for _, m := range e.Members {
		if m.Process != nil {
			m.Kill()
		}
		m.peers.Close()
	}
}
