package spine

import (
	"strings"
	"testing"

	"spinesim/sim/des"
	"spinesim/traces"
)

func TestDefaultSpec(t *testing.T) {
	s := DefaultSpec()
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}

func TestSpecErrors(t *testing.T) {
	for _, tc := range []struct {
		change func(*Spec)
		want   string
	}{
		{func(s *Spec) { s.Receive = "half" }, `receive: "half", want split, whole or ring`},
		{func(s *Spec) { s.Chain = "" }, `dma_chain: "", want dma or self`},
		{func(s *Spec) { s.Buffers = 0 }, "buffers: 0, want 1 … 65536"},
		{func(s *Spec) { s.Buffers = 65537 }, "buffers: 65537"},
		{func(s *Spec) { s.Credits = 0 }, "credits: 0, want 1 … 4096"},
		{func(s *Spec) { s.HeaderBytes = 16 }, "header_bytes: 16, want 20 … 1024"},
		{func(s *Spec) { s.HeaderBytes = 34 }, "want multiples of 4"},
		{func(s *Spec) { s.MaxPacket = 63 }, "max_packet: 63, want 64 … 65536"},
		{func(s *Spec) { s.HeaderBytes, s.MaxPacket = 128, 128 }, "max_packet: 128, want more than header_bytes (128)"},
		{func(s *Spec) { s.Watchdog = -1 }, "watchdog: -1"},
		{func(s *Spec) { s.AckBytes = 6 }, "want multiples of 4"},
		{func(s *Spec) { s.AckBytes = 0 }, "ack_bytes: 0, want 4 … 64"},
		{func(s *Spec) { s.HostCredits = 0 }, "host_credits: 0"},
		{func(s *Spec) { s.HostService = -des.Microsecond }, "host_service"},
		{func(s *Spec) { s.Costs.Handler[traces.DMAStartBody].Cycles = 0 }, traces.DMAStartBody.String()},
	} {
		s := DefaultSpec()
		tc.change(&s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v, want an error with %q", err, tc.want)
		}
	}
	// The ends of every range are inside it.
	for _, change := range []func(*Spec){
		func(s *Spec) { s.Buffers, s.Credits, s.Watchdog, s.HostService = 1, 1, 0, 0 },
		func(s *Spec) { s.HeaderBytes, s.MaxPacket, s.AckBytes = 20, 64, 64 },
		func(s *Spec) { s.Buffers, s.Credits, s.MaxPacket, s.HostCredits = 1<<16, 1<<12, 65536, 1<<12 },
	} {
		s := DefaultSpec()
		change(&s)
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
	}
}
