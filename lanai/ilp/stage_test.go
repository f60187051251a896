package ilp

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustStage(t testing.TB, spec StageSpec) *Stage {
	t.Helper()
	s, err := NewStage(spec)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// rfc1071 is the checksum as the RFC words it: 16-bit big-endian additions with
// end-around carry.
func rfc1071(p []byte) uint16 {
	var sum uint32
	for i := 0; i < len(p); i += 2 {
		x := uint32(p[i]) << 8
		if i+1 < len(p) {
			x |= uint32(p[i+1])
		}
		if sum += x; sum > 0xffff {
			sum -= 0xffff
		}
	}
	return ^uint16(sum)
}

var chains = [][]string{
	{"cksum"},
	{"bswap"},
	{"bswap", "pes", "cksum"},
	{"cksum", "pes", "bswap", "crc32"},
	{"pes", "synthetic:3", "cksum"},
	{"synthetic:0", "synthetic:9", "synthetic:15"},
	{"crc32", "cksum"},
}

// both applies a chain to a copy of p in each mode and fails unless bytes and
// results agree.
func both(t testing.TB, chain []string, p []byte) []byte {
	t.Helper()
	var out [NumModes][]byte
	var results [NumModes][]uint32
	for mode := range Mode(NumModes) {
		s := mustStage(t, StageSpec{Functions: chain, Mode: mode, Machine: Lanai4()})
		// A first packet, so that state left over would show.
		s.Apply([]byte("another packet before, of odd length"))
		out[mode] = bytes.Clone(p)
		s.Apply(out[mode])
		for i := range chain {
			v, ok := s.Result(i)
			if ok {
				results[mode] = append(results[mode], v)
			}
		}
	}
	if diff := cmp.Diff(out[Sequential], out[Integrated]); diff != "" {
		t.Fatalf("%v over %d bytes: modes differ (-sequential +integrated):\n%s", chain, len(p), diff)
	}
	if diff := cmp.Diff(results[Sequential], results[Integrated]); diff != "" {
		t.Fatalf("%v over %d bytes: results differ (-sequential +integrated):\n%s", chain, len(p), diff)
	}
	return out[Sequential]
}

func TestModesAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, chain := range chains {
		for length := range 70 {
			p := make([]byte, length)
			for i := range p {
				p[i] = byte(rng.Uint32())
			}
			both(t, chain, p)
		}
	}
}

func FuzzModesAgree(f *testing.F) {
	f.Add(uint8(2), []byte("a packet"))
	f.Add(uint8(3), make([]byte, 1501))
	f.Fuzz(func(t *testing.T, chain uint8, p []byte) {
		both(t, chains[int(chain)%len(chains)], p)
	})
}

func FuzzResults(f *testing.F) {
	f.Add([]byte{0x45, 0, 0, 20, 1})
	f.Fuzz(func(t *testing.T, p []byte) {
		s := mustStage(t, StageSpec{Functions: []string{"cksum", "crc32"}, Mode: Integrated, Machine: Lanai4()})
		s.Apply(p)
		if got, _ := s.Result(0); got != uint32(rfc1071(p)) {
			t.Errorf("checksum %#x, want %#x", got, rfc1071(p))
		}
		if got, _ := s.Result(1); got != crc32.ChecksumIEEE(p) {
			t.Errorf("CRC %#x, want %#x", got, crc32.ChecksumIEEE(p))
		}
	})
}

func TestTransformsAreWhatTheyAreCalled(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for length := range 60 {
		p := make([]byte, length)
		for i := range p {
			p[i] = byte(rng.Uint32())
		}
		swapped := bytes.Clone(p)
		mustStage(t, StageSpec{Functions: []string{"bswap"}, Machine: Lanai4()}).Apply(swapped)
		for i := 0; i+4 <= length; i += 4 {
			if binary.LittleEndian.Uint32(swapped[i:]) != binary.BigEndian.Uint32(p[i:]) {
				t.Fatalf("word at %d of %d bytes is not swapped", i, length)
			}
		}
		secret := bytes.Clone(p)
		mustStage(t, StageSpec{Functions: []string{"pes"}, Machine: Lanai4()}).Apply(secret)
		if length >= 8 && cmp.Equal(secret, p) {
			t.Fatalf("%d bytes are not encrypted", length)
		}
		PseudoEncryption{}.Decrypt(secret)
		if diff := cmp.Diff(p, secret); diff != "" {
			t.Fatalf("%d bytes do not decrypt (-want +got):\n%s", length, diff)
		}
		s := mustStage(t, StageSpec{Functions: []string{"cksum"}, Machine: Lanai4()})
		s.Apply(p)
		if got, ok := s.Result(0); !ok || got != uint32(rfc1071(p)) {
			t.Fatalf("checksum of %d bytes %#x, want %#x", length, got, rfc1071(p))
		}
	}
	if _, ok := mustStage(t, StageSpec{Functions: []string{"bswap"}, Machine: Lanai4()}).Result(0); ok {
		t.Error("a byte swap has a result")
	}
}

