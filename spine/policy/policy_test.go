package policy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWorkConserving: every policy that claims it finds a ready queue within
// two rounds of polls, whatever has arrived.
func TestWorkConserving(t *testing.T) {
	tested := 0
	for _, text := range someTexts() {
		if !claims(mustPolicy(t, text)).WorkConserving {
			continue
		}
		tested++
		t.Run(text, func(t *testing.T) {
			p := mustPolicy(t, text)
			rnd := rand.New(rand.NewPCG(1, 2))
			m := newQueueModel()
			a := newArrivals(rnd, m)
			var plan Plan
			for range 20000 {
				for m.mask() == 0 {
					a.arrive()
				}
				// What is ready now stays so: the policy must find something.
				if _, ok := m.serve(t, p, &plan, func() {}, 2*NumQueues); !ok {
					t.Fatalf("%s polls %v (loop %d) past the ready set %07b", p.Name(), plan.Seq, plan.Loop, m.mask())
				}
				a.arrive()
			}
		})
	}
	if tested < 40 {
		t.Errorf("%d policies claim to be work-conserving, want 40 or more", tested)
	}
}

// TestHoldWaits: the one policy that does not claim to be work-conserving is
// not.
func TestHoldWaits(t *testing.T) {
	p := mustPolicy(t, "continuation-first:hold=yes")
	m := newQueueModel()
	m.view.ChainActive = true
	m.send(QWire)
	var plan Plan
	if s, ok := m.serve(t, p, &plan, func() {}, 1000); ok {
		t.Fatalf("served Q%d beside a chain", s.queue)
	}
	polls := 0
	s, ok := m.serve(t, p, &plan, func() {
		if polls++; polls == 10 {
			m.view.ChainActive = false
		}
	}, 20)
	if !ok || s.queue != QWire || polls != 11 {
		t.Errorf("served %+v (%v) after %d empty polls, want the wire's message after the 10 of the chain and one of Q0", s, ok, polls)
	}
}

// claims are those of the policy's kind.
func claims(p Policy) PolicyKind {
	name, _, _ := strings.Cut(p.Name(), ":")
	for _, k := range PolicyKinds() {
		if k.Name == name {
			return k
		}
	}
	return strictKind
}

// starvationBound is the largest number of other queues' handlers that may run
// while queue q is ready, as the policy's manual says.
func starvationBound(p Policy, q int) (bound int) {
	others := func(n [NumQueues]int) (sum int) {
		for i, v := range n {
			if i != q {
				sum += v
			}
		}
		return sum
	}
	switch p := p.(type) {
	case *RoundRobin:
		return NumQueues - 1
	case *WeightedRoundRobin:
		return others(p.weights)
	case *Stride:
		for i, n := range p.tickets {
			if i != q {
				bound += n/p.tickets[q] + 2
			}
		}
		return bound
	case *Quota:
		return 2 * others(p.limits)
	}
	return -1
}

// TestStarvationFree holds policies to their bound, with every other queue
// always ready and with random arrivals, for many parameters.
func TestStarvationFree(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	numbers := func(high int) string {
		var n [NumQueues]int
		for i := range n {
			n[i] = 1 + rnd.IntN(high)
		}
		return slashed(n)
	}
	var texts []string
	for range 12 {
		o := DefaultOrder
		rnd.Shuffle(NumQueues, func(i, j int) { o[i], o[j] = o[j], o[i] })
		texts = append(texts, "round-robin:order="+digits(o),
			"weighted-round-robin:weights="+numbers(9)+",order="+digits(o),
			"stride:tickets="+numbers(30)+",order="+digits(o),
			"quota:limit="+numbers(9)+",order="+digits(o))
	}
	for _, text := range append(texts, "weighted-round-robin", "stride", "quota", "round-robin") {
		p := mustPolicy(t, text)
		if !claims(p).StarvationFree {
			t.Fatalf("%s does not claim to be free of starvation", text)
		}
		for _, flood := range []bool{true, false} {
			m := newQueueModel()
			a := newArrivals(rnd, m)
			var plan Plan
			var waits, worst [NumQueues]int
			for range 4000 {
				if flood {
					for q := range NumQueues {
						for len(m.ages[q]) < 2 {
							m.send(q)
						}
					}
				}
				for m.mask() == 0 {
					a.arrive()
				}
				before := m.mask()
				s, ok := m.serve(t, p, &plan, func() {}, 100)
				if !ok {
					t.Fatalf("%s serves nobody", text)
				}
				for q := range NumQueues {
					switch {
					case int(s.queue) == q || before>>q&1 == 0:
						waits[q] = 0
					default:
						waits[q]++
						worst[q] = max(worst[q], waits[q])
					}
				}
				if !flood {
					a.arrive()
				}
			}
			for q := range NumQueues {
				if bound := starvationBound(p, q); worst[q] > bound {
					t.Errorf("%s (flood %v): Q%d waited for %d handlers of others, want at most %d", text, flood, q, worst[q], bound)
				}
			}
		}
	}
}

