package traffic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"spinesim/lanai"
	"spinesim/sim/des"
	"spinesim/traces"
)

// listed is a source of arrivals written down.
type listed struct {
	list []Arrival
	n    int
	err  error // after the last
}

func (l *listed) Next(a *Arrival) (bool, error) {
	if l.n == len(l.list) {
		return false, l.err
	}
	*a = l.list[l.n]
	l.n++
	return true, nil
}

// card takes one frame at a time, each for a time of its own, and starts the
// next at once.
type card struct {
	t     testing.TB
	e     *des.Engine
	up    lanai.Upstream
	pool  *FramePool
	timer des.Timer
	take  func() des.Time
	woken int
	got   []string
	quiet bool
}

func (c *card) Wake(now des.Time) error {
	c.woken++
	if c.timer.Armed() {
		c.t.Errorf("woken at %v while busy", now)
	}
	return c.begin(now)
}

func (c *card) begin(now des.Time) error {
	if c.up.Head() == nil {
		return nil
	}
	return c.e.Arm(&c.timer, now+c.take())
}

func (c *card) Handle(now des.Time, _ uint64) error {
	f := c.up.Head()
	if err := c.up.Pop(now); err != nil {
		return err
	}
	if !c.quiet {
		c.got = append(c.got, fmt.Sprintf("%d:%d:%x at %d from %d", f.ID, f.Bytes, f.Data, now, f.Arrived))
	}
	c.pool.Put(f)
	return c.begin(now)
}

type kept struct{ records []traces.Record }

func (k *kept) Record(r *traces.Record) error { k.records = append(k.records, *r); return nil }

func rig(t testing.TB, spec PortSpec, src Source, rec *traces.Recorder, take func() des.Time) (*Port, *card) {
	t.Helper()
	e := des.New(des.Options{})
	pool, err := NewFramePool(60)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPort(spec, src, e, rec, pool, new(PacketIDs))
	if err != nil {
		t.Fatal(err)
	}
	c := &card{t: t, e: e, up: p, pool: pool, take: take}
	c.timer.Init(c, prioPort, 0)
	return p, c
}

// The port and a card against a queue worked out on paper, arrival by arrival.
func TestPortAgainstSlowQueue(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 3))
	for round := range 300 {
		capacity := 1 + rng.IntN(6)
		var list []Arrival
		var services []des.Time
		now := des.Time(0)
		for i := range rng.IntN(60) {
			// Odd arrivals, even services: no two events at one time.
			now += des.Time(2 * rng.IntN(40))
			data := []byte{byte(i), byte(round)}
			list = append(list, Arrival{At: now + 1, Bytes: 2 + rng.IntN(1000), Data: data})
			services = append(services, des.Time(2*(1+rng.IntN(40))))
			if rng.IntN(5) == 0 {
				list = append(list, Arrival{Skip: fmt.Sprint("reason ", rng.IntN(3))})
			}
		}

		// The oracle: who is in the FIFO when each arrives?
		var want []string
		var leave []des.Time
		var lost, skipped, offered uint64
		served := 0
		free := des.Time(0)
		for _, a := range list {
			if a.Skip != "" {
				skipped++
				continue
			}
			offered++
			inside := 0
			for _, l := range leave {
				if l >= a.At {
					inside++
				}
			}
			if inside >= capacity {
				lost++
				continue
			}
			begin := max(a.At, free)
			// Odd times at idle starts; keep departures off arrival times.
			free = begin + services[served]
			if free%2 == 1 {
				free++
			}
			served++
			leave = append(leave, free)
			want = append(want, fmt.Sprintf("%d:%d:%x at %d from %d", offered, a.Bytes, a.Data, free, a.At))
		}

		var sink kept
		rec := traces.NewRecorder(&sink)
		n := 0
		var c *card
		var p *Port
		p, c = rig(t, PortSpec{Card: 2, Capacity: capacity}, &listed{list: list}, rec, func() des.Time {
			d := services[n]
			n++
			if (c.e.Now()+d)%2 == 1 {
				d++
			}
			return d
		})
		if err := p.Start(c); err != nil {
			t.Fatal(err)
		}
		if err := c.e.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, c.got); d != "" {
			t.Fatalf("round %d, %d slots: %s", round, capacity, d)
		}
		got := p.Counts()
		var gotSkipped uint64
		for _, s := range got.Skipped {
			gotSkipped += s.Count
		}
		if got.Offered != offered || got.Lost != lost || got.Delivered != uint64(len(want)) || got.Waiting != 0 || gotSkipped != skipped {
			t.Fatalf("round %d: %+v; want %d offered, %d lost, %d skipped", round, got, offered, lost, skipped)
		}
		if got.OfferedBytes != got.LostBytes+got.DeliveredBytes {
			t.Fatalf("round %d: bytes %+v", round, got)
		}
		if !p.Drained() || !p.Ended() || c.pool.Out() != 0 {
			t.Fatalf("round %d: not drained, or %d frames out", round, c.pool.Out())
		}
		if err := rec.Close(); err != nil {
			t.Fatal(err)
		}
		checkPortRecords(t, sink.records, got, capacity)
	}
}

