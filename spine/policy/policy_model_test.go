package policy

import (
	"math/rand/v2"
	"testing"

	"spinesim/traces"
)

// queueModel is the dispatcher without a machine: seven counters that a policy
// is asked to serve, poll by poll.
type queueModel struct {
	view    View
	ages    [NumQueues][]uint64 // messages by queue, by when they were sent
	blocked [NumQueues]bool     // holds messages, but none that can run
	seq     uint64
	polls   int
}

func newQueueModel() *queueModel {
	return &queueModel{view: View{
		FreeBuffers: 16, Buffers: 16, Credits: 12, AllCredits: 12, ChainQueue: QDMA, LastQueue: traces.NoQueue,
	}}
}

func (m *queueModel) send(q int) {
	m.seq++
	m.ages[q] = append(m.ages[q], m.seq)
}

func (m *queueModel) ready(q uint8) bool { return len(m.ages[q]) > 0 && !m.blocked[q] }

func (m *queueModel) mask() (mask uint8) {
	for q := range uint8(NumQueues) {
		if m.ready(q) {
			mask |= 1 << q
		}
	}
	return mask
}

// served is one handler of a model run.
type served struct {
	queue uint8
	poll  int64 // of its plan, from 1
}

// serve lets the policy find the next message. After each poll that misses,
// arrive may send more. It gives up, with ok false, after limit polls.
func (m *queueModel) serve(t testing.TB, p Policy, plan *Plan, arrive func(), limit int) (served, bool) {
	t.Helper()
	done := func(q uint8, n int64) served {
		p.Hit(n, q)
		m.ages[q] = m.ages[q][1:]
		m.view.LastQueue = q
		m.view.HandlersRun++
		return served{q, n}
	}
	if v, ok := p.(VectorPolicy); ok {
		for n := int64(1); n <= int64(limit); n++ {
			m.polls++
			vec := Vector{Ready: m.mask()}
			if vec.Ready == 0 {
				arrive()
				continue
			}
			for q := range NumQueues {
				if vec.Ready>>q&1 != 0 {
					vec.Depth[q], vec.Age[q] = len(m.ages[q]), m.ages[q][0]
				}
			}
			q := v.Choose(&vec)
			if vec.Ready>>q&1 == 0 {
				t.Fatalf("%s chose Q%d of the ready set %07b", p.Name(), q, vec.Ready)
			}
			return done(q, n), true
		}
		return served{}, false
	}
	for polls := 0; ; {
		p.Plan(&m.view, plan)
		if err := plan.Check(); err != nil {
			t.Fatalf("%s %v", p.Name(), err)
		}
		at := 0
		for n := int64(1); ; n++ {
			if polls == limit {
				return served{}, false
			}
			polls++
			m.polls++
			q := plan.Seq[at]
			if m.ready(q) {
				return done(q, n), true
			}
			arrive()
			if at++; at == len(plan.Seq) {
				if plan.Loop < 0 {
					break
				}
				at = plan.Loop
			}
		}
	}
}

// arrivals sends at random: bursts into some queues, silence in others.
type arrivals struct {
	rnd   *rand.Rand
	model *queueModel
	odds  [NumQueues]int // one poll in so many brings a message, 0 none
}

func newArrivals(rnd *rand.Rand, m *queueModel) *arrivals {
	a := &arrivals{rnd: rnd, model: m}
	a.change()
	return a
}

func (a *arrivals) change() {
	for q := range a.odds {
		a.odds[q] = a.rnd.IntN(12)
	}
}

func (a *arrivals) arrive() {
	if a.rnd.IntN(200) == 0 {
		a.change()
	}
	for q, n := range a.odds {
		if n > 0 && a.rnd.IntN(n) == 0 && len(a.model.ages[q]) < 20 {
			a.model.send(q)
		}
	}
	v := &a.model.view
	v.FreeBuffers = min(max(v.FreeBuffers+a.rnd.IntN(3)-1, 0), v.Buffers)
	v.Credits = min(max(v.Credits+a.rnd.IntN(3)-1, 0), v.AllCredits)
	v.Backlog = v.Buffers - v.FreeBuffers
	v.EngineBusy = a.rnd.IntN(2) == 0
	v.ChainActive = v.EngineBusy && a.rnd.IntN(2) == 0
}

// mustPolicy makes a policy from text.
func mustPolicy(t testing.TB, text string) Policy {
	t.Helper()
	p, err := NewPolicy(text, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// someTexts are texts of every kind of policy, with parameters of all sorts.
func someTexts() []string {
	texts := []string{
		"Q6 Q3 Q4 Q5 Q0 Q1 Q2", "strict:order=pci-first", "round-robin:order=6345012",
		"weighted-round-robin:weights=1", "weighted-round-robin:weights=7 1 3 1 1 2 9,order=pci-first",
		"stride:tickets=1", "stride:tickets=100/3/7/1/1/1/50,order=2103456",
		"quota:limit=1", "quota:limit=3 1 1 2 1 1 4,order=6543210", "quota:round=5",
		"adaptive:low=1,high=15,scarce=6012345", "continuation-first:order=1023456",
		"longest-queue-first:order=pci-first", "lottery:tickets=1", "lottery:tickets=9/1/1/1/1/1/99",
		"rules:order=2103456,when chain and not last Q6 first Q6 Q0,when credits<=25% until credits=100% last Q6,when unpolled Q5>9 first Q5",
	}
	for _, k := range PolicyKinds() {
		texts = append(texts, k.Name)
		if k.Language {
			texts = texts[:len(texts)-1]
		}
		texts = append(texts, k.Example)
	}
	return texts
}