// TestStarves: where a kind claims no freedom from starvation, some queue can
// be starved; so the claims of the registry are neither too weak nor too strong.
func TestStarves(t *testing.T) {
	for _, k := range PolicyKinds() {
		text := k.Name
		if k.Language {
			text = k.Example
		}
		starved := 0
		for victim := range NumQueues {
			p := mustPolicy(t, text)
			m := newQueueModel()
			m.send(victim)
			var plan Plan
			for n := 0; ; n++ {
				if n == 3000 {
					starved++
					break
				}
				for q := range NumQueues {
					for q != victim && len(m.ages[q]) < 3 {
						m.send(q)
					}
				}
				if s, ok := m.serve(t, p, &plan, func() {}, 100); !ok {
					t.Fatalf("%s serves nobody", text)
				} else if int(s.queue) == victim {
					break
				}
			}
		}
		switch {
		case k.StarvationFree && starved > 0:
			t.Errorf("%s claims to be free of starvation, but %d queues starve", text, starved)
		case !k.StarvationFree && starved == 0 && k.Name != "lottery":
			t.Errorf("%s claims no freedom from starvation, but no queue starves", text)
		}
	}
	// A bound on the round that is too small takes the promise back.
	p := mustPolicy(t, "quota:round=6")
	m := newQueueModel()
	var plan Plan
	for range 1000 {
		for q := range NumQueues {
			m.send(q)
		}
		if s, _ := m.serve(t, p, &plan, func() {}, 100); s.queue > QWire {
			t.Fatalf("%s served Q%d, want Q0 and Q1 only", p.Name(), s.queue)
		}
	}
}

// TestRulesAgainstStarvation: rules on how long a queue was not polled make a
// strict order fair.
func TestRulesAgainstStarvation(t *testing.T) {
	text := "rules:"
	for q := range NumQueues {
		text += fmt.Sprintf("when unpolled Q%d >= 10 first Q%d,", q, q)
	}
	p := mustPolicy(t, strings.TrimSuffix(text, ","))
	m := newQueueModel()
	var plan Plan
	var waits [NumQueues]int
	for range 5000 {
		for q := range NumQueues {
			m.send(q)
		}
		s, _ := m.serve(t, p, &plan, func() {}, 100)
		for q := range waits {
			waits[q]++
			if int(s.queue) == q {
				waits[q] = 0
			}
			if waits[q] > 10+NumQueues {
				t.Fatalf("Q%d waited for %d handlers", q, waits[q])
			}
		}
		m.ages = [NumQueues][]uint64{}
	}
}

// TestShares: with every queue always ready, policies that share the processor
// out do so exactly, or by lot as closely as chance allows.
func TestShares(t *testing.T) {
	n := [NumQueues]int{8, 3, 1, 2, 1, 1, 16}
	total := 32
	for _, tc := range []struct {
		text  string
		error float64 // handlers
	}{
		{"weighted-round-robin:weights=" + slashed(n), 0},
		{"quota:limit=" + slashed(n), 0},
		{"stride:tickets=" + slashed(n), 1},
		{"lottery:tickets=" + slashed(n), 5 * math.Sqrt(32*1000*0.25)},
	} {
		p := mustPolicy(t, tc.text)
		m := newQueueModel()
		var plan Plan
		var got [NumQueues]int
		handlers := total * 1000
		for range handlers {
			for q := range NumQueues {
				if len(m.ages[q]) < 2 {
					m.send(q)
				}
			}
			s, _ := m.serve(t, p, &plan, func() {}, 100)
			got[s.queue]++
		}
		for q := range n {
			want := float64(handlers*n[q]) / float64(total)
			if math.Abs(float64(got[q])-want) > tc.error {
				t.Errorf("%s: %d handlers of Q%d, want %.0f ± %.0f", tc.text, got[q], q, want, tc.error)
			}
		}
	}
}

