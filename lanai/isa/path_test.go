package isa_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"spinesim/sim/testenv"

	"github.com/google/go-cmp/cmp"

	"spinesim/lanai/isa"
)

// The memory of functions: code, data, and a stack at the end.
const (
	pollBytes    = 256 // of each
	pollFuncs    = 5
	pollData     = 2048
	pollPointers = pollData + 256 // words that hold addresses of data
	pollMemory   = 4096
)

// poll writes a random function: it looks at memory and the status register,
// goes one way or another, changes a few words now and then, may call another
// one, and returns 0 as a rule.
func poll(r *rand.Rand, mem []byte, at uint32, other uint32) {
	regs := []uint32{3, 9, 12, 13, 14, 20, 21}
	reg := func() uint32 { return regs[r.IntN(len(regs))] }
	datum := func() uint32 { return pollData + uint32(r.IntN(24))*4 }
	var code []uint32
	add := func(words ...uint32) { code = append(code, words...) }
	add(0x9293FFFC, 0x02900008, 0x22100008) // st %fp,[--%sp]; add %sp,8,%fp; sub %sp,8,%sp
	end := at + pollBytes - 5*4
	for len(code) < pollBytes/4-16 {
		a := datum()
		switch r.IntN(15) {
		case 0, 1, 2: // ld [a], r
			add(0xF<<28 | reg()<<23 | a&0xFFFF)
		case 3: // through a pointer, with an offset
			p := pollPointers + uint32(r.IntN(4))*4
			add(0xF<<28|3<<23|p&0xFFFF, 8<<28|reg()<<23|3<<18|2<<16|uint32(r.IntN(3))*4)
		case 4, 5: // RI
			add(uint32(r.IntN(7))<<28 | reg()<<23 | reg()<<18 | uint32(r.IntN(4))<<16 | uint32(r.IntN(4)))
		case 6: // RR, perhaps if
			add(0xC<<28 | reg()<<23 | reg()<<18 | uint32(r.IntN(2))<<17 | uint32(r.IntN(2))<<16 | reg()<<11 | uint32(r.IntN(7))<<8 | uint32(r.IntN(8)))
		case 7, 8, 9: // compare, and on to the end or a few instructions further
			add(2<<28 | reg()<<18 | 2<<16 | uint32(r.IntN(3)))
			target := end
			if r.IntN(2) == 0 {
				target = at + uint32(len(code)+3+r.IntN(3))*4
			}
			add(0xE<<28|uint32(r.IntN(8))<<25|target|uint32(r.IntN(2)), 1)
		case 10: // st r, [a]
			if r.IntN(3) == 0 {
				add(0xF<<28 | reg()<<23 | 1<<16 | a&0xFFFF)
			}
		case 11: // part of a word
			if r.IntN(2) == 0 {
				add(0xF<<28 | reg()<<23 | 3<<16 | uint32(r.IntN(3))<<14 | 0x800)
			}
		case 12: // the status register
			add(8<<28 | reg()<<23 | 2<<16 | 0xFF28)
		case 14: // a call: add %pc,16,%rca; st %rca,[--%sp]; bt other; or %r3,0,%r6
			if other != 0 && r.IntN(2) == 0 {
				add(0x07880010, 0x9793FFFC, 0xE0000000|other, 0x530C0000)
			}
		case 13: // a short loop
			x := reg()
			add(0xF<<28|x<<23|2<<16|uint32(1+r.IntN(4)), 2<<28|x<<23|x<<18|2<<16|1, 0xE<<28|3<<25|(at+uint32(len(code)+1)*4), 1)
		}
	}
	for at+uint32(len(code))*4 < end {
		add(1)
	}
	code = code[:(pollBytes-5*4)/4]
	found := uint32(0x54000000) // or %r0, 0, %rv
	if r.IntN(3) == 0 {
		found = 0xC<<28 | 8<<23 | 20<<18 | 20<<11 | 4<<8 // and %r20, %r20, %rv
	}
	add(found, 0x8116FFFC, 0x02140000, 0x8296FFF8, 1) // ld -4[%fp],%pc; add %fp,0,%sp; ld -8[%fp],%fp
	for i, w := range code {
		binary.BigEndian.PutUint32(mem[at+uint32(i)*4:], w)
	}
}

