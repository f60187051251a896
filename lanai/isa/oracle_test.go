package isa_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"spinesim/sim/testenv"

	"github.com/google/go-cmp/cmp"

	"spinesim/lanai/isa"
)

// oracle is the processor as the package comment has it, stepped cycle by
// cycle, with a queue of addresses for the delay slots.
type oracle struct {
	mem        []byte
	dev        *fakeDevices
	reg        [32]uint32
	n, z, c, v bool
	queue      []uint32 // addresses in flight, the instruction first
	cycle      int64
	wait       int   // interlock cycles left, -1: not begun
	got        uint8 // accesses granted
	loaded     uint8 // register that the last instruction loaded, 0: none
	unit       bool  // the last one keeps the load/store unit
	done       int64
	counts     map[uint32]int64 // by pc
	interlocks int64
	waits      int64
	fault      error
}

func newOracle(mem []byte, dev *fakeDevices) *oracle {
	o := &oracle{mem: mem, dev: dev, wait: -1, queue: []uint32{0, 4, 8}, counts: map[uint32]int64{}}
	o.reg[1] = ^uint32(0)
	return o
}

func (o *oracle) set(r uint8, v uint32) {
	if r > 2 {
		o.reg[r] = v
	}
}

func (o *oracle) holds(c isa.Cond) bool {
	var h bool
	switch c >> 1 {
	case 0:
		h = true
	case 1:
		h = o.c && !o.z
	case 2:
		h = !o.c
	case 3:
		h = !o.z
	case 4:
		h = !o.v
	case 5:
		h = !o.n
	case 6:
		h = o.n == o.v
	default:
		h = o.n == o.v && !o.z
	}
	return h == (c&1 == 0)
}

func reads(i isa.Instr) (rs []uint8) {
	switch i.Kind {
	case isa.ALUImm, isa.PopCount, isa.LeadingZeros, isa.TrailingZeros:
		rs = []uint8{i.Rs1}
	case isa.ALUReg, isa.Select:
		rs = []uint8{i.Rs1, i.Rs2}
	case isa.Load, isa.Store:
		if i.Mode != isa.Absolute {
			rs = []uint8{i.Rs1}
		}
	case isa.LoadIndex, isa.StoreIndex:
		rs = []uint8{i.Rs1}
		if i.Mode != isa.Direct {
			rs = append(rs, i.Rs2)
		}
	}
	if i.IsStore() {
		rs = append(rs, i.Rd)
	}
	return rs
}

// pass takes one cycle.
func (o *oracle) pass(free uint8) {
	if o.fault != nil {
		return
	}
	pc := o.queue[0]
	var i isa.Instr
	fetched := pc%4 == 0 && int(pc)+4 <= len(o.mem)
	if !fetched {
		o.fault = isa.ErrOutside
		if pc%4 != 0 {
			o.fault = isa.ErrMisaligned
		}
		return
	}
	i = isa.Decode(binary.BigEndian.Uint32(o.mem[pc:]))
	memory := i.IsLoad() || i.IsStore()
	if o.wait < 0 {
		o.wait = 0
		for _, r := range reads(i) {
			if o.loaded != 0 && r == o.loaded {
				o.wait = 1
			}
		}
		if memory && o.unit {
			o.wait = 1
		}
	}
	o.cycle++
	if o.wait > 0 {
		o.wait--
		o.interlocks++
		return
	}
	o.got += free
	if o.got < 1 || memory && o.got < 2 {
		o.waits++
		return
	}
	o.wait, o.got = -1, 0
	if o.fault = o.effect(i, pc); o.fault == nil {
		o.done++
		o.counts[pc]++
	}
}

func (o *oracle) flags(v uint32, c, over bool) uint32 {
	o.n, o.z, o.c, o.v = int32(v) < 0, v == 0, c, over
	return v
}

