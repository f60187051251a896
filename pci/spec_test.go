package pci

import (
	"errors"
	"strings"
	"testing"

	"spinesim/sim/des"
)

// refused checks that err is a *SpecError of the field with a reason.
func refused(t *testing.T, err error, field, reason string) {
	t.Helper()
	var se *SpecError
	if !errors.As(err, &se) {
		t.Fatalf("got %v; want a SpecError of %s", err, field)
	}
	if se.Field != field || !strings.Contains(se.Reason, reason) {
		t.Errorf("got field %q, reason %q; want %q, %q", se.Field, se.Reason, field, reason)
	}
}

func TestSpecRefusals(t *testing.T) {
	if err := DefaultSpec().Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		field  string
		change func(*Spec)
		reason string
	}{
		{"Clock", func(s *Spec) { s.Clock = des.Frequency{} }, "must be positive"},
		{"Clock", func(s *Spec) { s.Clock = des.Hertz(0) }, "must be positive"},
		{"Clock", func(s *Spec) { s.Clock = des.Hertz(999) }, "must be 1 kHz"},
		{"Clock", func(s *Spec) { s.Clock = des.Hertz(10_000_000_001) }, "10 GHz"},
		{"Clock", func(s *Spec) { s.Clock = des.Frequency{Num: 1<<63 - 1, Den: 1<<62 + 1} }, "1 kHz"},
		{"Width", func(s *Spec) { s.Width = 16 }, "32 or 64"},
		{"GrantLatency", func(s *Spec) { s.GrantLatency = 0 }, "1 to 16"},
		{"GrantLatency", func(s *Spec) { s.GrantLatency = 17 }, "1 to 16"},
		{"Park", func(s *Spec) { s.Park = 9 }, "unknown"},
		{"ParkAt", func(s *Spec) { s.Park, s.ParkAt = ParkMaster, 6 }, "0 to 5"},
		{"ParkAt", func(s *Spec) { s.Park, s.ParkAt = ParkMaster, -1 }, "0 to 5"},
		{"ParkAt", func(s *Spec) { s.ParkAt = 1 }, "not ParkMaster"},
		{"BurstBytes", func(s *Spec) { s.BurstBytes = 28 }, "at least 32"},
		{"BurstBytes", func(s *Spec) { s.BurstBytes = -32 }, "at least 32"},
		{"BurstBytes", func(s *Spec) { s.BurstBytes = 34 }, "whole data phases of 4"},
		{"BurstBytes", func(s *Spec) { s.Width, s.BurstBytes = 64, 36 }, "whole data phases of 8"},
		{"BurstBytes", func(s *Spec) { s.BurstBytes = 1<<30 + 4 }, "1 GB"},
		{"LatencyTimer", func(s *Spec) { s.LatencyTimer = 8 }, "burst takes 9"},
		{"LatencyTimer", func(s *Spec) { s.LatencyTimer = 0 }, "burst takes 9"},
		{"LatencyTimer", func(s *Spec) { s.Width, s.LatencyTimer = 64, 4 }, "burst takes 5"},
		{"LatencyTimer", func(s *Spec) { s.LatencyTimer = 1<<20 + 1 }, "at most"},
		{"AbortClocks", func(s *Spec) { s.AbortClocks = 0 }, "1 to 16"},
		{"AbortClocks", func(s *Spec) { s.AbortClocks = 17 }, "1 to 16"},
		{"RetryBackoff", func(s *Spec) { s.RetryBackoff = 0 }, "must be 1"},
		{"RetryBackoffMax", func(s *Spec) { s.RetryBackoffMax = 1 }, "RetryBackoff (2)"},
		{"RetryLimit", func(s *Spec) { s.RetryLimit = -1 }, "negative"},
	} {
		s := DefaultSpec()
		c.change(&s)
		refused(t, s.Validate(), c.field, c.reason)
		if _, err := New(s, des.New(des.Options{}), nil); err == nil {
			t.Errorf("%s: New takes what Validate refuses", c.field)
		}
	}
}

func TestTargetSpecRefusals(t *testing.T) {
	for _, s := range []TargetSpec{{}, CardTarget(), HostMemoryTarget(), {DataWait: 14}} {
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		field  string
		spec   TargetSpec
		reason string
	}{
		{"Devsel", TargetSpec{Devsel: -1}, "0 to 3"},
		{"Devsel", TargetSpec{Devsel: 4, WriteWait: 4, ReadLatency: 4}, "0 to 3"},
		{"WriteWait", TargetSpec{Devsel: 2, WriteWait: 1, ReadLatency: 2}, "decode takes 2"},
		{"WriteWait", TargetSpec{WriteWait: -1}, "must be 0"},
		{"ReadLatency", TargetSpec{Devsel: 2, WriteWait: 2, ReadLatency: 1}, "decode takes 2"},
		{"ReadLatency", TargetSpec{ReadLatency: 1<<20 + 1}, "must be"},
		{"DataWait", TargetSpec{DataWait: -1}, "0 to 14"},
		{"DataWait", TargetSpec{DataWait: 15}, "0 to 14"},
		{"Boundary", TargetSpec{Boundary: 48}, "power of two"},
		{"Boundary", TargetSpec{Boundary: 8}, "power of two"},
		{"ReadLine", TargetSpec{ReadLine: -16}, "power of two"},
		{"ReadLine", TargetSpec{ReadLine: 17}, "power of two"},
	} {
		refused(t, c.spec.Validate(), c.field, c.reason)
	}
}

