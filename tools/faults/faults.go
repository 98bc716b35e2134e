package main

// faults lists the faults that the tests must find.
var faults = []fault{
	{name: "a price is rounded down", file: "billing/money.go", old: "uint64(denominator)/2, 0)", new: "0, 0)", by: "./billing"},
	{name: "a charge is lost", file: "billing/ledger.go", old: "Amount: -rest, Description", new: "Amount: 0 * rest, Description", by: "./billing"},
	{name: "begun minutes are free", file: "billing/prices.go", old: "math.Ceil(seconds/60)", new: "math.Floor(seconds/60)", by: "./billing"},
	{name: "a released hold stays", file: "billing/hold.go", old: `"DELETE FROM holds WHERE task_id = $1", task)`, new: `"DELETE FROM holds WHERE task_id = $1 AND amount = 0", task)`, by: "./billing"},
	{name: "the fence of attempts is skipped", file: "internal/service/tasks/claim.go", old: ` || r.attempt != c.Held.Attempt)`, new: `)`, by: "./internal/service/tasks", run: "EarlierAttempt"},
	{name: "a repeated key takes another body", file: "internal/service/tasks/create.go", old: `err == nil && hash != idem.BodyHash {`, new: `err == nil && hash == "" {`, by: "./internal/service/tasks", run: "EqualSubmissions|Idempotency"},
	{name: "token buckets have no lock", file: "internal/service/accounts/buckets.go", old: "\tb.mu.Lock()\n\tdefer b.mu.Unlock()\n", new: "", by: "./internal/service/accounts", run: "ConcurrentRequests", race: true},
	{name: "failed logins of an address are not counted", file: "internal/service/accounts/throttle.go", old: "\tt.addresses.add(address, now)\n", new: "", by: "./internal/service/accounts"},
	{name: "a callback's signature covers no time", file: "internal/service/webhook/outbox.go", old: `fmt.Fprintf(mac, "%s.%s.", id, stamp)`, new: `fmt.Fprintf(mac, "%s.", id)`, by: "./internal/service/webhook", run: "Signatures"},
	{name: "a late delivery counts", file: "internal/service/webhook/outbox.go", old: `WHERE id = $1 AND claim = $2 AND phase = 'running'"+o.config.DB.ForUpdate()`, new: `WHERE id = $1 AND claim >= $2 AND phase = 'running'"+o.config.DB.ForUpdate()`, by: "./internal/service/webhook", run: "Delivery"},
	{name: "the metadata service is public", file: "internal/system/safehttp/notpublic.txt", old: "169.254.0.0/16     link-local and metadata services\n", new: "", by: "./internal/system/safehttp"},
	{name: "an archive writes beside its folder", file: "internal/system/fetch/unpack.go", old: "!filepath.IsLocal(filepath.FromSlash(name)) || ", new: "", by: "./internal/system/fetch"},
	{name: "channels are swapped", file: "audio/channels.go", old: "for at := i; at < len(samples)", new: "for at := n - 1 - i; at < len(samples)", by: "./audio", run: "Channels"},
	{name: "resampled sound drifts", file: "audio/resample.go", old: "\t\t\tphase -= r.up\n\t\t\tpos++\n", new: "\t\t\tphase -= r.up\n\t\t\tpos += 2\n", by: "./audio", run: "Resampler"},
	{name: "a logarithm's term has the wrong sign", file: "internal/engine/dsp/logarithm.go", old: "p*m + 1.1676998740e-1", new: "p*m - 1.1676998740e-1", by: "./internal/engine/dsp"},
	{name: "times shift behind a pause", file: "internal/engine/decode/window.go", old: "audio.Span{Start: units[i].Start - (gap - gap/2)}", new: "audio.Span{Start: units[i].Start - gap}", by: "./internal/engine/decode"},
	{name: "the last stretch of speech is dropped", file: "vad/segment.go", old: "\tif c.speaking {\n\t\tc.close(samples", new: "\tif c.speaking && c.end != none {\n\t\tc.close(samples", by: "./vad"},
	{name: "every channel is the same speaker", file: "internal/pipeline/stages/channels.go", old: "End: end, Speaker: i}", new: "End: end, Speaker: 0}", by: "./internal/pipeline/stages"},
	{name: "an event ends at a pause from its start", file: "events/stream.go", old: "start-o.end > closeGap+1e-9", new: "start-o.start > closeGap+1e-9", by: "./events"},
	{name: "SubRip has a decimal point", file: "subtitle/srt.go", old: "clock(start, ',')", new: "clock(start, '.')", by: "./subtitle"},
}
