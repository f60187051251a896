package pci

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"spinesim/sim/des"
	"spinesim/traces"

	"github.com/google/go-cmp/cmp"
)

// porter writes random pieces of its own region and reads them back, and
// keeps what the region must hold.
type porter struct {
	r      *rand.Rand
	m      *Master
	base   int // offset of its region in the flat memory
	size   int
	shadow []byte
	t      Transfer
	buf    []byte
	ops    int
}

// flat is one memory behind several windows of different targets.
type flat struct {
	base uint32
	b    []byte
}

func (f *flat) BusWrite(addr uint32, p []byte)       { copy(f.b[addr-f.base:], p) }
func (f *flat) BusRead(addr uint32, p []byte)        { copy(p, f.b[addr-f.base:]) }
func (*flat) BusStream(des.Time, bool, int32, int32) {}
func (*porter) BusStream(des.Time, bool, int32, int32) {
}

func (p *porter) start() error {
	if p.ops == 0 {
		return nil
	}
	p.ops--
	n := 1 + p.r.IntN(p.size)
	at := p.base + p.r.IntN(p.size-n+1)
	carry := n
	if p.r.IntN(3) == 0 {
		carry = p.r.IntN(n + 1)
	}
	p.t = Transfer{Cmd: Command(p.r.IntN(int(numCommands))), Addr: 0x10000 + uint32(at), Bytes: n, Data: p.buf[:carry]}
	for i := range p.t.Data {
		p.t.Data[i] = byte(p.r.Uint32())
	}
	return p.m.Start(&p.t)
}

func (p *porter) TransferDone(_ des.Time, t *Transfer) error {
	if t.Status != StatusOK || t.Moved != t.Bytes {
		return fmt.Errorf("%v after %d of %d", t.Status, t.Moved, t.Bytes)
	}
	own := p.shadow[t.Addr-0x10000:]
	if t.Cmd == MemWrite {
		copy(own, t.Data)
	} else if !bytes.Equal(own[:len(t.Data)], t.Data) {
		return fmt.Errorf("read at %#x brought other bytes than were written", t.Addr)
	}
	return p.start()
}

// TestContents moves real bytes through windows that disconnect and retry
// while all masters contend.
func TestContents(t *testing.T) {
	for seed := range 300 {
		r := rand.New(rand.NewPCG(uint64(seed), 8))
		s := randomScenario(r)
		s.spec.RetryLimit = 0
		if s.spec.Park == ParkMaster {
			s.spec.Park, s.spec.ParkAt = ParkLast, 0
		}
		e, b := newBus(t, s.spec)
		const size = 6 * 1024
		mem := make([]byte, size)
		for at := 0; at < size; { // windows side by side: transfers cross them
			n := min(16*(1+r.IntN(200)), size-at)
			spec := s.targets[r.IntN(len(s.targets))].spec
			spec.Populated = 0
			if err := b.AttachTarget(fmt.Sprint("at ", at), 0, 0x10000+uint32(at), uint32(n), spec, &flat{0x10000 + uint32(at), mem[at : at+n]}); err != nil {
				t.Fatal(err)
			}
			at += n
		}
		shadow := make([]byte, size)
		var ps []*porter
		for i := range MaxMasters {
			p := &porter{r: r, base: i * 1000, size: 1000, shadow: shadow, ops: 20, buf: make([]byte, 1000)}
			var err error
			if p.m, err = b.AttachMaster("p", uint8(i), p); err != nil {
				t.Fatal(err)
			}
			ps = append(ps, p)
		}
		for _, p := range ps {
			if err := p.start(); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Run(t.Context()); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !bytes.Equal(mem, shadow) {
			t.Fatalf("seed %d: memory differs from what was written", seed)
		}
	}
}

// records keeps what the recorder passes on.
type records struct{ rs []traces.Record }

func (s *records) Record(r *traces.Record) error { s.rs = append(s.rs, *r); return nil }

// TestRecord compares a transfer's record with its fields.
func TestRecord(t *testing.T) {
	e := des.New(des.Options{})
	var s records
	rec := traces.NewRecorder(&s)
	b, err := New(DefaultSpec(), e, rec)
	if err != nil {
		t.Fatal(err)
	}
	card := newRAM(t, b, 3, 1<<21, CardTarget())
	run(t, e, 31*des.Nanosecond)
	tr := Transfer{Addr: card.base, Bytes: 64, Packet: 9, Cause: 77, Event: traces.TransferHeader, Peer: 1}
	if err := card.m.Start(&tr); err != nil {
		t.Fatal(err)
	}
	run(t, e, des.Millisecond)
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	// Asked at 31 ns: seen at edge 2, granted at 4; 1 + 16·3 clocks to the end.
	want := []traces.Record{{
		Kind: traces.KindTransfer, Event: traces.TransferHeader, Card: 3, Peer: 1, Queue: traces.NoQueue,
		Packet: 9, Cause: 77, ID: tr.ID, Ready: 31_000, Start: 4 * 30_000, End: 53 * 30_000,
		Bytes: 64, Cycles: 50,
	}}
	if d := cmp.Diff(want, s.rs); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if tr.ID == 0 || tr.End != want[0].End {
		t.Errorf("transfer says %v, ID %d", tr.End, tr.ID)
	}
}
