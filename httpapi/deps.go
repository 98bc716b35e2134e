package httpapi

import (
	"context"
	"io"
	"time"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/accounts"
	"github.com/otograph/otograph/internal/blob"
	"github.com/otograph/otograph/tasks"
)

// Tasks is the life of tasks, as the endpoints need it; *tasks.Service
// satisfies it.
type Tasks interface {
	NewAudio(ctx context.Context, filename string) (*blob.Writer, error)
	DropAudio(ctx context.Context, key string)
	Blobs() *blob.Store
	Create(ctx context.Context, r tasks.Request, i tasks.Idempotency) (t tasks.Task, replayed bool, err error)
	CreateBatch(ctx context.Context, rs []tasks.Request, i tasks.Idempotency) (items []tasks.Item, replayed bool, err error)
	Get(ctx context.Context, account, id string) (tasks.Task, error)
	List(ctx context.Context, account string, f tasks.Filter) ([]tasks.Task, int, error)
	Result(ctx context.Context, account, id string) (*tasks.Result, error)
	Waveform(ctx context.Context, account, id string) (io.ReadCloser, error)
	Delete(ctx context.Context, account, id string) error
	Wait(ctx context.Context, account, id string) (tasks.Task, error)
}

// Accounts says who a request comes from; *accounts.Store satisfies it.
type Accounts interface {
	Authenticate(ctx context.Context, key string) (account string, err error)
	Login(ctx context.Context, username, password string) (accounts.User, error)
	PasswordSet(ctx context.Context, user string) (time.Time, error)
}

// Money is what the endpoints show of accounts and prices; *billing.Store
// satisfies it.
type Money interface {
	View(ctx context.Context, account string) (billing.Account, error)
	Limits(ctx context.Context, account string) (billing.Limits, error)
	Prices(ctx context.Context) (billing.Prices, error)
	Transactions(ctx context.Context, account string, page, size int) ([]billing.Transaction, int, error)
}

// Limiter takes one token from an account's bucket, which holds l.Burst tokens
// and is refilled with l.TPS tokens per second. It returns 0 when the request
// may pass, otherwise how long until it might; no token is taken then.
// *Buckets satisfies it in memory, *billing.Store in the database.
type Limiter interface {
	TakeToken(ctx context.Context, account string, l billing.Limits) (wait time.Duration, err error)
}
