package pci

import (
	"fmt"
	"math"
	"testing"

	"spinesim/sim/des"
	"spinesim/traces"

	"github.com/google/go-cmp/cmp"
)

// once runs a single transfer on an idle bus and returns it with its bursts.
func once(t testing.TB, spec Spec, target TargetSpec, tr Transfer) (Transfer, []Burst) {
	t.Helper()
	e := des.New(des.Options{})
	b, err := New(spec, e, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := &device{e: e}
	if d.m, err = b.AttachMaster("card 0", 0, d); err != nil {
		t.Fatal(err)
	}
	if err := b.AttachTarget("card 1", 1, 0xE0000000, 1<<21, target, &sink{}); err != nil {
		t.Fatal(err)
	}
	var k keeper
	b.Watch(&k)
	d.t = tr
	if err := d.m.Start(&d.t); err != nil {
		t.Fatal(err)
	}
	run(t, e, des.Second)
	sums(t, b.Usage())
	if len(d.outs) != 1 {
		t.Fatalf("%d transfers ended", len(d.outs))
	}
	return d.t, k.bursts
}

// TestReferenceFigures holds the bus to the textbook's clocks and MB/s at
// 33⅓ MHz and 32 bits.
func TestReferenceFigures(t *testing.T) {
	plain := func(w, l int) TargetSpec { return TargetSpec{WriteWait: w, ReadLatency: l} }
	wide := DefaultSpec()
	wide.Width = 64
	fast := wide
	fast.Clock = des.Frequency{Num: 200_000_000, Den: 3}
	for _, c := range []struct {
		name   string
		spec   Spec
		target TargetSpec
		cmd    Command
		bytes  int
		clocks uint32
		mbps   int
	}{
		{"64-byte write", DefaultSpec(), plain(2, 8), MemWrite, 64, 20, 107},
		{"256-byte write", DefaultSpec(), plain(2, 8), MemWrite, 256, 68, 125},
		{"64-byte read", DefaultSpec(), plain(2, 8), MemRead, 64, 27, 79},
		{"256-byte read", DefaultSpec(), plain(2, 8), MemRead, 256, 75, 114},
		{"256-byte read multiple", DefaultSpec(), plain(2, 8), MemReadMultiple, 256, 75, 114},
		{"64-bit, 256-byte write", wide, plain(2, 8), MemWrite, 256, 36, 237},
		{"64-bit 66 MHz, 256-byte write", fast, plain(2, 8), MemWrite, 256, 36, 474},
		{"programmed read of a card", DefaultSpec(), CardTarget(), MemRead, 4, 14, 10},
		{"programmed write to a card", DefaultSpec(), CardTarget(), MemWrite, 4, 5, 27},
		{"programmed write, fast target", DefaultSpec(), plain(1, 8), MemWrite, 4, 4, 33},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr, _ := once(t, c.spec, c.target, Transfer{Cmd: c.cmd, Addr: 0xE0100000, Bytes: c.bytes})
			seconds := float64(c.clocks) / c.spec.Clock.Hz()
			mbps := int(math.Round(float64(c.bytes) / seconds / 1e6))
			if tr.Held != c.clocks || mbps != c.mbps {
				t.Errorf("%d clocks, %d MB/s; want %d and %d", tr.Held, mbps, c.clocks, c.mbps)
			}
			if span := tr.End - tr.Granted; span != des.Time(math.Round(float64(c.clocks-1)/c.spec.Clock.Hz()*1e12)) {
				t.Errorf("grant to end takes %v", span)
			}
			clk, _ := des.NewClock(c.spec.Clock, 0)
			if tr.Granted != clk.Edge(2) {
				t.Errorf("granted at %v, not 2 clocks after REQ#", tr.Granted)
			}
		})
	}
}

// TestPacketToPeer is the model's default: 1,500 bytes into a card's window
// take about 35 µs on an idle bus.
func TestPacketToPeer(t *testing.T) {
	tr, bursts := once(t, DefaultSpec(), CardTarget(), Transfer{Addr: 0xE0100000, Bytes: 1500})
	if len(bursts) != 1 || tr.Held != 1+375*3+1 {
		t.Errorf("%d bursts, %d clocks", len(bursts), tr.Held)
	}
	if us := (tr.End - tr.Requested).Microseconds(); us < 33.5 || us > 35.5 {
		t.Errorf("%.2f µs", us)
	}
	split := DefaultSpec()
	split.BurstBytes = 64
	tr, bursts = once(t, split, CardTarget(), Transfer{Addr: 0xE0100000, Bytes: 1500})
	if len(bursts) != 24 || tr.Held != 24*2+375*3 || tr.Lost != 0 {
		t.Errorf("in bursts of 64: %d bursts, %d clocks, %d lost", len(bursts), tr.Held, tr.Lost)
	}
	if us := (tr.End - tr.Requested).Microseconds(); us < 34.5 || us > 36 {
		t.Errorf("in bursts of 64: %.2f µs", us)
	}
}