func (o *oracle) alu(op isa.Op, a, b uint32, setFlags bool) uint32 {
	in := uint64(0)
	var v uint32
	var c, over bool
	sum := func(x, y uint32) {
		wide := uint64(x) + uint64(y) + in
		v, c = uint32(wide), wide>>32 != 0
		exact := int64(int32(x)) + int64(int32(y)) + int64(in)
		over = exact != int64(int32(v))
	}
	if o.c && (op == isa.AddCarry || op == isa.SubBorrow) || op == isa.Sub {
		in = 1
	}
	switch op {
	case isa.Add, isa.AddCarry:
		sum(a, b)
	case isa.Sub, isa.SubBorrow:
		sum(a, ^b)
	case isa.And:
		v = a & b
	case isa.Or:
		v = a | b
	case isa.Xor:
		v = a ^ b
	default:
		v = a
		for k := int64(int32(b)); k > 0 && k > int64(int32(b))-40; k-- {
			c = v>>31 != 0
			v <<= 1
			if int64(int32(b)) > 32 {
				c = false
			}
		}
		for k := int64(int32(b)); k < 0 && k < int64(int32(b))+40; k++ {
			if op == isa.ShiftArithmetic {
				v = uint32(int32(v) >> 1)
			} else {
				v >>= 1
			}
		}
	}
	if setFlags {
		o.flags(v, c, over)
	}
	return v
}

func (o *oracle) effect(i isa.Instr, pc uint32) error {
	o.reg[2] = pc
	jump, slots := uint32(0), 0
	result := func(r uint8, v uint32, delay int) {
		if r == 2 {
			jump, slots = v, delay
		}
		o.set(r, v)
	}
	loaded, unit := uint8(0), false
	a, b := o.reg[i.Rs1], o.reg[i.Rs2]
	switch i.Kind {
	case isa.Nop, isa.Log:
	case isa.ALUImm:
		result(i.Rd, o.alu(i.Op, a, i.Imm, i.SetFlags), 1)
	case isa.ALUReg:
		if o.holds(i.Cond) {
			result(i.Rd, o.alu(i.Op, a, b, i.SetFlags), 1)
		}
	case isa.Select:
		if !o.holds(i.Cond) {
			a = b
		}
		result(i.Rd, a, 1)
	case isa.MoveImm:
		result(i.Rd, i.Imm, 1)
	case isa.PopCount:
		result(i.Rd, uint32(bits.OnesCount32(a)), 1)
	case isa.LeadingZeros:
		result(i.Rd, uint32(bits.LeadingZeros32(a)), 1)
	case isa.TrailingZeros:
		result(i.Rd, uint32(bits.TrailingZeros32(a)), 1)
	case isa.SetCond:
		v := uint32(0)
		if o.holds(i.Cond) {
			v = 1
		}
		result(i.Rs1, v, 1)
	case isa.Branch:
		if o.holds(i.Cond) {
			jump, slots = i.Imm, 1
		}
	case isa.BranchRelative:
		if o.holds(i.Cond) {
			jump, slots = pc+i.Imm, 1
		}
	case isa.Load, isa.Store, isa.LoadIndex, isa.StoreIndex:
		off, size := i.Imm, int(i.Bytes)
		if i.Kind == isa.LoadIndex || i.Kind == isa.StoreIndex {
			off = b
			if i.Op >= isa.ShiftLogical {
				size = 4
			}
		}
		base := a
		if i.Mode == isa.Absolute {
			base = 0
		}
		moved := base + off
		if i.Kind == isa.LoadIndex || i.Kind == isa.StoreIndex {
			moved = o.alu(i.Op, base, off, false)
		}
		addr := moved
		if i.Mode == isa.Direct || i.Mode == isa.Post {
			addr = base
		}
		v, err := o.access(i, addr, size, o.reg[i.Rd])
		if err != nil {
			return err
		}
		if i.Mode == isa.Post || i.Mode == isa.Pre {
			o.set(i.Rs1, moved)
		}
		if i.IsLoad() {
			result(i.Rd, v, 2)
			if i.Rd > 2 {
				loaded = i.Rd
			}
		}
		unit = i.PartWord
	default:
		return isa.ErrUndefined
	}
	o.loaded, o.unit = loaded, unit
	if slots > 0 {
		o.queue = append(o.queue[:slots+1], jump)
	}
	o.queue = o.queue[1:]
	for len(o.queue) < 3 {
		o.queue = append(o.queue, o.queue[len(o.queue)-1]+4)
	}
	return nil
}

