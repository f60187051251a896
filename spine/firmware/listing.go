package firmware

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/google/pprof/profile"

	"spinesim/lanai"
	"spinesim/lanai/isa"
	"spinesim/lanai/loader"
)

// WriteListing prints an image's text as llvm-objdump does, a line an
// instruction. With a profile each line has what it cost: times executed,
// cycles, and of these the ones waited for loads or the load/store unit and for
// the memory bus. symbol, when not empty, is the only function listed.
func WriteListing(w io.Writer, sram *lanai.SRAM, im *loader.Image, p *isa.Profile, symbol string) error {
	b := bufio.NewWriter(w)
	if p != nil {
		fmt.Fprintf(b, "%10s %10s %9s %9s\n", "executed", "cycles", "interlock", "bus wait")
	}
	found := false
	for _, bl := range im.Blocks {
		if bl.Kind != loader.Text {
			continue
		}
		last := ""
		for at := bl.Addr; at < bl.Addr+bl.Bytes; at += 4 {
			s, off, ok := im.Enclosing(at)
			if !ok || s.Bytes > 0 && off >= s.Bytes || symbol != "" && s.Name != symbol {
				continue
			}
			found = true
			if s.Name != last {
				fmt.Fprintf(b, "\n%08x <%s>:\n", s.Addr, s.Name)
				last = s.Name
			}
			word := binary.BigEndian.Uint32(sram.View(at, 4))
			i := isa.Decode(word)
			if p != nil {
				if c := p.At(at); c.Count > 0 {
					fmt.Fprintf(b, "%10d %10d %9d %9d", c.Count, c.Cycles(), c.Interlocks, c.Waits)
				} else {
					fmt.Fprintf(b, "%41s", "")
				}
			}
			fmt.Fprintf(b, "%8x: %02x %02x %02x %02x  \t%s", at, word>>24, word>>16&255, word>>8&255, word&255, i)
			if i.Kind == isa.Branch {
				if to := im.At(i.Imm); to != "" {
					fmt.Fprintf(b, " <%s>", to)
				}
			}
			b.WriteByte('\n')
		}
	}
	if symbol != "" && !found {
		return fmt.Errorf("firmware: %s: %w: %q", im.Owner, loader.ErrNoSymbol, symbol)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("firmware: writing the listing: %w", err)
	}
	return nil
}

// WriteProfile writes a pprof profile by function and instruction: times
// executed, cycles, and cycles waited.
func WriteProfile(w io.Writer, im *loader.Image, p *isa.Profile) error {
	out := &profile.Profile{
		SampleType: []*profile.ValueType{
			{Type: "instructions", Unit: "count"}, {Type: "cycles", Unit: "cycles"},
			{Type: "interlocks", Unit: "cycles"}, {Type: "bus waits", Unit: "cycles"},
		},
		DefaultSampleType: "cycles",
		PeriodType:        &profile.ValueType{Type: "cycles", Unit: "cycles"}, Period: 1,
		Mapping: []*profile.Mapping{{ID: 1, File: im.Owner, HasFunctions: true}},
	}
	functions := map[string]*profile.Function{}
	for _, bl := range im.Blocks {
		if bl.Kind != loader.Text {
			continue
		}
		m := out.Mapping[0]
		m.Start, m.Limit = uint64(bl.Addr), uint64(bl.Addr)+uint64(bl.Bytes)
		for at := bl.Addr; at < bl.Addr+bl.Bytes; at += 4 {
			c := p.At(at)
			if c.Count == 0 {
				continue
			}
			s, off, ok := im.Enclosing(at)
			if !ok {
				s.Name = "?"
			}
			f := functions[s.Name]
			if f == nil {
				f = &profile.Function{ID: uint64(len(functions) + 1), Name: s.Name, SystemName: s.Name, Filename: s.Object}
				functions[s.Name] = f
				out.Function = append(out.Function, f)
			}
			l := &profile.Location{ID: uint64(len(out.Location) + 1), Mapping: m, Address: uint64(at), Line: []profile.Line{{Function: f, Line: int64(off / 4)}}}
			out.Location = append(out.Location, l)
			out.Sample = append(out.Sample, &profile.Sample{Location: []*profile.Location{l}, Value: []int64{c.Count, c.Cycles(), c.Interlocks, c.Waits}})
		}
	}
	if err := out.CheckValid(); err != nil {
		return fmt.Errorf("firmware: profile: %w", err)
	}
	if err := out.Write(w); err != nil {
		return fmt.Errorf("firmware: writing the profile: %w", err)
	}
	return nil
}
