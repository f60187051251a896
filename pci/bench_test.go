package pci

import (
	"context"
	"fmt"
	"testing"

	"spinesim/sim/des"
	"spinesim/traces"
)

// mover is a card that writes packets into its neighbour's window without
// pause.
type mover struct {
	m     *Master
	t     Transfer
	bytes int
}

func (v *mover) TransferDone(_ des.Time, t *Transfer) error {
	t.Packet++
	return v.m.Start(t)
}
func (*mover) BusStream(des.Time, bool, int32, int32) {}
func (*mover) BusWrite(uint32, []byte)                {}
func (*mover) BusRead(uint32, []byte)                 {}

// nowhere takes records and forgets them.
type nowhere struct{ n int }

func (w *nowhere) Record(*traces.Record) error { w.n++; return nil }

// contended is a bus on which n cards move packets round in a ring.
func contended(t testing.TB, n int, spec Spec, bytes int, data []byte) (*des.Engine, *Bus) {
	t.Helper()
	e := des.New(des.Options{})
	b, err := New(spec, e, traces.NewRecorder(&nowhere{}))
	if err != nil {
		t.Fatal(err)
	}
	var vs []*mover
	for i := range n {
		v := &mover{bytes: bytes}
		if v.m, err = b.AttachMaster(fmt.Sprint("card ", i), uint8(i), v); err != nil {
			t.Fatal(err)
		}
		if err := b.AttachTarget(fmt.Sprint("card ", i), uint8(i), 0xE0000000+uint32(i)<<21, 1<<21, CardTarget(), v); err != nil {
			t.Fatal(err)
		}
		vs = append(vs, v)
	}
	for i, v := range vs {
		v.t = Transfer{Addr: 0xE0100000 + uint32((i+1)%n)<<21, Bytes: bytes, Data: data, Event: traces.TransferBody}
		if err := v.m.Start(&v.t); err != nil {
			t.Fatal(err)
		}
	}
	return e, b
}

func run(t testing.TB, e *des.Engine, d des.Time) {
	t.Helper()
	if err := e.RunUntil(context.Background(), e.Now()+d); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkContendedBus reports simulated bus clocks a second of real time of
// four cards that all want the bus all the time.
func BenchmarkContendedBus(b *testing.B) {
	for _, c := range []struct {
		name  string
		burst int
		bytes int
	}{{"packets", 0, 1500}, {"bursts64", 64, 1500}, {"bursts32", 32, 1500}, {"headers", 0, 32}} {
		b.Run(c.name, func(b *testing.B) {
			spec := DefaultSpec()
			spec.BurstBytes = c.burst
			e, bus := contended(b, 4, spec, c.bytes, make([]byte, 32))
			run(b, e, des.Millisecond)
			from := bus.Usage().Elapsed
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				run(b, e, des.Millisecond)
			}
			b.StopTimer()
			b.ReportMetric(float64(bus.Usage().Elapsed-from)/b.Elapsed().Seconds(), "clocks/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkIdleBus is one card alone: the cost of an uncontended transfer.
func BenchmarkIdleBus(b *testing.B) {
	e, bus := contended(b, 1, DefaultSpec(), 1500, nil)
	run(b, e, des.Millisecond)
	from := bus.Usage().Elapsed
	b.ReportAllocs()
	for b.Loop() {
		run(b, e, des.Millisecond)
	}
	b.ReportMetric(float64(bus.Usage().Elapsed-from)/b.Elapsed().Seconds(), "clocks/s")
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, park := range []Parking{ParkNone, ParkLast} {
		spec := DefaultSpec()
		spec.Park = park
		spec.BurstBytes = 256
		e, bus := contended(t, 6, spec, 1500, make([]byte, 64))
		run(t, e, des.Millisecond)
		u := bus.Usage()
		before := u.Total.Data
		if n := testing.AllocsPerRun(50, func() {
			run(t, e, des.Millisecond)
			bus.ReadUsage(&u)
		}); n != 0 {
			t.Errorf("park %d: %v allocations a millisecond", park, n)
		}
		if u.Total.Data == before {
			t.Error("nothing moved")
		}
	}
}
