package webhook

import "context"

// Post delivers once and records nothing.
func (n *Notifier) Post(ctx context.Context, d *Delivery) error { return n.post(ctx, d) }
