package router

import (
	"bytes"
	"net/netip"
	"testing"

	"spinesim/lanai"
	"spinesim/lanai/ilp"
	"spinesim/spine"
)

func TestManipulation(t *testing.T) {
	header, err := Header{TotalLength: 1500, TTL: 9, Protocol: 17, Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.1.1"), Options: make([]byte, 4)}.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	whole := append(header, make([]byte, 1500-len(header))...)
	for i := len(header); i < len(whole); i++ {
		whole[i] = byte(i * 7)
	}
	run := func(mode ilp.Mode, dma bool, offset int, data []byte, bytes int) (*Manipulation, int, int) {
		t.Helper()
		x, err := NewManipulation(ilp.StageSpec{Functions: []string{"bswap", "pes", "cksum"}, Mode: mode, Machine: ilp.Lanai4(), DMAChecksum: dma}, offset)
		if err != nil {
			t.Fatal(err)
		}
		ctx := spine.NewContext(lanai.NewSRAM(1024))
		if v := x.Handle(ctx, &spine.Packet{Bytes: bytes, Header: data}); v != (spine.Verdict{}) {
			t.Errorf("verdict %+v, want none", v)
		}
		c, a := ctx.Charged()
		return x, c, a
	}
	seq := bytes.Clone(whole)
	_, seqCycles, seqAccesses := run(ilp.Sequential, false, 0, seq, 1500)
	ilpData := append(make([]byte, 14), whole...)
	x, ilpCycles, _ := run(ilp.Integrated, false, 14, ilpData, 1514)
	dmaData := bytes.Clone(whole)
	y, dmaCycles, _ := run(ilp.Integrated, true, 0, dmaData, 1500)
	if !bytes.Equal(seq, ilpData[14:]) || !bytes.Equal(seq, dmaData) {
		t.Error("the ways of doing the same leave different bytes")
	}
	if !bytes.Equal(seq[:24], whole[:24]) || bytes.Equal(seq[24:], whole[24:]) {
		t.Error("the header must stay and the data change")
	}
	a, _ := x.Stage().Result(2)
	b, _ := y.Stage().Result(2)
	if a != b || a == 0 {
		t.Errorf("checksums %#x by the processor, %#x by the engine", a, b)
	}
	if !(dmaCycles < ilpCycles && ilpCycles < seqCycles) || seqAccesses >= seqCycles {
		t.Errorf("cycles %d sequential, %d integrated, %d with the checksum by DMA", seqCycles, ilpCycles, dmaCycles)
	}
	want, _ := x.Stage().Cost(1476)
	if ilpCycles != want || x.Counts() != (Manipulated{1, 1476, uint64(want), x.Counts().Accesses}) {
		t.Errorf("%d cycles, want %d; counts %+v", ilpCycles, want, x.Counts())
	}
	// The cost is that of the packet, whatever part of it is simulated.
	if _, c, _ := run(ilp.Integrated, false, 0, bytes.Clone(whole[:64]), 1500); c != ilpCycles {
		t.Errorf("%d cycles with 64 bytes carried, want %d", c, ilpCycles)
	}
	for name, data := range map[string][]byte{"short": whole[:10], "version": {0x65, 19: 0}, "header length": {0x4F, 19: 0}} {
		if x, c, _ := run(ilp.Integrated, false, 0, bytes.Clone(data), 1500); c != 0 || x.Counts().Packets != 0 {
			t.Errorf("%s: %d cycles, %+v", name, c, x.Counts())
		}
	}
	if n := testing.AllocsPerRun(20, func() {
		x.Handle(spine.NewContext(nil), &spine.Packet{Bytes: 1514, Header: ilpData})
	}); n > 2 { // the context and the packet of this test
		t.Errorf("%g allocations", n)
	}
	if _, err := NewManipulation(ilp.StageSpec{Functions: []string{"rot13"}, Machine: ilp.Lanai4()}, 0); err == nil {
		t.Error("no error for an unknown function")
	}
}