// TestEnds shows one transfer a way of ending a burst.
func TestEnds(t *testing.T) {
	type row struct {
		end     BurstEnd
		phases  int64
		address int64
		idle    int64
	}
	limit := DefaultSpec()
	limit.RetryLimit = 2
	parked := DefaultSpec()
	parked.Park = ParkLast
	for _, c := range []struct {
		name   string
		spec   Spec
		target TargetSpec
		tr     Transfer
		status Status
		moved  int
		want   []row
	}{
		{"boundary", DefaultSpec(), TargetSpec{Boundary: 32}, Transfer{Addr: 0xE0000010, Bytes: 48}, StatusOK, 48,
			[]row{{EndDisconnect, 4, 2, 8}, {EndDone, 8, 11, 20}}},
		{"boundary, parked", parked, TargetSpec{Boundary: 32}, Transfer{Addr: 0xE0000010, Bytes: 48}, StatusOK, 48,
			[]row{{EndDisconnect, 4, 2, 8}, {EndDone, 8, 9, 18}}},
		{"eight clocks", DefaultSpec(), TargetSpec{DataWait: 8}, Transfer{Addr: 0xE0000000, Bytes: 8}, StatusOK, 8,
			[]row{{EndDisconnect, 1, 2, 13}, {EndDone, 1, 16, 26}}},
		{"seven waits are allowed", DefaultSpec(), TargetSpec{DataWait: 7}, Transfer{Addr: 0xE0000000, Bytes: 8}, StatusOK, 8,
			[]row{{EndDone, 2, 2, 19}}},
		{"sixteen clocks", DefaultSpec(), TargetSpec{WriteWait: 16}, Transfer{Addr: 0xE0000000, Bytes: 8}, StatusOK, 8,
			// Ready in clock 19; back in 8, 15 (5 to go: now it can wait).
			[]row{{EndRetry, 0, 2, 4}, {EndDone, 2, 8, 21}}},
		{"fifteen waits are allowed", DefaultSpec(), TargetSpec{WriteWait: 15}, Transfer{Addr: 0xE0000000, Bytes: 8}, StatusOK, 8,
			[]row{{EndDone, 2, 2, 20}}},
		{"back-off doubles", DefaultSpec(), TargetSpec{ReadLatency: 60}, Transfer{Cmd: MemRead, Addr: 0xE0000000, Bytes: 4}, StatusOK, 4,
			[]row{{EndRetry, 0, 2, 4}, {EndRetry, 0, 8, 10}, {EndRetry, 0, 16, 18}, {EndRetry, 0, 28, 30}, {EndDone, 1, 48, 65}}},
		{"retries exceeded", limit, TargetSpec{ReadLatency: 60}, Transfer{Cmd: MemRead, Addr: 0xE0000000, Bytes: 4}, RetriesExceeded, 0,
			[]row{{EndRetry, 0, 2, 4}, {EndRetry, 0, 8, 10}}},
		{"read line", DefaultSpec(), TargetSpec{ReadLine: 32}, Transfer{Cmd: MemRead, Addr: 0xE0000000, Bytes: 64}, StatusOK, 64,
			[]row{{EndDisconnect, 8, 2, 13}, {EndDone, 8, 16, 26}}},
		{"read multiple has no line", DefaultSpec(), TargetSpec{ReadLine: 32}, Transfer{Cmd: MemReadMultiple, Addr: 0xE0000000, Bytes: 64}, StatusOK, 64,
			[]row{{EndDone, 16, 2, 20}}},
		{"unaligned", DefaultSpec(), TargetSpec{}, Transfer{Addr: 0xE0000003, Bytes: 6}, StatusOK, 6,
			[]row{{EndDone, 3, 2, 6}}},
		{"nobody", DefaultSpec(), TargetSpec{}, Transfer{Addr: 0xD0000000, Bytes: 8}, MasterAbort, 0,
			[]row{{EndMasterAbort, 0, 2, 8}}},
		{"out of the window", DefaultSpec(), TargetSpec{}, Transfer{Addr: 0xE01FFFF8, Bytes: 16}, MasterAbort, 8,
			[]row{{EndDisconnect, 2, 2, 6}, {EndMasterAbort, 0, 9, 15}}},
		{"unpopulated", DefaultSpec(), TargetSpec{Devsel: 1, WriteWait: 1, ReadLatency: 1, Populated: 64}, Transfer{Addr: 0xE0000038, Bytes: 16}, TargetAbort, 8,
			[]row{{EndDisconnect, 2, 2, 7}, {EndTargetAbort, 0, 10, 13}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.tr.Cause, c.tr.Event = 7, traces.TransferBody
			tr, bursts := once(t, c.spec, c.target, c.tr)
			var got []row
			for _, b := range bursts {
				got = append(got, row{b.End, b.Phases, b.Address, b.Idle})
			}
			if d := cmp.Diff(c.want, got, cmp.AllowUnexported(row{})); d != "" {
				t.Errorf("bursts (-want +got):\n%s", d)
			}
			if tr.Status != c.status || tr.Moved != c.moved {
				t.Errorf("%v after %d bytes; want %v after %d", tr.Status, tr.Moved, c.status, c.moved)
			}
			last := got[len(got)-1].idle
			if n := int64(tr.Held + tr.Lost - 1); n != last-got[0].address {
				t.Errorf("held %d and lost %d do not span the transfer of %d", tr.Held, tr.Lost, last-got[0].address)
			}
		})
	}
}

