package lanai

import (
	"bytes"
	"context"
	"testing"

	"spinesim/pci"
	"spinesim/sim/des"
)

// Whatever a bus master writes anywhere in the window, the card neither panics
// nor loses what it wrote to SRAM.
func FuzzWindow(f *testing.F) {
	f.Add(uint32(0x0C_0000+RegRML), []byte{0, 0, 1, 0})
	f.Add(uint32(0x0C_0000+RegEAR), bytes.Repeat([]byte{0xE0, 0x10, 0, 4}, 24))
	f.Add(uint32(0x0F_FFF0), bytes.Repeat([]byte{1, 2, 3}, 20))
	f.Add(uint32(0x1F_FFFF), []byte{9})
	f.Fuzz(func(t *testing.T, off uint32, p []byte) {
		spec := Lanai4()
		e := des.New(des.Options{})
		bus, err := pci.New(spec.Bus, e, nil)
		if err != nil {
			t.Fatal(err)
		}
		c, err := New(spec, 0, 0, e, bus, nil)
		if err != nil {
			t.Fatal(err)
		}
		off %= spec.WindowBytes
		p = p[:min(len(p), int(spec.WindowBytes-off), 4096)]
		base, _ := c.Window()
		c.BusWrite(base+off, p)
		got := make([]byte, len(p))
		c.BusRead(base+off, got)
		if k := int(spec.SRAMAt) - int(off); k < len(p) && !bytes.Equal(got[max(k, 0):], p[max(k, 0):]) {
			t.Errorf("SRAM at %#x holds % x, written % x", off, got, p)
		}
		// An engine may have been started; its error, if any, ends the run.
		_ = e.RunUntil(context.Background(), des.Millisecond)
	})
}
