package simulation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"time"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// submission is a customer's knowledge of a requested task.
type submission struct {
	number    int
	account   string
	recording recording
	key       string // idempotency key; "" without one
	id        string // "" until an answer came
	callback  bool
	batch     bool
	refused   bool // no money, so no task
	deleting  bool // the task's deletion was requested
	deleted   bool // … and answered
	final     tasks.Status
}

// customer owns some accounts and uses them until the disturbances end.
type customer struct {
	world    *world
	number   int
	random   *rand.Rand
	accounts []string
}

// tellingFile is the file name of tasks with a callback, because final tasks
// forget the callback's address.
const tellingFile = "telling.wav"

// patience is the time that a customer waits for a response before it asks
// another server; the first server may still process the request.
const patience = 15 * time.Second

// live submits and queries until the quota is used up.
func (c *customer) live(quota int) {
	c.world.asking.Add(1)
	defer c.world.asking.Add(-1)
	for quota > 0 && !c.world.calm.Load() {
		time.Sleep(time.Duration(1 + c.random.Int64N(int64(2*c.world.pause))))
		account := c.accounts[c.random.IntN(len(c.accounts))]
		switch dice := c.random.IntN(20); {
		case dice < 10:
			c.submit(account)
			quota--
		case dice < 12:
			c.remove()
		case dice < 15:
			c.look()
		case dice < 18:
			c.pay(account)
		default:
			c.ask(func(ctx context.Context, s *tasks.Service) error {
				list, total, err := s.List(ctx, account, tasks.Filter{Page: billing.Page{Number: 1, Size: 5}})
				if err == nil && len(list) > total {
					c.world.fail("a page of %d of %d tasks", len(list), total)
				}
				return err
			})
		}
	}
}

// ask sends a request to some server. It returns false without a response: the
// request may have been processed, or will be later.
func (c *customer) ask(request func(ctx context.Context, s *tasks.Service) error) bool {
	p := c.world.server(c.random)
	if p == nil {
		return false
	}
	answered := make(chan bool, 1)
	c.world.asking.Add(1)
	go func() {
		defer c.world.asking.Add(-1)
		defer p.requests.Done()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		slot := <-p.slots
		defer func() { p.slots <- slot }()
		err := request(ctx, slot)
		if err != nil && !tasks.Outage(err) && !errors.Is(err, errKilled) && !errors.Is(err, context.DeadlineExceeded) {
			c.world.fail("customer %d: %v", c.number, err)
		}
		answered <- err == nil
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case ok := <-answered:
		return ok
	case <-timer.C:
		return false
	}
}

// submit requests a task, and repeats the request after a failure if it has a
// key.
func (c *customer) submit(account string) {
	w, r := c.world, c.random
	fates := []string{fateFine, fateFine, fateFine, fateFine, fateFine, fateFine, fateFlaky, fateFlaky, fateBad, fatePoison, fateHopeless, fateGone}
	sub := w.submission(account)
	sub.recording = recording{Task: sub.number, Seconds: float64(1+r.IntN(40_000)) / 100, Fate: fates[r.IntN(len(fates))]}
	sub.callback, sub.batch = r.IntN(3) > 0, r.IntN(4) == 0
	if r.IntN(4) > 0 {
		sub.key = fmt.Sprint("key ", sub.number)
	}
	host := []string{"fine.example", "fine.example", "flaky.example", "slow.example", "down.example"}[r.IntN(5)]
	upload := r.IntN(2) == 0 && sub.recording.Fate != fateGone
	text, err := json.Marshal(sub.recording)
	w.must(err)
	tries := 1
	if sub.key != "" {
		tries = 4
	}
	for range tries {
		ok := c.ask(func(ctx context.Context, s *tasks.Service) error {
			request := tasks.Request{Account: account, Filename: "speech.wav", Options: taskstest.AllOptions(), Batch: sub.batch}
			if sub.callback {
				request.CallbackURL, request.Filename = "https://"+host+"/", tellingFile
			}
			if upload {
				file, err := s.NewAudio(ctx, request.Filename)
				if err != nil {
					return err
				}
				defer file.Abort()
				if _, err := file.Write(text); err != nil {
					return err
				}
				info, err := file.Commit()
				if err != nil {
					return err
				}
				request.Audio, request.Seconds = &info, sub.recording.Seconds
			} else {
				request.URL = "https://source.example/speech.wav?recording=" + url.QueryEscape(string(text))
			}
			idem := tasks.Idempotency{}
			if sub.key != "" {
				idem = tasks.Idempotency{Key: sub.key, BodyHash: "hash"}
			}
			task, _, err := s.Create(ctx, request, idem)
			switch {
			case errors.Is(err, billing.ErrInsufficientBalance), errors.Is(err, billing.ErrConcurrencyLimit):
				w.answered(sub, "", true)
				return nil
			case errors.Is(err, tasks.ErrDeleted) && w.deleting(sub): // a late request, whose repetition came first
				return nil
			case err == nil:
				w.answered(sub, task.ID, false)
			}
			return err
		})
		if ok {
			return
		}
		time.Sleep(time.Second)
	}
}

