package firmware_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spinesim/sim/testenv"

	"github.com/google/pprof/profile"

	"spinesim/lanai/isa"
	"spinesim/lanai/loader"
	"spinesim/router"
	"spinesim/router/lctrie"
	"spinesim/spine/firmware"
	"spinesim/traces"
)

// TestTemplates builds every template and routes with it.
func TestTemplates(t *testing.T) {
	testenv.Client(t, "clang")
	tab, routes := table(t, lctrie.Options{}, 1, 2, 3)
	in := inputs(tab, router.DefaultIPv4())
	ps := packets(t, routes)[:100]
	plain, err := firmware.HandlerCosts(in, ps)
	if err != nil {
		t.Fatal(err)
	}
	telnet, err := router.Header{TotalLength: 64, TTL: 9, Src: address(0x0A010203), Dst: routes[0].Prefix.Addr()}.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	ps = append(ps, firmware.Packet{Header: telnet, Bytes: 64})
	service, err := router.Header{TotalLength: 64, TTL: 9, Src: address(0xC0000201), Dst: address(0xC6120A01)}.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	ps = append(ps, firmware.Packet{Header: service, Bytes: 64})
	for _, name := range firmware.Templates() {
		dir := t.TempDir()
		src, object := filepath.Join(dir, name+".c"), filepath.Join(dir, name+".o")
		text, err := firmware.Template(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(src, text, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := firmware.Build(context.Background(), firmware.Compiler{}, src, object); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(object)
		if err != nil {
			t.Fatal(err)
		}
		o, err := loader.Parse(name+".o", b)
		if err != nil {
			t.Fatal(err)
		}
		in.Extension = []*loader.Object{o}
		bench, err := firmware.NewBench(in)
		if err != nil {
			t.Fatal(err)
		}
		marks := map[int]int{}
		bench.CPU.OnMark = func(m isa.Mark) { marks[m.Number]++ }
		c, err := bench.HandlerCosts(ps)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		with, without := c.Handler[traces.RouterIn], plain.Handler[traces.RouterIn]
		if with.Max <= without.Max || with.Runs != len(ps) {
			t.Errorf("%s: the router handler takes %d to %d cycles in %d runs, without %d to %d", name, with.Min, with.Max, with.Runs, without.Min, without.Max)
		}
		switch name {
		case "filter":
			if marks[0] != 1 {
				t.Errorf("filter: %v marks", marks)
			}
		case "counter":
			at, err := bench.Image.Symbol("flows")
			if err != nil {
				t.Fatal(err)
			}
			total := uint32(0)
			for i := range uint32(257) {
				v, err := bench.SRAM.Word(at + 16*i + 8)
				if err != nil {
					t.Fatal(err)
				}
				total += v
			}
			if total != uint32(len(ps)) {
				t.Errorf("counter: %d packets counted of %d", total, len(ps))
			}
		case "balancer":
			if marks[2] != 1 {
				t.Errorf("balancer: %v marks", marks)
			}
		}
	}
	if _, err := firmware.Template("nothing"); err == nil || !strings.Contains(err.Error(), "balancer") {
		t.Errorf("%v", err)
	}
}

func TestListingAndProfile(t *testing.T) {
	tab, routes := table(t, lctrie.Options{}, 1, 2, 3)
	bench, err := firmware.NewBench(inputs(tab, router.DefaultIPv4()))
	if err != nil {
		t.Fatal(err)
	}
	before := bench.CPU.Counters()
	p := isa.NewProfile(0, int(bench.SRAM.Bytes()))
	bench.CPU.Profile = p
	costs, err := bench.HandlerCosts(packets(t, routes)[:50])
	if err != nil {
		t.Fatal(err)
	}
	done := bench.CPU.Counters().Sub(before)
	var out bytes.Buffer
	if err := firmware.WriteListing(&out, bench.SRAM, bench.Image, p, "spine_lookup"); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"<spine_lookup>:", "leadz\t", "        50 "} {
		if !strings.Contains(out.String(), s) {
			t.Errorf("no %q in\n%s", s, out.String())
		}
	}
	if err := firmware.WriteListing(&out, bench.SRAM, bench.Image, p, "nothing"); err == nil {
		t.Error("no error for a function that does not exist")
	}
	out.Reset()
	if err := firmware.WriteProfile(&out, bench.Image, p); err != nil {
		t.Fatal(err)
	}
	read, err := profile.Parse(&out)
	if err != nil {
		t.Fatal(err)
	}
	var count, cycles int64
	names := map[string]bool{}
	for _, s := range read.Sample {
		count += s.Value[0]
		cycles += s.Value[1]
		names[s.Location[0].Line[0].Function.Name] = true
	}
	// The idle scan at the end has a profile of its own.
	scan := costs.Scan
	if wantCount, want := done.Instructions-scan.Cycles+scan.Interlocks, done.Cycles()-scan.Cycles; count != wantCount || cycles != want {
		t.Errorf("profile has %d instructions and %d cycles, executed were %d and %d", count, cycles, wantCount, want)
	}
	if !names["spine_route"] || !names["spine_checksum"] {
		t.Errorf("functions %v", names)
	}
}
