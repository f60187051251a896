package firmware

import (
	"testing"

	"spinesim/lanai"
	"spinesim/pci"
	"spinesim/sim/des"
	"spinesim/traces"
)

// TestLayout: what Go takes for the places of the firmware's structures is where
// the firmware has them.
func TestLayout(t *testing.T) {
	b, err := NewBench(Inputs{Image: make([]byte, 24), Buffers: 3})
	if err != nil {
		t.Fatal(err)
	}
	for p := range uint32(peers) {
		at := b.spine + spinePeers + p*peerBytes
		if got := b.word(at + peerInbox); got != b.inbox[p] || got == 0 {
			t.Errorf("peer %d: slots at %#x, want %#x", p, got, b.inbox[p])
		}
		for card := range uint8(4) {
			want := uint8(p)
			if want >= card {
				want++
			}
			if got, ok := b.PeerOf(at, card); !ok || got != want {
				t.Errorf("peer %d of card %d is card %d, %t, want %d", p, card, got, ok, want)
			}
			if _, ok := b.PeerOf(at+4, card); ok {
				t.Error("what is in the middle of a peer's structure is taken for one")
			}
		}
	}
	// A header comes in: the packet is being received; then it is in.
	b.regs.set(lanai.RegISR, lanai.IntBuffer)
	if _, run, hit, err := b.Poll(qWire); err != nil || !hit || run != traces.RxCheckHeader {
		t.Fatal(run, hit, err)
	}
	b.setWord(b.staging, 0x450005DC)
	if _, _, err := b.Run(); err != nil {
		t.Fatal(err)
	}
	p := b.Receiving()
	if b.word(p+packetBytes) != 1500 || b.word(p+packetBuffer) == 0 {
		t.Errorf("no packet of 1,500 bytes is being received at %#x", p)
	}
	b.regs.set(lanai.RegISR, lanai.IntReceive)
	if _, run, hit, err := b.Poll(qWire); err != nil || !hit || run != traces.RxCheckBody {
		t.Fatal(run, hit, err)
	}
	if _, _, err := b.Run(); err != nil {
		t.Fatal(err)
	}
	if run, arg := b.Newest(); run != traces.EnqRouterIn || arg != p {
		t.Errorf("the newest message is %v for %#x, want %v for %#x", run, arg, traces.EnqRouterIn, p)
	}
	if f := b.Fate(p); f.Reason != traces.ReasonNone {
		t.Errorf("fate %+v", f)
	}
}

// TestInputs: what does not fit the firmware's tables is refused.
func TestInputs(t *testing.T) {
	for _, in := range []Inputs{{Buffers: MostBuffers + 1}, {Buffers: -1}, {Credits: MostCredits + 1}, {MaxPacket: 63}, {MaxPacket: 1 << 20}} {
		in.Image = make([]byte, 24)
		if _, err := NewBench(in); err == nil {
			t.Errorf("%+v is taken", in)
		}
	}
	if _, err := NewBench(Inputs{Image: make([]byte, 24), Buffers: 32, Credits: 64, MaxPacket: 16384}); err == nil {
		t.Error("three megabytes of slots fit in one")
	}
}

// TestRecoverNothing: there is nothing to recover where no extension ran.
func TestRecoverNothing(t *testing.T) {
	e := des.New(des.Options{})
	spec := lanai.Lanai4()
	bus, err := pci.New(spec.Bus, e, nil)
	if err != nil {
		t.Fatal(err)
	}
	card, err := lanai.New(spec, 0, 0, e, bus, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewCard(card, Inputs{Image: make([]byte, 24)})
	if err != nil {
		t.Fatal(err)
	}
	if c.InExtension() || c.Recover() == nil {
		t.Error("an extension runs that there is none of")
	}
}
