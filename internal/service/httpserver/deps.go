package httpserver

import (
	"context"
	"time"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/voices"
)

// accountStore identifies the sender of a request and its permissions;
// *accounts.Store satisfies it.
type accountStore interface {
	Authenticate(ctx context.Context, key string) (accounts.Key, error)
	Permit(ctx context.Context, account, key string) error
	Login(ctx context.Context, username, password string) (accounts.User, error)
	PasswordSet(ctx context.Context, user string) (time.Time, error)
	Find(ctx context.Context, nameOrID string) (accounts.Account, error)
	Users(ctx context.Context, account string) ([]accounts.User, error)
	Keys(ctx context.Context, account string) ([]accounts.Key, error)
	Audit(ctx context.Context, e accounts.AuditEntry, work func() error) error
	CreateLimitedKey(ctx context.Context, account string, o accounts.KeyOptions) (key string, k accounts.Key, err error)
	RevokeKeyOf(ctx context.Context, account, id string) error
	AddVoice(ctx context.Context, account string, v voices.Voice) (accounts.Voice, error)
	Voices(ctx context.Context, account string) ([]accounts.Voice, error)
	MergeVoice(ctx context.Context, account, id string, v voices.Voice) (accounts.Voice, error)
	DeleteVoice(ctx context.Context, account, id string) error
}

// moneyStore provides the accounts and prices that the endpoints show;
// *billing.Store satisfies it.
type moneyStore interface {
	View(ctx context.Context, account string) (billing.Account, error)
	Prices(ctx context.Context) (billing.Prices, error)
	Transactions(ctx context.Context, account string, p billing.Page) ([]billing.Transaction, int, error)
}

// limiter takes one token from an account's bucket, which holds l.Burst tokens
// and is refilled with l.TPS tokens per second. It returns 0 if the request may
// pass; otherwise it takes no token and returns the time until one is
// available. *accounts.Buckets implements it in memory, *accounts.Store in the
// database.
type limiter interface {
	TakeToken(ctx context.Context, account string, l billing.Limits) (wait time.Duration, err error)
}
