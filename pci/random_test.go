package pci

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"spinesim/sim/testenv"

	"spinesim/sim/des"
	"spinesim/traces"

	"github.com/google/go-cmp/cmp"
)

// scenario is one random bus with what its masters ask for.
type scenario struct {
	spec    Spec
	targets []oracleTarget
	jobs    [][]job
	ties    bool
	asks    []des.Time // when Usage is called
}

var testClocks = []des.Frequency{
	{Num: 100_000_000, Den: 3}, {Num: 33_000_000, Den: 1}, {Num: 66_000_000, Den: 1}, {Num: 200_000_000, Den: 3},
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func randomScenario(r *rand.Rand) scenario {
	s := scenario{spec: DefaultSpec(), ties: r.IntN(2) == 0}
	sp := &s.spec
	sp.Clock = pick(r, testClocks...)
	sp.Width = pick(r, 32, 32, 64)
	sp.GrantLatency = pick(r, 1, 2, 2, 2, 3, 1+r.IntN(16))
	sp.Park = Parking(r.IntN(3))
	n := 1 + r.IntN(MaxMasters)
	if sp.Park == ParkMaster {
		sp.ParkAt = r.IntN(n)
	}
	least := 1 + 32*8/sp.Width
	sp.LatencyTimer = pick(r, least, 16, 32, 64, 255, least+r.IntN(100))
	sp.BurstBytes = pick(r, 0, 0, 32, 64, 128, 32+8*r.IntN(100))
	sp.AbortClocks = 1 + r.IntN(6)
	sp.RetryBackoff = 1 + r.IntN(4)
	sp.RetryBackoffMax = sp.RetryBackoff + r.IntN(30)
	sp.RetryLimit = pick(r, 0, 0, 1+r.IntN(6))

	base := int64(0x10000)
	for range 1 + r.IntN(3) {
		t := oracleTarget{base: base, end: base + 16*int64(1+r.IntN(256))}
		ts := &t.spec
		ts.Devsel = r.IntN(4)
		ts.DataWait = pick(r, 0, 0, 1, 2, r.IntN(15))
		decode := max(0, ts.Devsel-ts.DataWait)
		ts.WriteWait = decode + pick(r, 0, 0, 1, 2, r.IntN(12), r.IntN(50))
		ts.ReadLatency = decode + pick(r, 0, 4, 8, r.IntN(12), r.IntN(100))
		ts.Boundary = pick(r, 0, 0, 16<<r.IntN(6), 4096)
		ts.ReadLine = pick(r, 0, 0, 16<<r.IntN(6))
		t.populated = t.end
		if r.IntN(3) == 0 {
			ts.Populated = uint32(16 * (1 + r.Int64N((t.end-t.base)/16)))
			t.populated = t.base + int64(ts.Populated)
		}
		s.targets = append(s.targets, t)
		base = t.end
		if r.IntN(2) == 0 {
			base += 16 * int64(r.IntN(64)) // a hole
		}
	}
	clk, _ := des.NewClock(sp.Clock, 0)
	period := clk.Edge(1)
	crowd := r.IntN(3)
	for range n {
		var js []job
		for range r.IntN(8) {
			t := s.targets[r.IntN(len(s.targets))]
			j := job{Cmd: Command(r.IntN(int(numCommands)))}
			j.Addr = uint32(t.base + r.Int64N(t.end-t.base))
			if r.IntN(20) == 0 {
				j.Addr = uint32(t.end + r.Int64N(64)) // mostly nothing
			}
			j.Bytes = 1 + pick(r, r.IntN(4), r.IntN(16), r.IntN(256), r.IntN(2000))
			switch r.IntN(3 + crowd) {
			case 0: // between edges
				j.Delay = des.Time(r.Int64N(int64(100 * period)))
			case 1: // whole clocks, on edges when the period is whole
				j.Delay = period * des.Time(r.IntN(60))
			}
			js = append(js, j)
		}
		s.jobs = append(s.jobs, js)
	}
	for range r.IntN(6) {
		s.asks = append(s.asks, des.Time(r.Int64N(int64(2000*period))))
	}
	slices.Sort(s.asks)
	return s
}

// device plays a list of jobs on the bus under test.
type device struct {
	e     *des.Engine
	m     *Master
	jobs  []job
	next  int
	timer des.Timer
	t     Transfer
	outs  []outcome
	bytes []byte
	data  bool

	streams []stream
	on      bool
	since   des.Time
}

// stream is one spell of data phases.
type stream struct {
	On, Off  des.Time
	Num, Den int32
}

func (d *device) arm(now des.Time) error {
	if d.next == len(d.jobs) {
		return nil
	}
	if d.jobs[d.next].Delay == 0 && d.next%2 == 1 {
		return d.Handle(now, 0)
	}
	return d.e.Arm(&d.timer, now+d.jobs[d.next].Delay)
}

func (d *device) Handle(des.Time, uint64) error {
	j := d.jobs[d.next]
	d.next++
	d.t = Transfer{Cmd: j.Cmd, Addr: j.Addr, Bytes: j.Bytes, Event: traces.TransferBody}
	return d.m.Start(&d.t)
}

func (d *device) TransferDone(now des.Time, t *Transfer) error {
	if t != &d.t {
		return fmt.Errorf("another transfer came back")
	}
	d.outs = append(d.outs, outcome{t.Requested, t.Granted, t.End, t.Held, t.Lost, t.Bursts, t.Retries, t.Status, t.Moved})
	return d.arm(now)
}

func (d *device) BusStream(now des.Time, on bool, num, den int32) {
	if on == d.on {
		panic("stream switched twice")
	}
	d.on = on
	if on {
		d.since = now
		return
	}
	d.streams = append(d.streams, stream{d.since, now, num, den})
}

// sink is a target without contents.
type sink struct{ device }

func (*sink) BusWrite(uint32, []byte) {}
func (*sink) BusRead(uint32, []byte)  {}

// keeper keeps every burst.
type keeper struct{ bursts []Burst }

func (k *keeper) Burst(b *Burst) { k.bursts = append(k.bursts, *b) }

// check runs s on the bus and on the oracle and compares everything.
func (s *scenario) check(t testing.TB) (clocks int64, bursts []Burst) {
	t.Helper()
	e := des.New(des.Options{RandomTies: s.ties, Seed: 1})
	bus, err := New(s.spec, e, nil)
	if err != nil {
		t.Fatal(err)
	}
	var k keeper
	bus.Watch(&k)
	var devices []*device
	for i, js := range s.jobs {
		d := &device{e: e, jobs: js}
		d.timer.Init(d, PrioHardware-1+des.Priority(i%3), 0)
		if d.m, err = bus.AttachMaster(fmt.Sprint("m", i), uint8(i), d); err != nil {
			t.Fatal(err)
		}
		devices = append(devices, d)
	}
	var sinks []*sink
	for i, w := range s.targets {
		sk := &sink{}
		if err := bus.AttachTarget(fmt.Sprint("t", i), uint8(i), uint32(w.base), uint32(w.end-w.base), w.spec, sk); err != nil {
			t.Fatal(err)
		}
		sinks = append(sinks, sk)
	}
	for _, d := range devices {
		if len(d.jobs) > 0 {
			if err := e.Arm(&d.timer, d.jobs[0].Delay); err != nil {
				t.Fatal(err)
			}
		}
	}
	var got []Usage
	for _, at := range s.asks {
		if err := e.RunUntil(context.Background(), at); err != nil {
			t.Fatal(err)
		}
		got = append(got, bus.Usage())
	}
	if err := e.Run(context.Background()); err != nil {
		t.Fatal(err)
	}

	o := newOracle(s.spec, s.targets, s.jobs)
	for i, at := range s.asks {
		for o.clk.Edge(o.n+1) <= at {
			o.step()
		}
		want := o.usage()
		for j := range want.Owners {
			want.Owners[j].Name, want.Owners[j].Card = fmt.Sprint("m", j), uint8(j)
		}
		if d := cmp.Diff(want, got[i]); d != "" {
			t.Fatalf("usage at %v (-want +got):\n%s", at, d)
		}
		sums(t, got[i])
	}
	for !o.done() {
		if o.step(); o.n > 50_000_000 {
			t.Fatal("the oracle does not end")
		}
	}
	equal(t, "bursts", o.bursts, k.bursts)
	for i, d := range devices {
		equal(t, d.m.Name(), o.ms[i].outs, d.outs)
	}
	s.checkStreams(t, o, devices, sinks)
	return o.n, k.bursts
}

// equal compares two lists; reflection comes in only to show a difference.
func equal[T comparable](t testing.TB, what string, want, got []T) {
	t.Helper()
	if !slices.Equal(want, got) {
		t.Fatalf("%s (-want +got):\n%s", what, cmp.Diff(want, got))
	}
}

// checkStreams compares what devices heard with the bursts of the oracle.
func (s *scenario) checkStreams(t testing.TB, o *oracle, devices []*device, sinks []*sink) {
	t.Helper()
	want := make([][]stream, len(devices))
	wantT := make([][]stream, len(sinks))
	for _, b := range o.bursts {
		if b.Phases == 0 {
			continue
		}
		for i, w := range s.targets {
			if int64(b.Addr) >= w.base && int64(b.Addr) < w.end {
				st := stream{o.clk.Edge(b.Data), o.clk.Edge(b.Last + 1), int32(s.spec.Width / 32), int32(1 + w.spec.DataWait)}
				want[b.Master] = append(want[b.Master], st)
				wantT[i] = append(wantT[i], st)
			}
		}
	}
	for i, d := range devices {
		equal(t, "streams of "+d.m.Name(), want[i], d.streams)
	}
	for i, sk := range sinks {
		equal(t, fmt.Sprint("streams of target ", i), wantT[i], sk.streams)
	}
}

// sums checks that every clock is accounted for exactly once.
func sums(t testing.TB, u Usage) {
	t.Helper()
	if u.Total.Held()+u.Idle != u.Elapsed {
		t.Fatalf("total: %+v does not add up to %d", u.Total, u.Elapsed)
	}
	var all Clocks
	for _, o := range u.Owners {
		if n := o.Held() + o.Arbitration + o.BusBusy + o.Backoff + o.Idle; n != u.Elapsed || o.Idle < 0 {
			t.Fatalf("%s: %+v adds up to %d of %d", o.Name, o, n, u.Elapsed)
		}
		all.add(o.Clocks)
	}
	if all != u.Total {
		t.Fatalf("owners hold %+v, the bus %+v", all, u.Total)
	}
}

// seeded names the seed of a scenario that fails.
type seeded struct {
	testing.TB
	seed int
}

func (s *seeded) Fatalf(format string, a ...any) {
	s.Helper()
	s.TB.Fatalf("seed %d: "+format, append([]any{s.seed}, a...)...)
}

// TestAgainstClockByClock holds the closed form to the machine of
// oracle_test.go: every burst, outcome, stream and account, to the clock.
func TestAgainstClockByClock(t *testing.T) {
	n := testenv.Size(1_000, 10_000)
	var clocks int64
	ends := make([]int, numBurstEnds)
	for seed := range n {
		s := randomScenario(rand.New(rand.NewPCG(uint64(seed), 3)))
		c, bursts := s.check(&seeded{TB: t, seed: seed})
		clocks += c
		for _, b := range bursts {
			ends[b.End]++
		}
	}
	for e, n := range ends {
		if n == 0 {
			t.Errorf("no burst ended by %v", BurstEnd(e))
		}
	}
	t.Logf("%d scenarios, %d clocks; burst ends %v", n, clocks, ends)
}
