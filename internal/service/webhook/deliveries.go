package webhook

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
)

type deliveries struct {
	limits NotifierConfig

	mu          sync.Mutex
	under       map[string]*Delivery // by the callback's id
	slowHosts   map[string]bool      // did not answer in time
	slow        map[Receiver]bool    // addresses that did not answer in time
	unconfirmed bool                 // a claim may have been committed, or an outcome not, without confirmation
}

func newDeliveries(limits NotifierConfig) *deliveries {
	return &deliveries{limits: limits, under: map[string]*Delivery{}, slowHosts: map[string]bool{}, slow: map[Receiver]bool{}}
}

// mostSlow limits the remembered slow hosts and the remembered slow addresses.
const mostSlow = 1000

// look returns the callbacks in progress, and whether there may be others,
// which it reports once.
func (f *deliveries) look() (inProgress []string, unconfirmed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	unconfirmed, f.unconfirmed = f.unconfirmed, false
	return slices.Collect(maps.Keys(f.under)), unconfirmed
}

// busy returns the receivers and accounts that have their full share of
// deliveries in progress. perAccount is an account's share.
func (f *deliveries) busy(perAccount int) (busy Busy) {
	f.mu.Lock()
	defer f.mu.Unlock()
	hosts, accounts, receivers := map[string]int{}, map[string]int{}, map[Receiver]int{}
	for _, d := range f.under {
		hosts[d.host]++
		accounts[d.AccountID]++
		for _, r := range d.receivers {
			receivers[r]++
		}
	}
	busy.Hosts = atLeast(hosts, f.limits.PerHost)
	busy.Accounts = atLeast(accounts, perAccount)
	busy.Receivers = atLeast(receivers, f.limits.PerHost)
	if f.slowUnderWay(false) >= f.slowShare() {
		busy.Hosts = slices.AppendSeq(busy.Hosts, maps.Keys(f.slowHosts))
		busy.Receivers = slices.AppendSeq(busy.Receivers, maps.Keys(f.slow))
	}
	return busy
}

func atLeast[K comparable](counts map[K]int, share int) (keys []K) {
	for key, count := range counts {
		if count >= share {
			keys = append(keys, key)
		}
	}
	return keys
}

// slowShare returns the number of slots for slow receivers: half of all.
func (f *deliveries) slowShare() int { return max(1, f.limits.AtOnce/2) }

// slowUnderWay counts the deliveries to slow receivers, or only the admitted
// ones. f is locked.
func (f *deliveries) slowUnderWay(admitted bool) (n int) {
	for _, d := range f.under {
		if admitted && !d.admitted {
			continue
		}
		if f.slowHosts[d.host] || slices.ContainsFunc(d.receivers, func(r Receiver) bool { return f.slow[r] }) {
			n++
		}
	}
	return n
}

// begin adds a delivery whose addresses are not known yet.
func (f *deliveries) begin(d *Delivery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.under[d.ID] = d
}

// admit adds the addresses of a delivery that has begun. If one of them already
// has its full share of deliveries, admit returns that address instead.
func (f *deliveries) admit(d *Delivery, addresses []netip.Addr) (full Receiver, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := map[Receiver]int{}
	for _, other := range f.under {
		for _, r := range other.receivers {
			counts[r]++
		}
	}
	crowded := f.slowUnderWay(true) >= f.slowShare()
	receivers := receiversAt(d.AccountID, addresses)
	for _, r := range receivers {
		if counts[r] >= f.limits.PerHost || crowded && (f.slow[r] || f.slowHosts[d.host]) {
			return r, false
		}
	}
	d.receivers, d.admitted = receivers, true
	return Receiver{}, true
}

// receiversAt returns the receivers to count for a host's addresses. An IPv6
// address counts as its 64-bit network, because all of it usually belongs to
// one party.
func receiversAt(account string, addresses []netip.Addr) (list []Receiver) {
	for _, a := range addresses {
		if a = a.Unmap(); a.Is6() {
			a = netip.PrefixFrom(a.WithZone(""), 64).Masked().Addr()
		}
		if r := (Receiver{account, a.String()}); !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	return list
}

func (f *deliveries) answered(d *Delivery, inTime bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if inTime {
		delete(f.slowHosts, d.host)
		for _, r := range d.receivers {
			delete(f.slow, r)
		}
		return
	}
	if len(f.slowHosts) < mostSlow {
		f.slowHosts[d.host] = true
	}
	for _, r := range d.receivers {
		if len(f.slow) < mostSlow {
			f.slow[r] = true
		}
	}
}

func (f *deliveries) doubt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unconfirmed = true
}

// end removes a delivery. written is false if its outcome may not be written.
func (f *deliveries) end(d *Delivery, written bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.under, d.ID)
	f.unconfirmed = f.unconfirmed || !written
}