// checkPortRecords replays the record: what it says must add up by itself.
func checkPortRecords(t *testing.T, records []traces.Record, c Counts, capacity int) {
	t.Helper()
	var enters, losses uint64
	level := 0
	entered := map[uint64]traces.ID{}
	for _, r := range records {
		if r.Card != 2 || r.Queue != traces.NoQueue || r.Start != r.End {
			t.Fatalf("record %+v", r)
		}
		switch r.Kind {
		case traces.KindEnter:
			enters++
			if r.Packet != enters || r.ID == 0 || r.Event != traces.NoEvent {
				t.Fatalf("enter %d: %+v", enters, r)
			}
			entered[r.Packet] = r.ID
		case traces.KindLeave:
			losses++
			if level != capacity || r.Verdict != traces.VerdictDropped || r.Reason != traces.ReasonFIFOFull ||
				r.Cause != entered[r.Packet] || r.Peer != 2 {
				t.Fatalf("lost at level %d: %+v", level, r)
			}
		case traces.KindLevel:
			if r.Event != traces.LevelFIFO || int(r.Count) == level || int(r.Count) > capacity {
				t.Fatalf("level %d after %d: %+v", r.Count, level, r)
			}
			level = int(r.Count)
		default:
			t.Fatalf("record %+v", r)
		}
	}
	if enters != c.Offered || losses != c.Lost || level != 0 {
		t.Fatalf("%d entered, %d lost, level %d at the end; counts %+v", enters, losses, level, c)
	}
}

// A saturating port is never seen empty or full and loses nothing.
func TestSaturatingPort(t *testing.T) {
	for _, capacity := range []int{2, 3, 16} {
		src, err := NewSynthetic(spec(t), 1, "traffic/0")
		if err != nil {
			t.Fatal(err)
		}
		var sink kept
		rec := traces.NewRecorder(&sink)
		rng := rand.New(rand.NewPCG(1, 9))
		var p *Port
		p, c := rig(t, PortSpec{Card: 2, Capacity: capacity, Limit: 500, Saturating: true}, src, rec, func() des.Time {
			if p.n == 0 || p.n == capacity {
				t.Fatalf("%d of %d slots taken", p.n, capacity)
			}
			return des.Time(1 + rng.IntN(1000))
		})
		if err := p.Start(c); err != nil {
			t.Fatal(err)
		}
		if err := c.e.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		got := p.Counts()
		if got.Offered != 500 || got.Lost != 0 || got.Delivered != 500 || !p.Drained() || c.woken != 1 || c.pool.Out() != 0 {
			t.Errorf("%d slots: %+v, woken %d times", capacity, got, c.woken)
		}
		if err := rec.Close(); err != nil {
			t.Fatal(err)
		}
		checkPortRecords(t, sink.records, got, capacity)
	}
}

func TestPortLimitAndIDs(t *testing.T) {
	e := des.New(des.Options{})
	pool, err := NewFramePool(64)
	if err != nil {
		t.Fatal(err)
	}
	var ids PacketIDs
	var ports []*Port
	var cards []*card
	for i := range 2 {
		src, err := NewSynthetic(spec(t), 1, fmt.Sprintf("traffic/%d", i))
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPort(PortSpec{Card: uint8(i), Capacity: 16, Limit: 100}, src, e, nil, pool, &ids)
		if err != nil {
			t.Fatal(err)
		}
		c := &card{t: t, e: e, up: p, pool: pool, take: func() des.Time { return 1000 }}
		c.timer.Init(c, prioPort, 0)
		if err := p.Start(c); err != nil {
			t.Fatal(err)
		}
		ports, cards = append(ports, p), append(cards, c)
	}
	if err := e.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	// The numbers of both ports together are 1 … 200, in order of arrival.
	at := map[uint64]des.Time{}
	for _, c := range cards {
		for _, g := range c.got {
			var id uint64
			var bytes int
			var data string
			var now, from des.Time
			if _, err := fmt.Sscanf(g, "%d:%d:%s at %d from %d", &id, &bytes, &data, &now, &from); err != nil {
				t.Fatal(err)
			}
			at[id] = from
		}
	}
	for id := uint64(2); id <= 200; id++ {
		if at[id] < at[id-1] || at[id-1] == 0 {
			t.Fatalf("packet %d at %v, packet %d at %v", id-1, at[id-1], id, at[id])
		}
	}
	if ids.Last() != 200 || len(at) != 200 || !ports[0].Drained() || !ports[1].Drained() {
		t.Errorf("%d packets numbered, %d seen", ids.Last(), len(at))
	}
}