func (o *oracle) access(i isa.Instr, addr uint32, size int, v uint32) (uint32, error) {
	if addr >= isa.DeviceBase {
		switch {
		case addr%4 != 0:
			return 0, isa.ErrMisaligned
		case size != 4:
			return 0, isa.ErrDevice
		case i.IsLoad():
			return o.dev.at(o.cycle).Load(addr)
		}
		return 0, o.dev.at(o.cycle).Store(addr, v)
	}
	switch {
	case addr%uint32(size) != 0:
		return 0, isa.ErrMisaligned
	case int64(addr)+int64(size) > int64(len(o.mem)):
		return 0, isa.ErrOutside
	}
	w := o.mem[addr:]
	if i.IsStore() {
		switch size {
		case 4:
			binary.BigEndian.PutUint32(w, v)
		case 2:
			binary.BigEndian.PutUint16(w, uint16(v))
		default:
			w[0] = byte(v)
		}
		return 0, nil
	}
	switch {
	case size == 4:
		return binary.BigEndian.Uint32(w), nil
	case size == 2 && i.ZeroExtend:
		return uint32(binary.BigEndian.Uint16(w)), nil
	case size == 2:
		return uint32(int16(binary.BigEndian.Uint16(w))), nil
	case i.ZeroExtend:
		return uint32(w[0]), nil
	}
	return uint32(int8(w[0])), nil
}

// fakeDevices are a clock at 0xFFFFFF34, a register that refuses at 0xFFFFFFF0,
// and a status register at 0xFFFFFF28 that changes with events only. Everything
// else remembers.
type fakeDevices struct {
	now    int64
	status uint32
	kept   [64]uint32
	log    []string
}

var errRefused = errors.New("refused")

func (d *fakeDevices) at(now int64) *fakeDevices { d.now = now; return d }

func (d *fakeDevices) Steady(addr uint32) bool { return addr == 0xFFFFFF28 }

func (d *fakeDevices) Load(addr uint32) (uint32, error) {
	switch addr {
	case 0xFFFFFF28:
		return d.status, nil
	case 0xFFFFFF34:
		return uint32(d.now), nil
	case 0xFFFFFFF0:
		return 0, errRefused
	}
	d.log = append(d.log, fmt.Sprintf("load %#x at %d", addr, d.now))
	return d.kept[addr>>2&63], nil
}

func (d *fakeDevices) Store(addr, v uint32) error {
	if addr == 0xFFFFFFF0 {
		return errRefused
	}
	d.log = append(d.log, fmt.Sprintf("store %#x %#x at %d", addr, v, d.now))
	d.kept[addr>>2&63] = v
	return nil
}

// truth is what is free in each cycle; windows of it are as long as it likes.
type truth struct {
	free      []uint8
	r         *rand.Rand
	stretches []stretch
}

// stretch is where what is free repeats.
type stretch struct{ from, to, period int64 }

// repeats fills free with patterns that repeat for some time.
func (s *truth) repeats() {
	for from := int64(0); from < int64(len(s.free)); {
		x := stretch{from, from + 40 + int64(s.r.IntN(400)), 1 + int64(s.r.IntN(7))}
		x.to = min(x.to, int64(len(s.free)))
		for i := x.from; i < x.to; i++ {
			if i == x.from {
				s.free[i] = uint8(1 + s.r.IntN(2))
			} else if i < x.from+x.period {
				s.free[i] = uint8(s.r.IntN(3))
			} else {
				s.free[i] = s.free[i-x.period]
			}
		}
		s.stretches = append(s.stretches, x)
		from = x.to
	}
}

func (s *truth) Phase(cycle int64) (phase uint64, until int64) {
	for i, x := range s.stretches {
		if cycle >= x.from && cycle < x.to {
			return uint64(i)<<8 | uint64(1+(cycle-x.from)%x.period), x.to
		}
	}
	return 0, cycle
}

