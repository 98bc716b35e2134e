package live

import "github.com/otograph/otograph/spec"

// Event is a report of a session.
type Event = spec.LiveEvent
