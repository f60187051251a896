package lanai

import (
	"errors"
	"strings"
	"testing"

	"spinesim/pci"
	"spinesim/sim/des"
)

func TestPresetsValidate(t *testing.T) {
	for _, s := range []Spec{Lanai4(), Lanai9()} {
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	if base, size := Lanai4().Window(3); base != 0xE060_0000 || size != 2<<20 {
		t.Errorf("window 3 at %#x, %#x bytes", base, size)
	}
}

func TestValidateNamesFieldAndReason(t *testing.T) {
	for _, tt := range []struct {
		field, reason string
		change        func(*Spec)
	}{
		{"Clock", "1 kHz", func(s *Spec) { s.Clock = des.Frequency{} }},
		{"Clock", "1 kHz", func(s *Spec) { s.Clock = des.Hertz(999) }},
		{"Clock", "10 GHz", func(s *Spec) { s.Clock = des.Hertz(10_000_000_001) }},
		{"SRAMBytes", "multiple", func(s *Spec) { s.SRAMBytes = 1<<20 + 2 }},
		{"SRAMBytes", "4,096", func(s *Spec) { s.SRAMBytes = 0 }},
		{"Slots", "1 to 8", func(s *Spec) { s.Slots = 0 }},
		{"Order", "once", func(s *Spec) { s.Order = [NumClients]Client{EBus, EBus, Send, CPU} }},
		{"Order", "processor", func(s *Spec) { s.Order = [NumClients]Client{EBus, CPU, Receive, Send} }},
		{"Order", "unknown", func(s *Spec) { s.Order[0] = 9 }},
		{"FIFO", "up to 2", func(s *Spec) { s.FIFO[Receive] = 1 }},
		{"FIFO", "63", func(s *Spec) { s.FIFO[Send] = 64 }},
		{"FIFO", "E-bus", func(s *Spec) { s.FIFO[EBus] = 0 }},
		{"Link", "1 kB/s", func(s *Spec) { s.Link = des.Rate{} }},
		{"FIFO", "up to 64", func(s *Spec) { s.Link = des.Rate{Num: 1_000_000_000_000, Den: 1} }},
		{"NoBuffer", "unknown", func(s *Spec) { s.NoBuffer = 7 }},
		{"Tick", "more than 0", func(s *Spec) { s.Tick = 0 }},
		{"WindowBase, WindowBytes", "16", func(s *Spec) { s.WindowBytes = 0 }},
		{"SRAMAt", "do not fit", func(s *Spec) { s.SRAMBytes = 2 << 20 }},
		{"SRAMAt", "overlap those of ControlAt", func(s *Spec) { s.SRAMAt = 0xE0000 }},
		{"ControlAt", "overlap those of RegistersAt", func(s *Spec) { s.ControlAt = 0xC0010 }},
		{"RegistersAt", "16", func(s *Spec) { s.RegistersAt = 0xC0001 }},
		{"RegistersAt", "do not fit", func(s *Spec) { s.RegistersAt = 0xFFFFFFF0 }},
	} {
		s := Lanai4()
		tt.change(&s)
		err := s.Validate()
		var spec *SpecError
		if !errors.As(err, &spec) || spec.Field != tt.field || !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("%s (%s): %v", tt.field, tt.reason, err)
		}
	}
	for _, change := range []func(*Spec){
		func(s *Spec) { s.Bus.Width = 17 },
		func(s *Spec) { s.Target.DataWait = -1 },
	} {
		s := Lanai4()
		change(&s)
		var spec *pci.SpecError
		if err := s.Validate(); !errors.As(err, &spec) {
			t.Errorf("bus or target: %v", err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	e := des.New(des.Options{})
	make := func(spec Spec, bus pci.Spec, index uint8, phase des.Time) error {
		b, err := pci.New(bus, e, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = New(spec, index, phase, e, b, nil)
		return err
	}
	wide, fast := pci.DefaultSpec(), pci.DefaultSpec()
	wide.Width = 64
	fast.Clock = des.Hertz(66_000_000)
	far := Lanai4()
	far.WindowBase = 0xF000_0000
	broken := Lanai4()
	broken.Slots = -1
	for _, tt := range []struct {
		what, want string
		err        error
	}{
		{"spec", "Slots", make(broken, pci.DefaultSpec(), 0, 0)},
		{"wide bus", "32 bits", make(Lanai4(), wide, 0, 0)},
		{"fast bus", "66 MHz", make(Lanai4(), fast, 0, 0)},
		{"far window", "4 GB", make(far, pci.DefaultSpec(), 128, 0)},
		{"negative phase", "phase", make(Lanai4(), pci.DefaultSpec(), 0, -1)},
	} {
		if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.what, tt.err)
		}
	}
	b, err := pci.New(pci.DefaultSpec(), e, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Lanai4(), 1, 0, e, b, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Lanai4(), 1, 0, e, b, nil); err == nil || !strings.Contains(err.Error(), "overlap") {
		t.Errorf("two cards in one window: %v", err)
	}
}