func (s *truth) Window(cycle int64) isa.Window {
	rest := s.free[cycle:]
	n := 1 + s.r.IntN(min(40, len(rest)))
	for k, f := range rest[:n] {
		if f != 2 {
			if k == 0 {
				// Of the waits that end behind the window some are known.
				return isa.Window{Free: rest[:n], Waits: isa.AppendWaits(nil, rest[:min(len(rest), n+s.r.IntN(20))], n)}
			}
			n = k
			break
		}
	}
	return isa.Window{Until: cycle + int64(n)}
}

const (
	oracleBytes = 2048
	oracleCode  = 512
)

// word makes a random instruction that more often than not does something.
func word(r *rand.Rand) uint32 {
	reg := func() uint32 { return uint32(r.IntN(32)) }
	addr := func() uint32 { return uint32(r.IntN(oracleBytes)) &^ 3 }
	cond := func() (hi, lo uint32) { return uint32(r.IntN(8)), uint32(r.IntN(2)) }
	switch r.IntN(24) {
	case 0, 1, 2, 3: // RI
		w := uint32(r.IntN(8))<<28 | reg()<<23 | reg()<<18 | uint32(r.IntN(4))<<16 | r.Uint32()&0xFFFF
		if w>>28 == 7 {
			w = w&^0xFFFF | uint32(r.IntN(70)-35)&0xFFFF
		}
		return w
	case 4, 5, 6, 7: // RR
		hi, lo := cond()
		if r.IntN(2) == 0 {
			hi, lo = 0, 0
		}
		op := uint32(r.IntN(8))
		w := 0xC<<28 | reg()<<23 | reg()<<18 | uint32(r.IntN(2))<<17 | lo<<16 | reg()<<11 | op<<8 | hi
		if op == 7 {
			w |= []uint32{0, 0b10000, 0b11000}[r.IntN(3)] << 3
		}
		return w
	case 8, 9: // SLS
		a := addr()
		return 0xF<<28 | reg()<<23 | a>>16<<18 | uint32(r.IntN(2))<<16 | a&0xFFFF
	case 10: // SLI, often an address for later
		return 0xF<<28 | reg()<<23 | 2<<16 | addr()
	case 11, 12: // RM from r0
		return 8<<28 | uint32(r.IntN(2))<<28 | reg()<<23 | 2<<16 | addr()
	case 13, 14: // RM from a register
		return 8<<28 | uint32(r.IntN(2))<<28 | reg()<<23 | reg()<<18 | uint32(r.IntN(4))<<16 | uint32(r.IntN(8)*4-16)&0xFFFF
	case 15, 16: // SPLS
		return 0xF<<28 | reg()<<23 | reg()<<18&(uint32(r.IntN(2))*0x7C0000) | 3<<16 | uint32(r.IntN(32))<<10 | uint32(r.IntN(64))&^1
	case 17: // RRM
		return 0xA<<28 | uint32(r.IntN(2))<<28 | reg()<<23 | reg()<<18 | uint32(r.IntN(4))<<16 | reg()<<11 | uint32(r.IntN(8))<<8 | uint32(r.IntN(2))<<6 | uint32(r.IntN(6))
	case 18, 19: // branches
		hi, lo := cond()
		if r.IntN(3) == 0 {
			return 0xE1<<24 | hi<<25 | uint32(r.IntN(33)*4-64)&0xFFFC | 2 | lo
		}
		return 0xE<<28 | hi<<25 | uint32(r.IntN(oracleCode))&^3 | lo
	case 20:
		hi, lo := cond()
		return 0xE<<28 | hi<<25 | reg()<<18 | 2 | lo
	case 21:
		return 0xD<<28 | reg()<<23 | reg()<<18 | uint32(1+r.IntN(3))
	case 22: // a device
		return 8<<28 | uint32(r.IntN(2))<<28 | reg()<<23 | 2<<16 | 0xFF00 | []uint32{0x28, 0x28, 0x34, 0x34, 0x44, 0x48, 0xF0, 0x46}[r.IntN(8)]
	}
	if r.IntN(4) == 0 {
		return r.Uint32()
	}
	return uint32(r.IntN(8))
}