// TestLotteryAmongReady: queues that are empty do not bend the others' shares.
func TestLotteryAmongReady(t *testing.T) {
	p := mustPolicy(t, "lottery:tickets=10/1/100/100/100/100/3")
	m := newQueueModel()
	var plan Plan
	got := map[uint8]int{}
	const n = 30000
	for range n {
		for _, q := range []int{QWire, QDMA} {
			if len(m.ages[q]) == 0 {
				m.send(q)
			}
		}
		s, _ := m.serve(t, p, &plan, func() {}, 100)
		got[s.queue]++
	}
	if want, tol := 0.75*n, 5*math.Sqrt(n*0.75*0.25); math.Abs(float64(got[QDMA])-want) > tol {
		t.Errorf("%d of %d to Q6, want %.0f ± %.0f", got[QDMA], n, want, tol)
	}
}

// pollOracle is a policy written down poll by poll, without plans.
type pollOracle interface {
	poll() uint8      // the queue to look at now
	outcome(hit bool) // of that poll
	handled(q uint8)  // the handler has run
}

// roundOracle is weighted round-robin (round-robin with all weights 1).
type roundOracle struct {
	order   [NumQueues]uint8
	weights [NumQueues]int
	at, run int
}

func (o *roundOracle) poll() uint8 { return o.order[o.at] }
func (o *roundOracle) leave()      { o.at, o.run = (o.at+1)%NumQueues, 0 }
func (o *roundOracle) outcome(hit bool) {
	if !hit {
		o.leave()
	}
}
func (o *roundOracle) handled(q uint8) {
	if o.run++; o.run == o.weights[q] {
		o.leave()
	}
}

// quotaOracle walks down the order, skipping queues without quota, and begins a
// new round at its end.
type quotaOracle struct {
	order  [NumQueues]uint8
	limits [NumQueues]int
	round  int
	spent  map[uint8]int
	all    int
	at     int
}

func (o *quotaOracle) fresh() { o.spent, o.all, o.at = map[uint8]int{}, 0, 0 }
func (o *quotaOracle) poll() uint8 {
	for {
		if o.at == NumQueues {
			o.fresh()
		}
		q := o.order[o.at]
		if o.spent[q] < o.limits[q] {
			return q
		}
		o.at++
	}
}
func (o *quotaOracle) outcome(hit bool) {
	if !hit {
		o.at++
	}
}
func (o *quotaOracle) handled(q uint8) {
	o.spent[q]++
	o.all++
	o.at = 0
	if o.all == o.round {
		o.fresh()
	}
}

// strideOracle keeps absolute passes and looks for the smallest one each time.
type strideOracle struct {
	order   [NumQueues]uint8
	tickets [NumQueues]int
	pass    [NumQueues]int64
	polled  map[uint8]bool
}

func (o *strideOracle) poll() uint8 {
	if len(o.polled) == NumQueues {
		o.polled = map[uint8]bool{}
	}
	best := -1
	for _, q := range o.order {
		if !o.polled[q] && (best < 0 || o.pass[q] < o.pass[best]) {
			best = int(q)
		}
	}
	o.polled[uint8(best)] = true
	return uint8(best)
}
func (o *strideOracle) outcome(bool) {}
func (o *strideOracle) handled(q uint8) {
	// Who has a smaller pass was polled and empty.
	for i := range o.pass {
		o.pass[i] = max(o.pass[i], o.pass[q])
	}
	o.pass[q] += strideOne / int64(o.tickets[q])
	o.polled = map[uint8]bool{}
}

