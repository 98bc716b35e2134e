package billing

import (
	"encoding/json"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/spec"
)

func TestMoneyText(t *testing.T) {
	for _, c := range []struct {
		text   string
		money  Money
		number string
		fixed  string
	}{
		{"0", 0, "0", "0.0000"},
		{"12.5", 125000, "12.5", "12.5000"},
		{"-0.0033", -33, "-0.0033", "-0.0033"},
		{"+7", 70000, "7", "7.0000"},
		{"007.10", 71000, "7.1", "7.1000"},
		{"-10", -100000, "-10", "-10.0000"},
		{"922337203685477.5807", math.MaxInt64, "922337203685477.5807", "922337203685477.5807"},
	} {
		m, err := ParseMoney(c.text)
		require.NoError(t, err, c.text)
		assert.Equal(t, c.money, m)
		assert.Equal(t, c.number, m.Number())
		assert.Equal(t, c.fixed, m.String())
	}
	assert.Equal(t, "-922337203685477.5808", Money(math.MinInt64).String())
	for _, text := range []string{"", "-", ".", "1.", ".5", "1e3", "1,5", " 1", "1 ", "0x1", "1.00001", "922337203685477.5808", "99999999999999999999", "NaN", "١"} {
		_, err := ParseMoney(text)
		require.ErrorIs(t, err, errAmount, "%q", text)
	}
}

func TestMoneyJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Money(rapid.Int64().Draw(t, "money"))
		if m == math.MinInt64 {
			m++ // one more than can be written with a sign
		}
		data, err := json.Marshal(m)
		require.NoError(t, err)
		var back, text Money
		require.NoError(t, json.Unmarshal(data, &back))
		require.NoError(t, json.Unmarshal([]byte(`"`+m.String()+`"`), &text))
		require.Equal(t, m, back)
		require.Equal(t, m, text)
		exact, ok := new(big.Rat).SetString(string(data))
		require.True(t, ok)
		require.Zero(t, exact.Cmp(big.NewRat(int64(m), int64(Unit))))
	})
}

func FuzzParseMoney(f *testing.F) {
	for _, seed := range []string{"0", "-1.5", "922337203685477.5807", "1e5", "..", "+"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMoney(text)
		if err != nil {
			require.ErrorIs(t, err, errAmount)
			return
		}
		again, err := ParseMoney(m.String())
		require.NoError(t, err)
		require.Equal(t, m, again)
	})
}

// TestShareRoundsHalfUp compares share with exact arithmetic.
func TestShareRoundsHalfUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Int64Range(0, math.MaxInt64).Draw(t, "amount")
		numerator := rapid.Int64Range(0, math.MaxInt64).Draw(t, "numerator")
		denominator := rapid.Int64Range(1, math.MaxInt64).Draw(t, "denominator")
		product := new(big.Int).Mul(big.NewInt(amount), big.NewInt(numerator))
		want := product.Add(product, big.NewInt(denominator/2)).Div(product, big.NewInt(denominator))
		got, ok := share(Money(amount), numerator, denominator)
		require.Equal(t, want.IsInt64(), ok)
		if ok {
			require.Equal(t, want.Int64(), int64(got))
		}
	})
}

func TestBillableMinutes(t *testing.T) {
	for _, c := range []struct {
		seconds float64
		minutes int64
	}{
		{0, 1},
		{0.004, 1},
		{59.99, 1},
		{59.9999375, 1},
		{60, 1},
		{60.0000625, 2},
		{60.004, 2},
		{60.01, 2},
		{61.5, 2},
		{120, 2},
		{120.0049, 3},
		{18000, 300},
		{18000.0000625, 301},
	} {
		got, err := BillableMinutes(c.seconds)
		require.NoError(t, err)
		assert.Equal(t, c.minutes, got, "%v s", c.seconds)
	}
	for _, seconds := range []float64{-1, math.NaN(), math.Inf(1), math.Inf(-1), 1e12} {
		_, err := BillableMinutes(seconds)
		require.ErrorIs(t, err, ErrUsage)
	}
}

var startPrices = Prices{Standard: 6000, Optimized: 2000, Diarize: 1000, AudioEvents: 1000, BatchDiscount: 5000}

func TestQuote(t *testing.T) {
	// One minute at the starting prices with all three capabilities, as a batch
	// task.
	q, err := startPrices.Quote(Usage{Mode: spec.TierOptimized, Seconds: 10, Diarize: true, Events: true, Batch: true})
	require.NoError(t, err)
	data, err := json.Marshal(q.Detail)
	require.NoError(t, err)
	// 0.20/60 = 0.00333…, 0.10/60 = 0.001666… → 0.0017; (0.20 + 0.10 + 0.10) / 60 / 2 = 0.00333… → 0.0033
	assert.JSONEq(t, `{"base_price_per_hour":0.2,"base_amount":0.0033,"diarize_price_per_hour":0.1,"diarize_amount":0.0017,
		"events_price_per_hour":0.1,"events_amount":0.0017,"subtotal":0.0067,"batch_discount":0.5,"total":0.0033}`, string(data))
	assert.Equal(t, Money(33), q.Total)

	q, err = startPrices.Quote(Usage{Mode: spec.TierStandard, Seconds: 3600})
	require.NoError(t, err)
	data, err = json.Marshal(q.Detail)
	require.NoError(t, err)
	assert.JSONEq(t, `{"base_price_per_hour":0.6,"base_amount":0.6,"subtotal":0.6,"total":0.6}`, string(data), "no component that was off")

	full := startPrices
	full.BatchDiscount = 0
	q, err = full.Quote(Usage{Mode: spec.TierStandard, Seconds: 3600, Batch: true})
	require.NoError(t, err)
	assert.Equal(t, Money(6000), q.Total, "0 means no discount")

	_, err = startPrices.Quote(Usage{Mode: "premium"})
	require.ErrorIs(t, err, ErrUsage)
	dear, err := startPrices.Dearest(Usage{Seconds: 60}, spec.TierOptimized, spec.TierStandard)
	require.NoError(t, err)
	assert.Equal(t, spec.TierStandard, dear.Mode)
}