func newBus(t testing.TB, spec Spec) (*des.Engine, *Bus) {
	t.Helper()
	e := des.New(des.Options{})
	b, err := New(spec, e, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e, b
}

func TestAttachRefusals(t *testing.T) {
	_, b := newBus(t, DefaultSpec())
	if err := b.AttachTarget("first", 0, 0x1000, 0x1000, TargetSpec{}, &sink{}); err != nil {
		t.Fatal(err)
	}
	if err := b.AttachTarget("top", 0, 0xFFFFF000, 0x1000, TargetSpec{}, &sink{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		field      string
		base, size uint32
		spec       TargetSpec
		reason     string
	}{
		{"size", 0x4000, 0, TargetSpec{}, "empty"},
		{"base, size", 0x4004, 0x1000, TargetSpec{}, "multiples of 16"},
		{"base, size", 0x4000, 0x1004, TargetSpec{}, "multiples of 16"},
		{"size", 0xFFFFFFF0, 0x20, TargetSpec{}, "pass 4 GB"},
		{"base, size", 0x1FF0, 0x20, TargetSpec{}, `overlap the window of "first"`},
		{"base, size", 0, 0x1010, TargetSpec{}, `overlap the window of "first"`},
		{"base, size", 0, 0xFFFFFFF0, TargetSpec{}, "overlap"},
		{"base, size", 0x1800, 0x10, TargetSpec{}, `overlap the window of "first"`},
		{"Populated", 0x4000, 0x100, TargetSpec{Populated: 0x110}, "within the window"},
		{"Populated", 0x4000, 0x100, TargetSpec{Populated: 8}, "multiple of 16"},
		{"DataWait", 0x4000, 0x100, TargetSpec{DataWait: 99}, "0 to 14"},
	} {
		refused(t, b.AttachTarget("second", 0, c.base, c.size, c.spec, &sink{}), c.field, c.reason)
	}
	if err := b.AttachTarget("none", 0, 0x4000, 0x100, TargetSpec{}, nil); err == nil {
		t.Error("a target without device was attached")
	}
	if _, err := b.AttachMaster("none", 0, nil); err == nil {
		t.Error("a master without device was attached")
	}
	if _, err := New(DefaultSpec(), nil, nil); err == nil {
		t.Error("a bus without engine was made")
	}
	var m *Master
	for i := range MaxMasters {
		var err error
		if m, err = b.AttachMaster("m", uint8(i), &device{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.AttachMaster("seventh", 6, &device{}); !errors.Is(err, ErrNoMaster) {
		t.Errorf("seventh master: %v", err)
	}
	if _, err := NewHostBridge(b, 0x100000, 0x1000); !errors.Is(err, ErrNoMaster) {
		t.Errorf("host bridge as the seventh: %v", err)
	}
	if err := m.Start(&Transfer{Addr: 0x1000, Bytes: 4}); err != nil {
		t.Fatal(err)
	}
	if err := b.AttachTarget("late", 0, 0x4000, 0x1000, TargetSpec{}, &sink{}); !errors.Is(err, ErrAttachLate) {
		t.Errorf("late target: %v", err)
	}
	if m.Index() != 5 || m.Name() != "m" || !m.Busy() || b.Spec() != DefaultSpec() || b.ClockAt(30_001) != 2 {
		t.Error("a property is wrong")
	}
}

func TestStartRefusals(t *testing.T) {
	_, b := newBus(t, DefaultSpec())
	m, err := b.AttachMaster("card", 0, &device{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		t      *Transfer
		reason string
	}{
		{nil, "no transfer"},
		{&Transfer{Cmd: 3, Bytes: 4}, "unknown command 3"},
		{&Transfer{}, "of 0 bytes"},
		{&Transfer{Bytes: -4}, "of -4 bytes"},
		{&Transfer{Bytes: 4, Data: make([]byte, 5)}, "5 bytes carried in a transfer of 4"},
		{&Transfer{Addr: 0xFFFFFFFF, Bytes: 2}, "pass 4 GB"},
	} {
		if err := m.Start(c.t); err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("got %v; want %q", err, c.reason)
		}
		if m.Busy() {
			t.Fatal("a refused transfer is outstanding")
		}
	}
	tr := Transfer{Addr: 0xFFFFFFFF, Bytes: 1}
	if err := m.Start(&tr); err != nil {
		t.Fatal(err)
	}
	if err := m.Start(&tr); !errors.Is(err, ErrBusy) {
		t.Errorf("second transfer: %v", err)
	}
	spec := DefaultSpec()
	spec.Park, spec.ParkAt = ParkMaster, 3
	_, b = newBus(t, spec)
	if m, err = b.AttachMaster("card", 0, &device{}); err != nil {
		t.Fatal(err)
	}
	refused(t, m.Start(&tr), "ParkAt", "master 3 of 1")
}

func TestNames(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{MemReadMultiple.String(), "memory read multiple"}, {Command(9).String(), "unknown command"},
		{TargetAbort.String(), "target abort"}, {Status(9).String(), "unknown status"},
		{EndDisconnect.String(), "disconnect"}, {BurstEnd(9).String(), "unknown end"},
	} {
		if c.got != c.want {
			t.Errorf("%q; want %q", c.got, c.want)
		}
	}
}
