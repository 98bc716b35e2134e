package httpserver

import (
	"context"
	"time"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/voices"
)

// taskStore creates, shows and ends the tasks of an account; *tasks.Owners
// satisfies it.
type taskStore interface {
	NewAudio(ctx context.Context, filename string) (*blob.Writer, error)
	DropAudio(ctx context.Context, key string)
	NewReference(ctx context.Context, task string, n int) (*blob.Writer, error)
	DropReferences(ctx context.Context, task string, n int)
	Admit(ctx context.Context, account, idempotencyKey string) error
	Measure(ctx context.Context, account, idempotencyKey, key, filename string) (seconds float64, err error)
	Create(ctx context.Context, r tasks.Request, i tasks.Idempotency) (t tasks.Task, replayed bool, err error)
	CreateBatch(ctx context.Context, rs []tasks.Request, i tasks.Idempotency) (items []tasks.Item, replayed bool, err error)
	Available(ctx context.Context) ([]spec.Available, error)
	Get(ctx context.Context, account, id string) (tasks.Task, error)
	List(ctx context.Context, account string, f tasks.Filter) ([]tasks.Task, int, error)
	Result(ctx context.Context, account, id string) (*tasks.Result, error)
	Waveform(ctx context.Context, account, id string) ([]byte, error)
	Audio(ctx context.Context, account, id string) (*tasks.Audio, error)
	Annotations(ctx context.Context, account, id string) (tasks.Annotations, error)
	Annotate(ctx context.Context, account, id string, patch tasks.AnnotationPatch, match *int64) (tasks.Annotations, error)
	Delete(ctx context.Context, account, id string) error
	Withdraw(ctx context.Context, account, id string) (tasks.Task, error)
	SpeakerVoice(ctx context.Context, account, task, speaker string) (voices.Voice, error)
	Wait(ctx context.Context, account, id string) (tasks.Task, error)
	Follow(ctx context.Context, account, id string) (<-chan tasks.Snapshot, error)
}

// accountStore identifies the sender of a request and its permissions;
// *accounts.Store satisfies it.
type accountStore interface {
	Authenticate(ctx context.Context, key string) (accounts.Key, error)
	Login(ctx context.Context, username, password string) (accounts.User, error)
	PasswordSet(ctx context.Context, user string) (time.Time, error)
	Limits(ctx context.Context, account string) (billing.Limits, error)
	Find(ctx context.Context, nameOrID string) (accounts.Account, error)
	Users(ctx context.Context, account string) ([]accounts.User, error)
	Keys(ctx context.Context, account string) ([]accounts.Key, error)
	CreateLimitedKey(ctx context.Context, account string, o accounts.KeyOptions) (key string, k accounts.Key, err error)
	RevokeKeyOf(ctx context.Context, account, id string) error
	AddVoice(ctx context.Context, account string, v voices.Voice) (accounts.Voice, error)
	Voices(ctx context.Context, account string) ([]accounts.Voice, error)
	DeleteVoice(ctx context.Context, account, id string) error
}

// moneyStore provides the accounts and prices that the endpoints show;
// *billing.Store satisfies it.
type moneyStore interface {
	View(ctx context.Context, account string) (billing.Account, error)
	Prices(ctx context.Context) (billing.Prices, error)
	Transactions(ctx context.Context, account string, page, size int) ([]billing.Transaction, int, error)
}

// limiter takes one token from an account's bucket, which holds l.Burst tokens
// and is refilled with l.TPS tokens per second. It returns 0 if the request may
// pass; otherwise it takes no token and returns the time until one is
// available. *accounts.Buckets implements it in memory, *accounts.Store in the
// database.
type limiter interface {
	TakeToken(ctx context.Context, account string, l billing.Limits) (wait time.Duration, err error)
}