// TestBillableMinutesAreExact checks whole numbers of samples: converting them
// to seconds loses none.
func TestBillableMinutesAreExact(t *testing.T) {
	const rate = 16000
	rapid.Check(t, func(t *rapid.T) {
		samples := rapid.Int64Range(0, 10*3600*rate).Draw(t, "samples")
		if rapid.Bool().Draw(t, "near a border") {
			samples = max(0, samples/(60*rate)*60*rate+rapid.Int64Range(-2, 2).Draw(t, "off"))
		}
		got, err := BillableMinutes(float64(samples) / rate)
		require.NoError(t, err)
		require.Equal(t, max(1, (samples+60*rate-1)/(60*rate)), got)
	})
}

// TestQuoteFollowsTheFormula compares every amount with exact arithmetic.
func TestQuoteFollowsTheFormula(t *testing.T) {
	rounded := func(r *big.Rat) *big.Int { // half up
		twice := new(big.Int).Add(new(big.Int).Mul(r.Num(), big.NewInt(2)), r.Denom())
		return twice.Div(twice, new(big.Int).Mul(r.Denom(), big.NewInt(2)))
	}
	rapid.Check(t, func(t *rapid.T) {
		price := func(name string) Money { return Money(rapid.Int64Range(0, int64(maxPrice)).Draw(t, name)) }
		p := Prices{
			Standard: price("standard"), Optimized: price("zh_lite"), Diarize: price("diarize"), AudioEvents: price("events"),
			BatchDiscount: Money(rapid.Int64Range(0, int64(Unit)).Draw(t, "discount")),
		}
		if rapid.Bool().Draw(t, "with a price for live") {
			p.Live = new(price("live"))
		}
		u := Usage{
			Mode: rapid.SampledFrom([]spec.Tier{spec.TierStandard, spec.TierOptimized}).Draw(t, "mode"), Seconds: rapid.Float64Range(0, maxSeconds).Draw(t, "seconds"),
			Diarize: rapid.Bool().Draw(t, "with diarization"), Events: rapid.Bool().Draw(t, "with events"), Batch: rapid.Bool().Draw(t, "batch"), Live: rapid.Bool().Draw(t, "of a live session"),
		}
		q, err := p.Quote(u)
		require.NoError(t, err)

		cost := func(price Money) *big.Rat {
			return big.NewRat(int64(price), 60).Mul(big.NewRat(int64(price), 60), new(big.Rat).SetInt64(q.Minutes))
		}
		base := p.Standard
		if u.Mode == spec.TierOptimized {
			base = p.Optimized
		}
		if u.Live && p.Live != nil {
			base = *p.Live
		}
		sum, shown := cost(base), []Money{q.Detail.BaseAmount}
		exact := []*big.Rat{cost(base)}
		add := func(price Money, amount *Money) {
			sum.Add(sum, cost(price))
			exact, shown = append(exact, cost(price)), append(shown, *amount)
		}
		if u.Diarize {
			add(p.Diarize, q.Detail.DiarizeAmount)
		}
		if u.Events {
			add(p.AudioEvents, q.Detail.EventsAmount)
		}
		require.Equal(t, rounded(sum).Int64(), int64(q.Detail.Subtotal), "subtotal")
		var total Money
		for i, amount := range shown {
			total += amount
			off := new(big.Rat).Sub(exact[i], new(big.Rat).SetInt64(int64(amount)))
			require.Negative(t, off.Abs(off).Cmp(big.NewRat(1, 1)), "component %d differs from its exact value by %s", i, off)
		}
		require.Equal(t, q.Detail.Subtotal, total, "components add up")
		if u.Batch && p.BatchDiscount != 0 {
			sum.Mul(sum, big.NewRat(int64(p.BatchDiscount), int64(Unit)))
		}
		require.Equal(t, rounded(sum).Int64(), int64(q.Total), "total")
		require.Equal(t, q.Total, q.Detail.Total)
	})
}

func TestQuoteTooLarge(t *testing.T) {
	p := startPrices
	p.Standard = math.MaxInt64
	_, err := p.Quote(Usage{Mode: spec.TierStandard, Seconds: 1e6})
	require.ErrorIs(t, err, ErrUsage)
	_, err = p.Quote(Usage{Mode: spec.TierStandard, Seconds: 60, Events: true})
	require.ErrorIs(t, err, ErrUsage)
}