// TestAgainstOracle runs random programs, which change themselves, are changed
// by others, and meet a memory bus that leaves them 0 to 2 accesses a cycle, in
// runs of random length, many of which go too far and are taken back.
func TestAgainstOracle(t *testing.T) {
	rounds := testenv.Size(500, 1500)
	var n tally
	for seed := range rounds {
		n.againstOracle(t, uint64(seed), nil)
	}
	if n.executed < int64(rounds)*20 || n.faults == 0 || n.skipped < 1000 || n.taken < int64(rounds) {
		t.Errorf("%d instructions, %d faults, %d skipped, %d taken back in %d rounds: the programs are no test", n.executed, n.faults, n.skipped, n.taken, rounds)
	}
}

// FuzzRun has the program, its registers, what is free and what happens from a
// fuzzer.
func FuzzRun(f *testing.F) {
	f.Add(uint64(1), []byte{0x87, 0x82, 0x06, 0x00, 0x92, 0x02, 0x07, 0x00, 0xE0, 0, 0, 0})
	f.Add(uint64(2), []byte{0xF1, 0x83, 0x19, 0x00, 0xE1, 0, 0xFF, 0xFE})
	f.Fuzz(func(t *testing.T, seed uint64, code []byte) {
		var n tally
		n.againstOracle(t, seed, code)
	})
}

type tally struct{ executed, faults, skipped, taken int64 }

