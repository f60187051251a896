package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"spinesim/sim/des"
)

var update = flag.Bool("update", false, "rewrite golden files")

func mustPath(t testing.TB, s PathSpec) *Path {
	t.Helper()
	p, err := NewPath(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// plainPath has round costs: 100 MHz, so that a clock is 10 ns, and no misses.
func plainPath() PathSpec {
	s := DefaultPath()
	s.Processor.ClockMHz = 100
	s.Processor.ReadMissClocks, s.Processor.WriteMissClocks = 0, 0
	s.Processor.CPI = 0
	s.InterruptLatency = 3 * des.Microsecond
	s.InterruptClocks = 400
	s.PollInterval = 20 * des.Microsecond
	s.PollClocks = 50
	s.DriverClocks, s.AllocateClocks, s.RouteClocks, s.BackClocks = 100, 200, 500, 300
	s.RegisterReads, s.RegisterWrites = 1, 2
	return s
}

func TestServeParts(t *testing.T) {
	const us, ns = des.Microsecond, des.Nanosecond
	// 400 bytes: 100 loads and 100 stores, 2 µs.
	rest := Breakdown{0, us, 660 * ns, 2 * us, 2 * us, 0, 5 * us, 3 * us}
	total := rest.Total()
	for _, c := range []struct {
		name   string
		notify Notify
		gap    des.Time // from the end of the first service to the second packet's
		want   [2]des.Time
	}{
		{"interrupt, idle again", NotifyInterrupt, us, [2]des.Time{7 * us, 7 * us}},
		{"interrupt, queued", NotifyInterrupt, 0, [2]des.Time{7 * us, 4 * us}},
		{"coalesced, idle again", NotifyCoalesced, us, [2]des.Time{7 * us, 7 * us}},
		{"coalesced, queued", NotifyCoalesced, 0, [2]des.Time{7 * us, 0}},
		// The first packet comes at 5 µs and waits until 20.
		{"poll, queued", NotifyPoll, 0, [2]des.Time{15*us + 500*ns, 500 * ns}},
	} {
		s := plainPath()
		s.Notify = c.notify
		p := mustPath(t, s)
		now := 5 * us
		for i, want := range c.want {
			b := p.Serve(400, now)
			full := rest
			full[PartNotify] = want
			if diff := cmp.Diff(full, b); diff != "" {
				t.Errorf("%s, packet %d (-want +got):\n%s", c.name, i, diff)
			}
			if p.Idle(now+b.Total()-1) || !p.Idle(now+b.Total()) {
				t.Errorf("%s, packet %d: idle at the wrong time", c.name, i)
			}
			now += b.Total() + c.gap
		}
		spent, n := p.Spent()
		if n != 2 || spent.Total() != 2*total+c.want[0]+c.want[1] {
			t.Errorf("%s: %v for %d packets", c.name, spent.Total(), n)
		}
	}
}

func TestPollWaitsForItsTick(t *testing.T) {
	s := plainPath()
	s.Notify = NotifyPoll
	for _, c := range []struct{ at, wait des.Time }{{0, 0}, {1, 20*des.Microsecond - 1}, {20 * des.Microsecond, 0}, {39 * des.Microsecond, des.Microsecond}} {
		if got := mustPath(t, s).Serve(64, c.at)[PartNotify]; got != c.wait+500*des.Nanosecond {
			t.Errorf("at %v: %v, want %v and 500 ns", c.at, got, c.wait)
		}
	}
}

func TestPathCopies(t *testing.T) {
	s := plainPath()
	cost := func() des.Time { return mustPath(t, s).Serve(1500, 0)[PartCopy] }
	if got := cost(); got != 7500*des.Nanosecond {
		t.Errorf("one copy of 375 words: %v", got)
	}
	s.Copies = 2
	if got := cost(); got != 15*des.Microsecond {
		t.Errorf("two copies: %v", got)
	}
	// A miss costs the first copy only.
	s.Processor.ReadMissClocks = 10
	if got := cost(); got != 15*des.Microsecond+47*100*des.Nanosecond {
		t.Errorf("two copies, cold: %v", got)
	}
	s.Copies = 0
	if got := cost(); got != 0 {
		t.Errorf("no copy: %v", got)
	}
	s.Copies, s.Processor.ReadMissClocks = 1, 0
	aligned := cost()
	s.CopyOffset, s.Processor.CPI = 14, 1
	if got := cost(); got <= aligned {
		t.Errorf("unaligned copy takes %v, aligned %v", got, aligned)
	}
}

func TestPathFlushes(t *testing.T) {
	s := DefaultPath()
	s.Processor = PowerBookG3()
	s.Pages = 3
	lines := func(bytes int) des.Time { return s.Processor.Time(s.Processor.Flush(0, bytes, 1).Clocks) }
	for _, c := range []struct {
		name             string
		policy           FlushPolicy
		mapped, executed int
		want             [6]des.Time
	}{
		{"routed only", FlushEager, 0, 0, [6]des.Time{}},
		{"eager", FlushEager, 2, 0, [6]des.Time{0, lines(1500), 0, lines(1500), 0, lines(1500)}},
		{"lazy", FlushLazy, 2, 0, [6]des.Time{0, lines(4096), 0, lines(4096), 0, lines(4096)}},
		{"never", FlushNever, 1, 1, [6]des.Time{}},
		{"at execute", FlushAtExecute, 1, 3, [6]des.Time{2: lines(4096), 5: lines(4096)}},
	} {
		s.Flush, s.MappedEvery, s.ExecutedEvery = c.policy, c.mapped, c.executed
		p := mustPath(t, s)
		var got [6]des.Time
		for i := range got {
			got[i] = p.Serve(1500, des.Time(i)*des.Millisecond)[PartFlush]
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestPathErrors(t *testing.T) {
	for _, c := range []struct {
		change func(*PathSpec)
		want   string
	}{
		{func(s *PathSpec) { s.Processor.Name = "" }, "host path: processor without a name"},
		{func(s *PathSpec) { s.QueuePackets = 0 }, "host path: queue is 0, want 1 to 1e+06"},
		{func(s *PathSpec) { s.Notify = 7 }, "host path: unknown notification 7"},
		{func(s *PathSpec) { s.Flush = 9 }, "host path: unknown flush policy 9"},
		{func(s *PathSpec) { s.Notify, s.PollInterval = NotifyPoll, 0 }, "host path: poll interval is 0 ps, want above 0 to 1 s"},
		{func(s *PathSpec) { s.RouteClocks = -1 }, "host path: route clocks is -1, want 0 to 1e+08"},
		{func(s *PathSpec) { s.CopyOffset = 64 }, "host path: copy offset is 64, want 0 to 63"},
		{func(s *PathSpec) { s.Pages = 0 }, "host path: pages is 0, want 1 to 1e+06"},
	} {
		s := DefaultPath()
		c.change(&s)
		if _, err := New(s, des.New(des.Options{}), nil); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
	if err := DefaultPath().Validate(); err != nil {
		t.Error(err)
	}
	if _, err := NewWithServer(fixed(0), 0, des.New(des.Options{}), nil); err == nil || err.Error() != "host: driver queue: capacity is 0 packets, want 1 to 1000000" {
		t.Errorf("error %v", err)
	}
}

func TestNamesRoundTrip(t *testing.T) {
	s := DefaultPath()
	s.Notify, s.Flush = NotifyCoalesced, FlushAtExecute
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back PathSpec
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, back); diff != "" {
		t.Errorf("after a round trip (-want +got):\n%s", diff)
	}
	if json.Unmarshal([]byte(`{"notify":"shout"}`), &back) == nil || json.Unmarshal([]byte(`{"flush":"often"}`), &back) == nil {
		t.Error("unknown names: no error")
	}
}

// fixed is a server of one service time.
type fixed des.Time

func (f fixed) Service(int, des.Time) des.Time { return des.Time(f) }

// arrivals offers packets at given times and logs what comes out.
type arrivals struct {
	h    *Host
	at   []des.Time
	lost []uint64
	done []Packet
	end  []des.Time
	fail error
}

func (a *arrivals) Handle(now des.Time, arg uint64) error {
	ok, err := a.h.Offer(now, Packet{ID: arg, Bytes: 64 + int(arg)%1400})
	if !ok {
		a.lost = append(a.lost, arg)
	}
	return err
}

func (a *arrivals) Routed(now des.Time, p Packet, b Breakdown) error {
	a.done = append(a.done, p)
	a.end = append(a.end, now)
	return a.fail
}

func (a *arrivals) run(t *testing.T, e *des.Engine) error {
	t.Helper()
	for i, at := range a.at {
		if err := e.Schedule(at, Priority, a, uint64(i)); err != nil {
			t.Fatal(err)
		}
	}
	return e.Run(context.Background())
}

// The host against a queue worked out by hand over the same arrivals: the
// times at which packets are taken and done, and which are lost.
func TestHostAgainstRecursion(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 4))
		spec := DefaultPath()
		spec.QueuePackets = 1 + rng.IntN(6)
		spec.Notify = Notify(rng.IntN(NumNotify))
		var a arrivals
		var at des.Time
		for range 400 {
			at += 1 + des.Time(rng.ExpFloat64()*float64(40*des.Microsecond))
			a.at = append(a.at, at)
		}
		e := des.New(des.Options{})
		h, err := New(spec, e, &a)
		if err != nil {
			t.Fatal(err)
		}
		a.h = h
		if err := a.run(t, e); err != nil {
			t.Fatal(err)
		}

		path := mustPath(t, spec)
		type job struct {
			id         uint64
			start, end des.Time
		}
		var jobs []job
		var lost []uint64
		var busy, waited des.Time
		for i, at := range a.at {
			waiting := 0
			free := des.Time(0)
			for _, j := range jobs {
				if j.start > at {
					waiting++
				}
				free = j.end
			}
			// The packet that would start at once does not need the queue.
			if waiting >= spec.QueuePackets {
				lost = append(lost, uint64(i))
				continue
			}
			start := max(at, free)
			d := path.Service(64+i%1400, start)
			jobs = append(jobs, job{uint64(i), start, start + d})
			busy += d
			waited += start - at
		}
		var want, got []job
		for _, j := range jobs {
			want = append(want, job{j.id, 0, j.end})
		}
		for i, p := range a.done {
			got = append(got, job{p.ID, 0, a.end[i]})
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(job{})); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
		if diff := cmp.Diff(lost, a.lost); diff != "" {
			t.Fatalf("seed %d, lost (-want +got):\n%s", seed, diff)
		}
		s := h.Stats()
		if s.Offered != 400 || s.Lost != uint64(len(lost)) || s.Served != uint64(len(jobs)) || s.Busy != busy || s.Waited != waited || s.Deepest > spec.QueuePackets {
			t.Errorf("seed %d: %+v", seed, s)
		}
		if h.Serving() || h.Waiting() != 0 {
			t.Errorf("seed %d: something is left", seed)
		}
	}
}

func TestHostPassesErrorsOn(t *testing.T) {
	broken := errors.New("broken")
	a := arrivals{at: []des.Time{1}, fail: broken}
	e := des.New(des.Options{})
	h, err := NewWithServer(fixed(des.Microsecond), 1, e, &a)
	if err != nil {
		t.Fatal(err)
	}
	a.h = h
	if err := a.run(t, e); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	a = arrivals{at: []des.Time{1}}
	e = des.New(des.Options{})
	if a.h, err = NewWithServer(fixed(-5), 1, e, &a); err != nil {
		t.Fatal(err)
	}
	if err := a.run(t, e); err == nil {
		t.Error("a negative service time: no error")
	}
}

func TestQueueIsFirstInFirstOut(t *testing.T) {
	q, err := NewQueue(3)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(5, 5))
	var model []uint64
	for i := range uint64(2000) {
		if rng.IntN(2) == 0 {
			ok := q.Push(Packet{ID: i})
			if ok != (len(model) < 3) {
				t.Fatalf("push %v with %d waiting", ok, len(model))
			}
			if ok {
				model = append(model, i)
			}
		} else {
			p, ok := q.Pop()
			if ok != (len(model) > 0) || ok && p.ID != model[0] {
				t.Fatalf("pop %v %d with %v waiting", ok, p.ID, model)
			}
			if ok {
				model = model[1:]
			}
		}
		if q.Len() != len(model) || q.Cap() != 3 {
			t.Fatalf("length %d, want %d", q.Len(), len(model))
		}
	}
	if q.Deepest() != 3 {
		t.Errorf("deepest %d", q.Deepest())
	}
}

// relay offers the next packet when one is done.
type relay struct{ h *Host }

func (r *relay) Routed(now des.Time, p Packet, _ Breakdown) error {
	p.ID++
	_, err := r.h.Offer(now, p)
	return err
}

func TestHostDoesNotAllocate(t *testing.T) {
	for _, bytes := range []int{64, 1500, 4096, 9000} {
		e := des.New(des.Options{})
		var r relay
		spec := DefaultPath()
		spec.Flush, spec.MappedEvery = FlushLazy, 2
		h, err := New(spec, e, &r)
		if err != nil {
			t.Fatal(err)
		}
		r.h = h
		for i := range 4 {
			if _, err := h.Offer(0, Packet{ID: uint64(i), Bytes: bytes}); err != nil {
				t.Fatal(err)
			}
		}
		step := func() {
			if _, err := e.Step(); err != nil {
				t.Fatal(err)
			}
		}
		for range 100 {
			step()
		}
		if n := testing.AllocsPerRun(1000, step); n != 0 {
			t.Errorf("%d bytes: %g allocations a packet", bytes, n)
		}
	}
}

func TestReport(t *testing.T) {
	r, err := NewReport(DefaultPath())
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]any
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	const file = "testdata/report.txt"
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("report differs from %s (-want +got); -update rewrites it:\n%s", file, diff)
	}
	bad := DefaultPath()
	bad.Pages = 0
	if _, err := NewReport(bad); err == nil {
		t.Error("a bad path: no error")
	}
}

func BenchmarkHost(b *testing.B) {
	e := des.New(des.Options{})
	var r relay
	h, err := New(DefaultPath(), e, &r)
	if err != nil {
		b.Fatal(err)
	}
	r.h = h
	if _, err := h.Offer(0, Packet{Bytes: 1500}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := e.Step(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "packets/s")
}
