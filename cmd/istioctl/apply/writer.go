package apply

import (
	"context"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/wait"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Texts reads objects, and writes them one by one, as their authors wrote them.
type Texts interface {
	Get(ctx context.Context, key schema.Key, opts store.ReadOptions) (*schema.Object, error)
	CreateText(ctx context.Context, t client.Text) (*schema.Object, error)
	UpdateText(ctx context.Context, t client.Text) (*schema.Object, error)
}

// Transactor reads objects, and writes many of them in one transaction.
type Transactor interface {
	cli.Pager
	Get(ctx context.Context, key schema.Key, opts store.ReadOptions) (*schema.Object, error)
	Txn(ctx context.Context, ops []store.Op) ([]*schema.Object, error)
}

// Writer writes objects one by one or in one transaction, and waits for their effect.
type Writer interface {
	Texts
	Judges
	wait.Statuses
	Delete(ctx context.Context, key schema.Key, pre store.Preconditions) (*schema.Object, error)
}

// connectTo returns the connection of a session as its writer.
func connectTo(s *cli.Session) func(client.Options) (Writer, error) {
	return func(as client.Options) (Writer, error) { return s.ConnectWith(as) }
}