// againstOracle runs one random program, which begins with the given code.
func (n *tally) againstOracle(t *testing.T, seed uint64, code []byte) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	const cycles = 700
	bus := &truth{free: make([]uint8, cycles+64), r: r}
	free := bus.free
	if busy := r.IntN(6); busy >= 4 {
		bus.repeats()
	} else {
		for i := range free {
			free[i] = 2
			if busy > 0 && i/50%4 < busy && r.IntN(4) < 3 {
				free[i] = uint8(r.IntN(3))
			}
		}
	}
	a := make([]byte, oracleBytes)
	for i := 0; i < oracleBytes; i += 4 {
		binary.BigEndian.PutUint32(a[i:], word(r))
		if i >= oracleCode {
			binary.BigEndian.PutUint32(a[i:], uint32(r.IntN(oracleBytes)))
		}
	}
	if r.IntN(3) == 0 {
		// A loop that waits for a word in memory or the status register,
		// with a call's store in it.
		loop := []uint32{0x87820600, 0x92020700, 0x03BC0000, 0x8782FF28, 0x203C0005, 0xE6000000, 0x82020700}
		for i, w := range loop {
			binary.BigEndian.PutUint32(a[4*i:], w)
		}
	}
	copy(a, code)
	b := append([]byte(nil), a...)
	da, db := &fakeDevices{}, &fakeDevices{}
	cpu, err := isa.New(a)
	if err != nil {
		t.Fatal(err)
	}
	cpu.Devices, cpu.Slots, cpu.StepLoops = da, bus, r.IntN(8) == 0
	ahead := r.IntN(4) > 0
	profiled := r.IntN(2) == 0
	profile := isa.NewProfile(0, oracleBytes)
	if profiled {
		cpu.Profile = profile
	}
	o := newOracle(b, db)
	for i := 3; i < 32; i++ {
		v := uint32(r.IntN(oracleBytes)) &^ 3
		if r.IntN(3) == 0 {
			v = r.Uint32()
		}
		cpu.SetReg(i, v)
		o.reg[i] = v
	}
	for now := int64(0); now < cycles && o.fault == nil; {
		to := min(cycles, now+int64(1+r.IntN(60)))
		for o.cycle < to && o.fault == nil {
			o.pass(free[o.cycle])
		}
		var stop isa.Stop
		for at := now; ; {
			da.now = at
			if ahead {
				over := min(cycles, to+int64(r.IntN(150)))
				stop, err = cpu.Ahead(at, over, min(cycles, over+int64(r.IntN(300))))
				if cpu.Cycle() > to {
					stop, err = cpu.Back(to)
					n.taken++
				}
			} else {
				stop, err = cpu.Run(at, to)
			}
			if stop == isa.Device {
				at = cpu.Cycle()
				continue
			} else if stop == isa.Boundary && cpu.Cycle() < to {
				continue // behind a device access
			}
			break
		}
		var fault *isa.Fault
		if errors.As(err, &fault) {
			if fault.Access == "fetch" && fault.Cycle == to && o.fault == nil {
				o.pass(0) // meets it as it begins
			}
			if o.fault == nil || !errors.Is(fault.Err, o.fault) || fault.PC != o.queue[0] || fault.Cycle != o.cycle {
				t.Fatalf("seed %d: %v; oracle at %#x in cycle %d: %v", seed, fault, o.queue[0], o.cycle, o.fault)
			}
			n.faults++
			break
		}
		if o.fault != nil {
			// The oracle meets a bad fetch when it begins, in a cycle's
			// first half, so to speak.
			if stop, err := cpu.Run(to, to+1); stop != isa.Faulted {
				t.Fatalf("seed %d: oracle at %#x: %v; %v, %v", seed, o.queue[0], o.fault, stop, err)
			}
			break
		}
		if cpu.Cycle() != to || cpu.PC() != o.queue[0] || cpu.Counters().Instructions != o.done {
			t.Fatalf("seed %d: cycle %d pc %#x after %d, oracle %d %#x after %d", seed, cpu.Cycle(), cpu.PC(), cpu.Counters().Instructions, o.cycle, o.queue[0], o.done)
		}
		// Something happens.
		now = to
		if ahead && r.IntN(2) == 0 {
			continue // nothing
		}
		if r.IntN(4) == 0 && now < cycles {
			cpu.Hold(now + 1)
			continue
		}
		cpu.Forget()
		if r.IntN(3) == 0 {
			at := r.IntN(oracleBytes) &^ 3
			v := word(r)
			binary.BigEndian.PutUint32(a[at:], v)
			binary.BigEndian.PutUint32(b[at:], v)
		}
		if r.IntN(3) == 0 {
			da.status = uint32(r.IntN(8))
			db.status = da.status
		}
		if r.IntN(2) == 0 && now < cycles {
			cpu.Hold(now + 1)
		}
	}
	var got, want [32]uint32
	for i := range 32 {
		got[i], want[i] = cpu.Reg(i), o.reg[i]
	}
	got[2], want[2] = 0, 0
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("seed %d: registers (-oracle +isa):\n%s", seed, d)
	}
	if d := cmp.Diff(b, a); d != "" {
		t.Fatalf("seed %d: memory (-oracle +isa):\n%s", seed, d)
	}
	if d := cmp.Diff(db.log, da.log); d != "" {
		t.Fatalf("seed %d: devices (-oracle +isa):\n%s", seed, d)
	}
	if is := cpu.Counters(); profiled {
		cpu.Forget()
		var sum isa.Cell
		for pc := uint32(0); pc < oracleBytes; pc += 4 {
			x := profile.At(pc)
			sum.Count += x.Count
			sum.Interlocks += x.Interlocks
			sum.Waits += x.Waits
			if x.Count != o.counts[pc] {
				t.Fatalf("seed %d: %#x executed %d times, oracle %d", seed, pc, x.Count, o.counts[pc])
			}
		}
		// What the instruction in progress has waited is not in it yet.
		if sum.Count != is.Instructions || sum.Interlocks > is.Interlocks || sum.Waits > is.Waits || sum.Interlocks+sum.Waits+60 < is.Interlocks+is.Waits {
			t.Fatalf("seed %d: profile %+v, counters %+v", seed, sum, is)
		}
	}
	if is := cpu.Counters(); is.Interlocks != o.interlocks || is.Waits != o.waits {
		t.Fatalf("seed %d: counters %+v, oracle %d and %d", seed, is, o.interlocks, o.waits)
	}
	n.executed += o.done
	n.skipped += cpu.Counters().Skipped
}