// deleting reports whether the customer requested the deletion of a task.
func (w *world) deleting(sub *submission) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return sub.deleting
}

// remove requests the deletion of one of the customer's tasks.
func (c *customer) remove() {
	sub := c.world.known(c)
	if sub == nil {
		return
	}
	c.world.mu.Lock()
	sub.deleting = true
	c.world.mu.Unlock()
	c.ask(func(ctx context.Context, s *tasks.Service) error {
		err := s.Delete(ctx, sub.account, sub.id)
		c.world.mu.Lock()
		defer c.world.mu.Unlock()
		switch {
		case errors.Is(err, tasks.ErrProcessing):
			return nil
		case err == nil, errors.Is(err, tasks.ErrNotFound): // an earlier request deleted it
			sub.deleted = true
			return nil
		}
		return err
	})
}

// look reads a task and, if it is done, its result.
func (c *customer) look() {
	w, sub := c.world, c.world.known(c)
	if sub == nil {
		return
	}
	c.ask(func(ctx context.Context, s *tasks.Service) error {
		task, err := s.Get(ctx, sub.account, sub.id)
		w.mu.Lock()
		deleting, before := sub.deleting, sub.final
		if w.retried[sub.id] {
			before = ""
		}
		if err == nil && task.Final() {
			sub.final = task.Status
		}
		w.mu.Unlock()
		if errors.Is(err, tasks.ErrNotFound) && deleting {
			return nil
		}
		if err != nil {
			return err
		}
		if before != "" && task.Status != before {
			w.fail("task %d was %s and is %s", sub.number, before, task.Status)
		}
		if task.Status != tasks.StatusDone {
			return nil
		}
		result, err := s.Result(ctx, sub.account, sub.id)
		if err != nil {
			w.mu.Lock()
			deleting = sub.deleting // since then, perhaps
			w.mu.Unlock()
			if deleting && (errors.Is(err, tasks.ErrNotFound) || errors.Is(err, tasks.ErrNotDone)) {
				return nil
			}
			return err
		}
		defer result.Close()
		whole, err := result.Whole()
		if err != nil {
			return err
		}
		var got recording
		if err := json.Unmarshal([]byte(whole.Segments[0].Text), &got); err != nil || got != sub.recording {
			w.fail("the result of task %d is that of %+v: %v", sub.number, got, err)
		}
		return nil
	})
}

// pay moves money.
func (c *customer) pay(account string) {
	amount := billing.Money(1 + c.random.IntN(20_000))
	kind := c.random.IntN(5)
	c.ask(func(ctx context.Context, s *tasks.Service) error {
		var err error
		switch kind {
		case 0, 1:
			if _, err = s.Billing().Recharge(ctx, account, amount, ""); err == nil {
				c.world.recharged(account, amount)
			}
		case 2:
			if _, err = s.Billing().Refund(ctx, account, amount, ""); err == nil {
				c.world.recharged(account, -amount)
			}
		case 3:
			_, err = s.Billing().AddPack(ctx, account, billing.Pack{Value: amount, ExpiresAt: s.Config.Clock().Add(time.Hour)})
		case 4:
			_, err = s.Billing().SetPrices(ctx, billing.Prices{Standard: amount, Optimized: amount / 2, BatchDiscount: 5000}, time.Time{})
		}
		return err
	})
}