// twin is a processor and its memory.
type twin struct {
	mem []byte
	dev *fakeDevices
	cpu *isa.CPU
	bus *truth
}

func newTwin(t *testing.T, mem []byte, free []uint8, seed uint64) *twin {
	t.Helper()
	w := &twin{mem: bytes.Clone(mem), dev: &fakeDevices{}, bus: &truth{free: free, r: rand.New(rand.NewPCG(seed, 3))}}
	var err error
	if w.cpu, err = isa.New(w.mem); err != nil {
		t.Fatal(err)
	}
	w.cpu.Devices, w.cpu.Slots = w.dev, w.bus
	return w
}

// TestPathsAgainstSingleInstructions runs scans of random functions on a
// processor that follows paths and recalls what they led to, often too far and
// taken back, and on one that does neither, while memory, code and rights change
// under both.
func TestPathsAgainstSingleInstructions(t *testing.T) {
	rounds := testenv.Size(100, 400)
	var paths int
	var recalled, executed, faults int64
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 11))
		const cycles = 12000
		mem := make([]byte, pollMemory)
		var entries []uint32
		for i := range uint32(pollFuncs) {
			entries = append(entries, i*pollBytes)
			poll(r, mem, i*pollBytes, (pollFuncs+i%2)*pollBytes)
		}
		for i := range uint32(2) {
			poll(r, mem, (pollFuncs+i)*pollBytes, 0)
		}
		for a := pollData; a < pollPointers; a += 4 {
			binary.BigEndian.PutUint32(mem[a:], uint32(r.IntN(3)))
		}
		for a := pollPointers; a < pollPointers+16; a += 4 {
			binary.BigEndian.PutUint32(mem[a:], pollData+uint32(r.IntN(20))*4)
		}
		free := make([]uint8, cycles+200)
		busy := r.IntN(3)
		for i := range free {
			free[i] = 2
			if busy > 0 && i/300%3 < busy {
				free[i] = uint8(r.IntN(3))
			}
		}
		fast, slow := newTwin(t, mem, free, seed), newTwin(t, mem, free, seed+1)
		slow.cpu.Singly, slow.cpu.StepLoops = true, true
		fast.cpu.Told = r.IntN(4) > 0
		both := []*twin{fast, slow}
		var sets [][]isa.Rights
		if r.IntN(2) == 0 {
			for _, w := range both {
				plain := w.cpu.NewRights()
				must(t, plain.Set(0, pollData, isa.Read|isa.Execute))
				must(t, plain.Set(pollData, pollMemory-pollData, isa.Read|isa.Write))
				other := plain.Clone()
				if r.IntN(8) == 0 {
					must(t, other.Set(entries[2], 16, isa.Read))
				}
				if k := r.IntN(4); k < 3 {
					must(t, other.Set(pollData, 64, []isa.Access{isa.Read, isa.Write, 0}[k]))
				}
				must(t, w.cpu.SetRights(plain))
				sets = append(sets, []isa.Rights{plain, other})
			}
			if len(sets[0][1]) != len(sets[1][1]) || !cmp.Equal(sets[0][1], sets[1][1]) {
				sets[1][1] = sets[0][1].Clone()
			}
		}
		scan := &isa.Scan{Entries: entries, Loop: r.IntN(3) - 1}
		call := func(now int64) {
			for _, w := range both {
				must(t, w.cpu.CallScan(now, scan, pollMemory-64))
			}
		}
		call(0)
		for now := int64(0); now < cycles; {
			to := min(cycles, now+int64(1+r.IntN(300)))
			var stops [2]isa.Stop
			var errs [2]error
			for i, w := range both {
				for at := now; ; {
					w.dev.now = at
					if i == 0 {
						beyond := min(cycles, to+int64(r.IntN(300)))
						stops[i], errs[i] = w.cpu.Ahead(at, beyond, min(cycles, beyond+int64(r.IntN(600))))
						if w.cpu.Cycle() > to {
							stops[i], errs[i] = w.cpu.Back(to)
						}
					} else {
						stops[i], errs[i] = w.cpu.Run(at, to)
					}
					if stops[i] == isa.Device || stops[i] == isa.Boundary && w.cpu.Cycle() < to {
						at = w.cpu.Cycle()
						continue
					}
					break
				}
			}
			compare(t, seed, to, fast, slow, stops, errs)
			anew := stops[0] == isa.Returned
			if errs[0] != nil {
				faults++
				anew = true
				for i, w := range both {
					w.cpu.BoundStack(0, 0)
					if sets != nil {
						must(t, w.cpu.BackToRights(sets[i][0]))
					}
				}
			}
			if anew {
				to = fast.cpu.Cycle()
			}
			if now = to; now >= cycles {
				break
			}
			// Something happens.
			for range r.IntN(2) {
				addr, v := uint32(pollData+r.IntN(28)*4), uint32(r.IntN(3))
				switch r.IntN(12) {
				case 0:
					addr = pollPointers + uint32(r.IntN(4))*4
					v = pollData + uint32(r.IntN(20))*4
				case 1: // code: an instruction that does nothing
					addr, v = uint32(r.IntN(pollFuncs+2))*pollBytes+uint32(3+r.IntN(30))*4, 1
				case 2:
					for _, w := range both {
						w.dev.status = v
					}
				}
				for _, w := range both {
					binary.BigEndian.PutUint32(w.mem[addr:], v)
					w.cpu.Written(addr, 4)
				}
			}
			if r.IntN(60) == 0 {
				low := uint32(pollMemory - 64 - 8*r.IntN(4))
				for _, w := range both {
					w.cpu.BoundStack(low, pollMemory)
				}
			}
			if sets != nil && r.IntN(4) == 0 {
				k := r.IntN(8) / 7
				for i, w := range both {
					must(t, w.cpu.BackToRights(sets[i][k]))
				}
			}
			fast.cpu.Forget()
			slow.cpu.Forget()
			if anew {
				call(now)
			}
		}
		p, n := fast.cpu.Paths()
		paths, recalled = paths+p, recalled+n
		executed += fast.cpu.Counters().Instructions - fast.cpu.Counters().Skipped
		if p, _ := slow.cpu.Paths(); p != 0 {
			t.Fatalf("seed %d: %d paths instruction by instruction", seed, p)
		}
	}
	if paths < 10*rounds || recalled < int64(10*rounds) || executed < int64(1000*rounds) || faults == 0 {
		t.Errorf("%d paths, %d times taken to their end by memos, %d instructions, %d faults in %d rounds: the functions are no test", paths, recalled, executed, faults, rounds)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// compare compares all that can be seen of two processors.
func compare(t *testing.T, seed uint64, to int64, a, b *twin, stops [2]isa.Stop, errs [2]error) {
	t.Helper()
	type seen struct {
		Stop    isa.Stop
		Err     string
		Cycle   int64
		PC      uint32
		Regs    [32]uint32
		Counts  isa.Counters
		Calls   int64
		Last    int64
		Done    isa.Counters
		Devices []string
	}
	look := func(w *twin, stop isa.Stop, err error) (s seen) {
		s.Stop, s.Cycle, s.PC, s.Counts, s.Devices = stop, w.cpu.Cycle(), w.cpu.PC(), w.cpu.Counters(), w.dev.log
		if err != nil {
			s.Err = err.Error()
		}
		s.Calls, s.Last, s.Done = w.cpu.Scanned()
		s.Counts.Skipped, s.Done.Skipped = 0, 0
		for i := range s.Regs {
			s.Regs[i] = w.cpu.Reg(i)
		}
		return s
	}
	if d := cmp.Diff(look(b, stops[1], errs[1]), look(a, stops[0], errs[0])); d != "" {
		t.Fatalf("seed %d, cycle %d: one by one (-), by paths (+):\n%s", seed, to, d)
	}
	if !bytes.Equal(a.mem, b.mem) {
		t.Fatalf("seed %d, cycle %d: memory differs", seed, to)
	}
}
