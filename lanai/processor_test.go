package lanai

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"spinesim/sim/des"
)

func TestProcessorRefuses(t *testing.T) {
	r := newRig(t, Lanai4())
	cpu := r.card.CPU
	for _, d := range []Demand{{0, 0}, {-1, 0}, {5, 6}, {5, -1}} {
		if err := cpu.Run(d); !errors.Is(err, ErrDemand) {
			t.Errorf("%+v: %v", d, err)
		}
	}
	if err := cpu.Poll(Demand{Cycles: 1}, 0); !errors.Is(err, ErrDemand) {
		t.Errorf("no polls: %v", err)
	}
	if err := cpu.LimitPolls(4); !errors.Is(err, ErrNoPolls) {
		t.Errorf("limit of nothing: %v", err)
	}
	r.ok(cpu.Poll(Demand{Cycles: 12}, Unbounded))
	if err := cpu.Run(Demand{Cycles: 5}); !errors.Is(err, ErrBusy) {
		t.Errorf("box within polls: %v", err)
	}
	r.run(25)
	if err := cpu.LimitPolls(2); !errors.Is(err, ErrDemand) {
		t.Errorf("limit of ended polls: %v", err)
	}
	r.ok(cpu.LimitPolls(3))
	r.run(100)
	r.wantLog("36: 3 polls ended")
	if !cpu.Idle() || cpu.PollsEnded() != 3 {
		t.Error("not idle after its polls")
	}
}

// A poll that ends at the very instant of a hardware event has ended before it.
func TestPollEndsBeforeHardware(t *testing.T) {
	for _, tt := range []struct {
		at   des.Time
		want int64
	}{
		{120*30_000 - 1, 9}, {120 * 30_000, 10}, {120*30_000 + 1, 10},
	} {
		r := newRig(t, Lanai4())
		r.ok(r.card.CPU.Poll(Demand{Cycles: 12, Accesses: 1}, Unbounded))
		h := &atTime{do: func() error {
			if got := r.card.CPU.PollsEnded(); got != tt.want {
				t.Errorf("at %v: %d polls ended, want %d", tt.at, got, tt.want)
			}
			// A stream that starts now makes the segment begin anew, maybe
			// with the next cycle, and must not change the answer.
			if err := r.card.Tx.Send(&Frame{}, 0, 400); err != nil {
				return err
			}
			if got := r.card.CPU.PollsEnded(); got != tt.want {
				t.Errorf("at %v, with a stream: %d polls ended, want %d", tt.at, got, tt.want)
			}
			return r.card.CPU.LimitPolls(tt.want + 1)
		}}
		r.ok(r.e.Schedule(tt.at, PrioHardware, h, 0))
		r.run(500)
		if n := r.card.CPU.PollsEnded(); n != tt.want+1 {
			t.Errorf("at %v: ended with %d polls", tt.at, n)
		}
	}
}

type atTime struct{ do func() error }

func (a *atTime) Handle(des.Time, uint64) error { return a.do() }

// A run of polls costs no more real time when it is long, with streams or
// without.
func TestLongRunsOfPolls(t *testing.T) {
	for _, streams := range []bool{false, true} {
		r := newRig(t, Lanai4())
		if streams {
			r.card.BusStream(0, true, 1, 3)
			r.ok(r.card.Mem.start(0, Send, 1<<50))
		}
		begin := time.Now()
		n := int64(1) << 40
		r.ok(r.card.CPU.Poll(Demand{Cycles: 12, Accesses: 2}, n))
		r.run(n * 40)
		if d := time.Since(begin); d > time.Second {
			t.Errorf("streams %v: took %v", streams, d)
		}
		u := r.card.CPU.Usage()
		if u.Polls != n || u.PollCycles != n*12 {
			t.Errorf("streams %v: %+v", streams, u)
		}
		if (u.PollStall > 0) != streams || u.PollStall != u.Stall[EBus]+u.Stall[Receive]+u.Stall[Send] {
			t.Errorf("streams %v: %+v", streams, u)
		}
	}
}

// Runs of polls between the same events, stepped poll by poll and skipped in
// one go, end alike.
func TestSteppedAndSkippedPollsAgree(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 77))
		sc := randomScenario(rnd)
		sc.Events = sc.Events[:0]
		for c := Receive; c < CPU; c++ {
			sc.Chain[c] = nil
			sc.Events = append(sc.Events, scriptEvent{At: des.Time(rnd.Int64N(1_000_000)), Kind: scriptStart, Client: c, Words: 1 + rnd.Int64N(500)})
		}
		if sc.Events[0].At > sc.Events[1].At {
			sc.Events[0], sc.Events[1] = sc.Events[1], sc.Events[0]
		}
		d := Demand{Cycles: 1 + rnd.Int32N(15)}
		d.Accesses = rnd.Int32N(d.Cycles + 1)
		n := 1 + rnd.Int64N(60)
		sc.Items = []scriptItem{{Polls: true, D: d, N: n}, {D: d, N: 1}}
		skipped, err := simulate(sc, des.Options{})
		if err != nil {
			t.Fatal(err)
		}
		one := *sc
		one.Items = nil
		for range n {
			one.Items = append(one.Items, scriptItem{Polls: true, D: d, N: 1})
		}
		one.Items = append(one.Items, scriptItem{D: d, N: 1})
		stepped, err := simulate(&one, des.Options{})
		if err != nil {
			t.Fatal(err)
		}
		last := func(d *device, what string) (at int64) {
			at = -1
			for _, f := range d.facts {
				if f.What == what {
					at = f.Cycle
				}
			}
			return at
		}
		for _, what := range []string{"box", "receive", "send"} {
			if a, b := last(skipped, what), last(stepped, what); a != b {
				t.Fatalf("seed %d: last %s at %d skipped, at %d stepped", seed, what, a, b)
			}
		}
	}
}