func TestPortErrors(t *testing.T) {
	pool, err := NewFramePool(60)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []PortSpec{{}, {Capacity: -1}, {Capacity: 1, Saturating: true}, {Capacity: 1 << 30}} {
		if _, err := NewPort(s, &listed{}, des.New(des.Options{}), nil, pool, new(PacketIDs)); err == nil {
			t.Errorf("%+v was accepted", s)
		}
	}
	if _, err := NewPort(PortSpec{Capacity: 1}, nil, nil, nil, nil, nil); err == nil {
		t.Error("a port of nothing was accepted")
	}
	for _, carry := range []int{0, 59, 70000} {
		if _, err := NewFramePool(carry); err == nil {
			t.Errorf("a pool that carries %d bytes was accepted", carry)
		}
	}

	p, c := rig(t, PortSpec{Capacity: 4}, &listed{list: []Arrival{{At: 10, Bytes: 40}, {At: 9, Bytes: 40}}}, nil, func() des.Time { return 1 })
	if err := p.Start(c); err != nil {
		t.Fatal(err)
	}
	if err := c.e.Run(context.Background()); !errors.Is(err, ErrOrder) {
		t.Errorf("arrivals that go back: %v", err)
	}
	if err := p.Pop(10); err != nil {
		t.Error(err)
	}
	if err := p.Pop(11); !errors.Is(err, ErrEmpty) || p.Head() != nil {
		t.Errorf("popping nothing: %v", err)
	}

	bad := errors.New("torn")
	for _, saturating := range []bool{false, true} {
		p, c = rig(t, PortSpec{Card: 3, Capacity: 4, Saturating: saturating},
			&listed{list: []Arrival{{At: 10, Bytes: 40}, {At: 20, Bytes: 40}}, err: bad}, nil, func() des.Time { return 1 })
		err := p.Start(c)
		if err == nil {
			err = c.e.Run(context.Background())
		}
		if !errors.Is(err, bad) || !p.Ended() {
			t.Errorf("a source that fails: %v", err)
		}
	}
	p, c = rig(t, PortSpec{Capacity: 4, Saturating: true}, &listed{}, nil, nil)
	if err := p.Start(c); err != nil || !p.Drained() || c.woken != 0 {
		t.Errorf("a source of nothing: %v", err)
	}
}

func TestFramePool(t *testing.T) {
	pool, err := NewFramePool(60)
	if err != nil {
		t.Fatal(err)
	}
	pool.Put(nil)
	seen := map[*lanai.Frame]bool{}
	var out []*lanai.Frame
	for i := range 100 {
		f := pool.Get(1500, 20+i)
		if seen[f] || f.Bytes != 1500 || len(f.Data) != min(20+i, 60) || cap(f.Data) != 60 {
			t.Fatalf("frame %d: %+v, capacity %d", i, f, cap(f.Data))
		}
		for j := range f.Data {
			f.Data[j] = byte(i)
		}
		f.ID, f.BadCRC = uint64(i), true
		seen[f] = true
		out = append(out, f)
	}
	for i, f := range out { // no two share their bytes
		for _, b := range f.Data {
			if b != byte(i) {
				t.Fatalf("frame %d was overwritten with %d", i, b)
			}
		}
	}
	out[0].Data = out[0].Data[14:] // the owner cut off a header
	for _, f := range out {
		pool.Put(f)
	}
	for range 100 {
		f := pool.Get(40, 60)
		if f.ID != 0 || f.BadCRC || len(f.Data) != 40 || cap(f.Data) < 60 {
			t.Fatalf("reused frame %+v", f)
		}
	}
	if pool.Out() != 100 || pool.Carry() != 60 {
		t.Errorf("%d out", pool.Out())
	}
}

func TestPortDoesNotAllocate(t *testing.T) {
	for _, saturating := range []bool{false, true} {
		s := spec(t)
		src, err := NewSynthetic(s, 1, "traffic/0")
		if err != nil {
			t.Fatal(err)
		}
		// Slow enough to lose packets too.
		p, c := rig(t, PortSpec{Capacity: 4, Saturating: saturating}, src, nil, func() des.Time { return 90 * des.Microsecond })
		c.quiet = true
		if err := p.Start(c); err != nil {
			t.Fatal(err)
		}
		step := func() {
			if ok, err := c.e.Step(); err != nil || !ok {
				t.Fatal(ok, err)
			}
		}
		for range 1000 {
			step()
		}
		if n := testing.AllocsPerRun(5000, step); n != 0 {
			t.Errorf("saturating %v: %v allocations an event", saturating, n)
		}
		if lost := p.Counts().Lost; (lost > 0) == saturating {
			t.Errorf("saturating %v: %d lost", saturating, lost)
		}
	}
}

func BenchmarkPort(b *testing.B) {
	src, err := NewSynthetic(spec(b), 1, "traffic/0")
	if err != nil {
		b.Fatal(err)
	}
	p, c := rig(b, PortSpec{Capacity: 16}, src, nil, func() des.Time { return 70 * des.Microsecond })
	c.quiet = true
	if err := p.Start(c); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.e.Step(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(p.Counts().Offered)/b.Elapsed().Seconds(), "packets/s")
}
