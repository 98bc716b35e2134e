package webhook

import "context"

// Post delivers once and does not record the outcome.
func (n *Notifier) Post(ctx context.Context, d *Delivery) error {
	ctx, cancel := context.WithTimeout(ctx, n.config.Timeout)
	defer cancel()
	return n.post(ctx, d)
}