// TestLatencyTimer shows that a burst ends with the data phase in progress
// once the timer has run out and another master has been seen.
func TestLatencyTimer(t *testing.T) {
	for _, c := range []struct {
		ask  int64 // clock of the other's REQ#, which is seen 2 later
		last int64 // last data clock of the first burst; data move in clocks 5, 8, 11 …
		end  BurstEnd
	}{
		{0, 68, EndTimer},  // there from the start: the timer decides, in clock 66
		{60, 68, EndTimer}, // seen before the timer runs out
		{80, 83, EndTimer}, // seen in clock 82
		{81, 83, EndTimer},
		{82, 86, EndTimer},
		{1000, 1004, EndTimer},
		{1122, 1124, EndTimer},
		{1123, 1127, EndDone}, // seen within the last data phase
		{2000, 1127, EndDone},
	} {
		e := des.New(des.Options{})
		b, err := New(DefaultSpec(), e, nil)
		if err != nil {
			t.Fatal(err)
		}
		var k keeper
		b.Watch(&k)
		if err := b.AttachTarget("t", 1, 0xE0000000, 1<<21, CardTarget(), &sink{}); err != nil {
			t.Fatal(err)
		}
		d0 := &device{e: e, jobs: []job{{Addr: 0xE0000000, Bytes: 1500}}}
		d1 := &device{e: e, jobs: []job{{Addr: 0xE0000000, Bytes: 4, Delay: b.TimeOf(c.ask)}}}
		for i, d := range []*device{d0, d1} {
			d.timer.Init(d, 0, 0)
			if d.m, err = b.AttachMaster(fmt.Sprint(i), uint8(i), d); err != nil {
				t.Fatal(err)
			}
			if err := d.arm(0); err != nil {
				t.Fatal(err)
			}
		}
		run(t, e, des.Millisecond)
		if got := k.bursts[0]; got.Last != c.last || got.End != c.end {
			t.Errorf("asked in %d: first burst ends in clock %d by %v; want %d by %v", c.ask, got.Last, got.End, c.last, c.end)
		}
		if c.end == EndTimer && k.bursts[1].Address != k.bursts[0].Idle+1 {
			t.Errorf("asked in %d: arbitration is not hidden: idle in %d, next address in %d", c.ask, k.bursts[0].Idle, k.bursts[1].Address)
		}
	}
}

// TestSixShareFairly keeps six masters asking for ever: at no time is one
// ahead of another by more than a burst, and none waits for more than one
// burst of each of the others.
func TestSixShareFairly(t *testing.T) {
	for _, burst := range []int{0, 32, 256} {
		spec := DefaultSpec()
		spec.BurstBytes = burst
		e, b := contended(t, MaxMasters, spec, 1500, nil)
		var f fairness
		b.Watch(&f)
		u := b.Usage()
		for range 2000 {
			run(t, e, 3700*des.Nanosecond)
			b.ReadUsage(&u)
			lo, hi := u.Owners[0].Held(), u.Owners[0].Held()
			for _, o := range u.Owners {
				lo, hi = min(lo, o.Held()), max(hi, o.Held())
			}
			if hi-lo > f.longest {
				t.Fatalf("bursts of %d: held %d to %d clocks; more than %d apart", burst, lo, hi, f.longest)
			}
		}
		if f.wait > (MaxMasters-1)*f.longest+int64(spec.GrantLatency) {
			t.Errorf("bursts of %d: a master waited %d clocks with bursts of at most %d", burst, f.wait, f.longest)
		}
		if f.n < 1000 {
			t.Errorf("bursts of %d: only %d bursts", burst, f.n)
		}
	}
}

// fairness keeps the longest burst and the longest wait.
type fairness struct {
	n             int
	longest, wait int64
}

func (f *fairness) Burst(b *Burst) {
	f.n++
	f.longest = max(f.longest, b.Idle+1-b.Address)
	f.wait = max(f.wait, b.Address-b.Wanted)
}