// TestOracles: policies poll exactly the queues that their slow forms poll.
func TestOracles(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for trial := range 60 {
		o := DefaultOrder
		rnd.Shuffle(NumQueues, func(i, j int) { o[i], o[j] = o[j], o[i] })
		var n [NumQueues]int
		for i := range n {
			n[i] = 1 + rnd.IntN(6)
		}
		round := rnd.IntN(12)
		w, err := NewWeightedRoundRobin(o, n)
		if err != nil {
			t.Fatal(err)
		}
		k, err := NewQuota(o, n, round)
		if err != nil {
			t.Fatal(err)
		}
		s, err := NewStride(o, n)
		if err != nil {
			t.Fatal(err)
		}
		ones := [NumQueues]int{1, 1, 1, 1, 1, 1, 1}
		for _, c := range []struct {
			p Policy
			o pollOracle
		}{
			{NewRoundRobin(o), &roundOracle{order: o, weights: ones}},
			{w, &roundOracle{order: o, weights: n}},
			{k, &quotaOracle{order: o, limits: n, round: round, spent: map[uint8]int{}}},
			{s, &strideOracle{order: o, tickets: n, polled: map[uint8]bool{}}},
		} {
			m := newQueueModel()
			a := newArrivals(rnd, m)
			var plan Plan
			for range 300 {
				// The model serves; the oracle sees the same queues poll by poll.
				var got, want []uint8
				hit := uint8(0)
				c.p.Plan(&m.view, &plan)
				for at := 0; ; {
					q := plan.Seq[at]
					got = append(got, q)
					w := c.o.poll()
					want = append(want, w)
					c.o.outcome(m.ready(w))
					if m.ready(q) {
						hit = q
						break
					}
					a.arrive()
					if at++; at == len(plan.Seq) {
						at = plan.Loop
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("trial %d, %s: polls differ (-oracle +policy):\n%s", trial, c.p.Name(), diff)
				}
				c.p.Hit(int64(len(got)), hit)
				c.o.handled(hit)
				m.ages[hit] = m.ages[hit][1:]
			}
		}
	}
}

// TestNoAllocation: planning, hitting and choosing allocate nothing once a plan
// has grown.
func TestNoAllocation(t *testing.T) {
	for _, text := range append(someTexts(), "continuation-first:hold=yes") {
		p := mustPolicy(t, text)
		v := newQueueModel().view
		plan := Plan{Seq: make([]uint8, 0, 2*NumQueues)}
		vec := Vector{Ready: 0b1010101, Depth: [NumQueues]int{1, 0, 3, 0, 2, 0, 1}, Age: [NumQueues]uint64{5, 0, 2, 0, 9, 0, 4}}
		n := int64(0)
		got := testing.AllocsPerRun(200, func() {
			n++
			v.FreeBuffers, v.ChainActive, v.LastQueue = int(n%17), n%3 == 0, uint8(n%NumQueues)
			if c, ok := p.(VectorPolicy); ok {
				p.Hit(n, c.Choose(&vec))
				return
			}
			p.Plan(&v, &plan)
			i := n % int64(len(plan.Seq))
			p.Hit(i+1, plan.Seq[i])
		})
		if got != 0 {
			t.Errorf("%s: %.0f allocations a handler", text, got)
		}
	}
}

// TestDeterminism: two policies made alike decide alike, and only a lottery
// depends on seed and card.
func TestDeterminism(t *testing.T) {
	decide := func(text string, seed uint64, card uint8) []served {
		p, err := NewPolicy(text, seed, card)
		if err != nil {
			t.Fatal(err)
		}
		m := newQueueModel()
		a := newArrivals(rand.New(rand.NewPCG(7, 8)), m)
		var plan Plan
		var out []served
		for range 2000 {
			s, ok := m.serve(t, p, &plan, a.arrive, 100000)
			if !ok {
				t.Fatalf("%s found nothing", text)
			}
			out = append(out, s)
		}
		return out
	}
	for _, text := range someTexts() {
		base := decide(text, 1, 0)
		if diff := cmp.Diff(base, decide(text, 1, 0), cmp.AllowUnexported(served{})); diff != "" {
			t.Errorf("%s differs from itself:\n%s", text, diff)
		}
		for _, other := range [][]served{decide(text, 2, 0), decide(text, 1, 3)} {
			same := cmp.Equal(base, other, cmp.AllowUnexported(served{}))
			if lots := strings.HasPrefix(text, "lottery"); same == lots {
				t.Errorf("%s with another seed or card: same decisions %v, want %v", text, same, !lots)
			}
		}
	}
}

// TestVectorChoices: what longest-queue-first and oldest-first pick.
func TestVectorChoices(t *testing.T) {
	v := Vector{
		Ready: 0b1101010,
		Depth: [NumQueues]int{9, 2, 9, 4, 9, 4, 1},
		Age:   [NumQueues]uint64{1, 20, 1, 30, 1, 10, 15},
	}
	for _, tc := range []struct {
		text string
		want uint8
	}{
		{"longest-queue-first", 3},
		{"longest-queue-first:order=6543210", 5},
		{"oldest-first", 5},
	} {
		if got := mustPolicy(t, tc.text).(VectorPolicy).Choose(&v); got != tc.want {
			t.Errorf("%s chose Q%d, want Q%d", tc.text, got, tc.want)
		}
	}
	// Oldest-first serves in the order of sending.
	p, m := mustPolicy(t, "oldest-first"), newQueueModel()
	rnd := rand.New(rand.NewPCG(9, 10))
	for range 200 {
		m.send(rnd.IntN(NumQueues))
	}
	var plan Plan
	last := uint64(0)
	for range 200 {
		heads := m.ages
		s, _ := m.serve(t, p, &plan, func() {}, 10)
		if age := heads[s.queue][0]; age != last+1 {
			t.Fatalf("served message %d after %d", age, last)
		}
		last++
	}
}

func orderOf(p Policy, v *View) string {
	var plan Plan
	p.Plan(v, &plan)
	var o [NumQueues]uint8
	copy(o[:], plan.Seq)
	return digits(o)
}

// TestAdaptiveHysteresis: the order changes at low and changes back at high,
// not in between.
func TestAdaptiveHysteresis(t *testing.T) {
	for _, tc := range []struct {
		text    string
		buffers int
		free    []int
		scarce  string // one letter a step: s scarce, p plenty
	}{
		{"adaptive:low=4,high=8", 16, []int{16, 5, 4, 5, 7, 8, 7, 5, 4, 3, 0, 7, 16}, "ppssspppssssp"},
		{"adaptive", 16, []int{16, 5, 4, 7, 8, 5, 4}, "ppsspps"},
		{"adaptive", 2, []int{2, 1, 0, 1, 0, 2}, "ppspsp"},
		{"adaptive:low=5,high=100", 16, []int{16, 5, 15, 16}, "pssp"},
		{"adaptive:low=0%,high=1%", 1000, []int{1, 0, 9, 10}, "pssp"},
	} {
		p := mustPolicy(t, tc.text)
		var got strings.Builder
		for _, f := range tc.free {
			switch o := orderOf(p, &View{FreeBuffers: f, Buffers: tc.buffers}); o {
			case digits(DefaultOrder):
				got.WriteByte('p')
			case digits(PCIFirstOrder):
				got.WriteByte('s')
			default:
				t.Fatalf("order %s", o)
			}
		}
		if got.String() != tc.scarce {
			t.Errorf("%s with %v of %d free: %s, want %s", tc.text, tc.free, tc.buffers, &got, tc.scarce)
		}
	}
}

// TestContinuationFirst: the chain's queue leads while a chain is active.
func TestContinuationFirst(t *testing.T) {
	p := mustPolicy(t, "continuation-first:order=2103456")
	for _, tc := range []struct {
		v    View
		want string
	}{
		{View{ChainQueue: QDMA}, "2103456"},
		{View{ChainQueue: QDMA, EngineBusy: true}, "2103456"}, // an ACK's write is no chain
		{View{ChainQueue: QDMA, EngineBusy: true, ChainActive: true}, "6210345"},
		{View{ChainQueue: QSelf, ChainActive: true}, "0213456"},
	} {
		if got := orderOf(p, &tc.v); got != tc.want {
			t.Errorf("%+v: %s, want %s", tc.v, got, tc.want)
		}
	}
}

// TestShareLimits: constructors refuse what would divide by nothing.
func TestShareLimits(t *testing.T) {
	for _, n := range [][NumQueues]int{{1, 1, 0, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, MaxShare + 1}} {
		if _, err := NewWeightedRoundRobin(DefaultOrder, n); err == nil {
			t.Errorf("weights %v: no error", n)
		}
		if _, err := NewStride(DefaultOrder, n); err == nil {
			t.Errorf("stride tickets %v: no error", n)
		}
		if _, err := NewQuota(DefaultOrder, n, 0); err == nil {
			t.Errorf("limits %v: no error", n)
		}
		if _, err := NewLottery(n, 1, 0); err == nil {
			t.Errorf("lottery tickets %v: no error", n)
		}
	}
	if _, err := NewQuota(DefaultOrder, DefaultShares, -1); err == nil {
		t.Error("a round of -1 handlers: no error")
	}
	for _, s := range []AdaptiveSpec{
		{Low: Level{N: 4}, High: Level{N: 4}}, {Low: Level{N: 4}, High: Level{N: 50, Percent: true}}, {Low: Level{N: -1}, High: Level{N: 4}},
	} {
		if _, err := NewAdaptive(s); err == nil {
			t.Errorf("%+v: no error", s)
		}
	}
}