func TestStageCosts(t *testing.T) {
	for _, c := range []struct {
		name             string
		spec             StageSpec
		bytes            int
		cycles, accesses int
	}{
		// Per byte: 3 instructions, loop 3·(1/4+1/8+1/4), 1.25 accesses; three entries.
		{"sequential", StageSpec{Functions: []string{"bswap", "pes", "cksum"}}, 1496, 3*17 + 1496*(3000+1875+1250)/1000, 3*4 + 1496*125/100},
		// 3 instructions, loop 3/8, 0.5 accesses; one entry.
		{"integrated", StageSpec{Functions: []string{"bswap", "pes", "cksum"}, Mode: Integrated}, 1496, 17 + 1496*(3000+375+500)/1000, 4 + 1496/2},
		// The checksum's part is gone: 2 instructions, loop 3/8, 0.5 accesses; the register is read.
		{"by DMA", StageSpec{Functions: []string{"bswap", "pes", "cksum"}, Mode: Integrated, DMAChecksum: true}, 1496, 17 + 1496*(2000+375+500)/1000 + 2, 4 + 1496/2 + 1},
		{"nothing but DMA", StageSpec{Functions: []string{"cksum"}, DMAChecksum: true}, 1500, 2, 1},
		{"one byte", StageSpec{Functions: []string{"cksum"}}, 1, 17 + 2, 4 + 1},
		{"empty", StageSpec{Functions: []string{"cksum"}}, 0, 17, 4},
		{"negative", StageSpec{Functions: []string{"cksum"}}, -5, 17, 4},
		// 3·5 = 15 words in 9 registers: 6 spill, 12 accesses a block of 4 bytes.
		{"overflow", StageSpec{Functions: []string{"synthetic:5", "synthetic:5", "synthetic:5"}, Mode: Integrated}, 100, 17 + 25*(30+3+2+12), 4 + 25*(2+12)},
		{"no overflow", StageSpec{Functions: []string{"synthetic:5", "synthetic:5", "synthetic:5"}}, 100, 3*17 + 25*(30+9+6), 3*4 + 25*6},
	} {
		c.spec.Machine = Lanai4()
		s := mustStage(t, c.spec)
		if cycles, accesses := s.Cost(c.bytes); cycles != c.cycles || accesses != c.accesses {
			t.Errorf("%s: %d cycles, %d accesses, want %d, %d", c.name, cycles, accesses, c.cycles, c.accesses)
		}
	}
}

// The stage's cost is the model's, and never more accesses than cycles.
func TestStageCostIsTheModels(t *testing.T) {
	for _, chain := range chains {
		for mode := range Mode(NumModes) {
			s := mustStage(t, StageSpec{Functions: chain, Mode: mode, Machine: Lanai4()})
			m := Model{Machine: Lanai4()}
			for i, name := range chain {
				f, err := NewManipulator(name, i)
				if err != nil {
					t.Fatal(err)
				}
				m.Functions = append(m.Functions, f.Function())
			}
			for bytes := range 2000 {
				cycles, accesses := s.Cost(bytes)
				wc, wa := m.PacketCost(mode, InMemory(), bytes)
				if cycles != wc || accesses != wa || accesses > cycles {
					t.Fatalf("%v %v of %d bytes: %d, %d; model %d, %d", mode, chain, bytes, cycles, accesses, wc, wa)
				}
			}
		}
	}
}

func TestStageErrors(t *testing.T) {
	for _, c := range []struct {
		spec StageSpec
		want string
	}{
		{StageSpec{}, "stage: 0 functions, want 1 to 16"},
		{StageSpec{Functions: []string{"rot13"}}, `stage: unknown manipulating function "rot13", have bswap, pes, cksum, crc32, synthetic:N`},
		{StageSpec{Functions: []string{"synthetic:many"}}, `stage: function "synthetic:many": "many" is no number of state words`},
		{StageSpec{Functions: []string{"synthetic:65"}}, "stage: synthetic function: state is 65 words, want 0 to 64"},
		{StageSpec{Functions: []string{"bswap"}, Mode: 9}, "stage: unknown mode 9"},
		{StageSpec{Functions: []string{"bswap"}, DMAChecksum: true}, "stage: checksum by DMA, but no cksum among the functions"},
		{StageSpec{Functions: []string{"cksum", "cksum"}, DMAChecksum: true}, "stage: the engine computes one checksum, the chain has two"},
		{StageSpec{Functions: []string{"bswap", "cksum", "pes"}, DMAChecksum: true},
			"stage: checksum by DMA between bswap and pes, which both change data: the engine never sees the data in between"},
	} {
		c.spec.Machine = Lanai4()
		if _, err := NewStage(c.spec); err == nil || err.Error() != c.want {
			t.Errorf("%v: error %v, want %s", c.spec.Functions, err, c.want)
		}
	}
	if _, err := NewStage(StageSpec{Functions: []string{"bswap"}}); err == nil || err.Error() != "stage: machine without a name" {
		t.Errorf("no machine: error %v", err)
	}
}

func TestStageDoesNotAllocate(t *testing.T) {
	for _, chain := range chains {
		for mode := range Mode(NumModes) {
			s := mustStage(t, StageSpec{Functions: chain, Mode: mode, Machine: Lanai4()})
			p := make([]byte, 1501)
			if n := testing.AllocsPerRun(100, func() { s.Apply(p); s.Cost(len(p)); s.Result(0) }); n != 0 {
				t.Errorf("%v %v: %g allocations a packet", mode, chain, n)
			}
		}
	}
}

func BenchmarkStage(b *testing.B) {
	for mode := range Mode(NumModes) {
		b.Run(mode.String(), func(b *testing.B) {
			s := mustStage(b, StageSpec{Functions: []string{"bswap", "pes", "cksum"}, Mode: mode, Machine: Lanai4()})
			p := make([]byte, 1500)
			b.SetBytes(int64(len(p)))
			for b.Loop() {
				s.Apply(p)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "packets/s")
		})
	}
}
