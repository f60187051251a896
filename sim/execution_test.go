package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"spinesim/sim/testenv"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket/pcapgo"

	"spinesim/lanai"
	"spinesim/sim/des"
	"spinesim/spine"
	"spinesim/spine/firmware"
	"spinesim/traces"
)

// executions are the ways of running the run-time.
var executions = []spine.Execution{spine.ExecuteTable, spine.ExecuteHandlers, spine.ExecuteFull}

// ends is what becomes of each packet.
type ends map[uint64]string

func (e ends) Record(r *traces.Record) error {
	switch r.Kind {
	case traces.KindEnter:
		e[r.Packet] = fmt.Sprintf("%d bytes into card %d at %v", r.Bytes, r.Card, r.End)
	case traces.KindLeave:
		e[r.Packet] += fmt.Sprintf(", %v (%v) from card %d, %d bytes", r.Verdict, r.Reason, r.Card, r.Bytes)
	}
	return nil
}

// sent is what left the cards, by interface and contents, in order of those.
func sent(t *testing.T, b []byte) (out []string) {
	t.Helper()
	r, err := pcapgo.NewNgReader(bytes.NewReader(b), pcapgo.NgReaderOptions{WantMixedLinkType: true})
	if err != nil {
		t.Fatal(err)
	}
	for {
		data, ci, err := r.ReadPacketData()
		if err == io.EOF {
			slices.Sort(out)
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%d: %d % x", ci.InterfaceIndex, ci.Length, data))
	}
}

func withExecution(t *testing.T, how spine.Execution, preset string, settings ...string) *Scenario {
	t.Helper()
	return mustLoad(t, preset, append(slices.Clone(settings), "firmware.execution="+string(how))...)
}

// TestExecutionsAgree: whatever is executed, the same packets leave by the same
// cards with the same bytes, and the others go where they went for the same
// reason; and the record that executed firmware makes is a whole one.
func TestExecutionsAgree(t *testing.T) {
	slow := "traffic.arrivals.rate=250 µs"
	for _, c := range []struct {
		name, preset string
		settings     []string
	}{
		{"default", "fig6.4", nil},
		{"own wire and contended bus", "four-way", []string{"routes.cards=[0, 1, 2, 3]", "traffic.arrivals.rate=1 ms"}},
		{"one card", "one-card", nil},
		{"two cards", "fig6.4", []string{"cards=2"}},
		{"lengths", "fig6.4", []string{"traffic.sizes.kind=imix"}},
		{"shorter than a header", "fig6.4", []string{"traffic.sizes.bytes=28 B"}},
		{"just a header", "fig6.4", []string{"traffic.sizes.bytes=32 B"}},
		{"odd", "fig6.4", []string{"traffic.sizes.kind=empirical", "traffic.sizes.lengths=[29 B, 30 B, 31 B, 33 B, 61 B, 1499 B, 1536 B]", "traffic.sizes.weights=[1, 1, 1, 1, 1, 1, 1]"}},
		{"no route", "fig6.4", []string{"routes.default_route=false", "traffic.destinations.unroutable=0.3"}},
		{"expired", "fig6.4", []string{"traffic.ttl=1"}},
		{"all carried", "fig6.4", []string{"traffic.carry=1500 B"}},
		{"few buffers and credits", "fig6.4", []string{"firmware.buffers=2", "firmware.credits=1"}},
		{"saturated", "fig6.4", []string{"traffic.arrivals.process=saturating", "firmware.buffers=4"}},
		{"bus first", "fig6.4", []string{"policy=pci-first"}},
		{"an order of one's own", "fig6.4", []string{"policy=\"Q2 Q1 Q6 Q0 Q5 Q4 Q3\""}},
		{"another card", "fig6.4", []string{"card.preset=lanai9", "bus.width=64", "bus.clock=66 MHz"}},
		{"clocks that are off", "fig6.4", []string{"card.deviation=[50 ppm, -80 ppm, 0 ppm, 12 ppm]"}},
		{"random ties", "fig6.4", []string{"random_ties=true"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			settings := append([]string{"traffic.packets=100", slow}, c.settings...)
			var want ends
			var left []string
			for _, how := range executions {
				got, wires := ends{}, &bytes.Buffer{}
				sc := withExecution(t, how, c.preset, settings...)
				r := mustRun(t, sc, Options{Check: true, Sinks: []traces.Sink{got}, Wires: wires})
				if !r.Drained {
					t.Errorf("%s did not drain: %v", how, r.Notes)
				}
				if how == spine.ExecuteTable {
					want, left = got, sent(t, wires.Bytes())
					continue
				}
				if c.name == "saturated" { // its arrivals follow the machine
					if len(got) != len(want) {
						t.Errorf("%s: %d packets, want %d", how, len(got), len(want))
					}
					continue
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%s does other than the table (-table +%s):\n%s", how, how, d)
				}
				if d := cmp.Diff(left, sent(t, wires.Bytes())); d != "" {
					t.Errorf("%s sends other than the table (-table +%s):\n%s", how, how, d)
				}
			}
		})
	}
}

// TestExecutedPolicies: with the dispatcher in Go, every policy that polls runs
// executed handlers, under load.
func TestExecutedPolicies(t *testing.T) {
	for _, text := range policyTexts() {
		p, err := spine.NewPolicy(text, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			settings := []string{"policy='" + text + "'", "traffic.packets=60", "traffic.arrivals.process=saturating", "firmware.execution=handlers", "firmware.buffers=5"}
			if spine.ExecutablePolicy(p, spine.ExecuteHandlers) != nil {
				if _, err := Load("fig6.4", settings...); err == nil || !strings.Contains(err.Error(), "policy") {
					t.Errorf("not refused: %v", err)
				}
				return
			}
			r := mustRun(t, mustLoad(t, "fig6.4", settings...), Options{Check: true})
			if !r.Drained || r.Forwarded != 60 {
				t.Errorf("%d of 60 packets forwarded; %v", r.Forwarded, r.Notes)
			}
		})
	}
}

// TestExecutionRepeats: each way gives the same fingerprint on every run, with
// one processor or two, and whether or not polls are recorded one by one.
func TestExecutionRepeats(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, how := range executions {
		sc := withExecution(t, how, "fig6.4", "traffic.packets=150", "traffic.arrivals.rate=12000 packets/s", "traffic.sizes.kind=imix")
		want := ""
		for i, opt := range []Options{{}, {}, {Unmeasured: true, Check: true}, {Expand: []Span{{des.Millisecond, 3 * des.Millisecond}, {5 * des.Millisecond, 6 * des.Millisecond}}}, {Stepping: true}} {
			runtime.GOMAXPROCS(1 + i%2)
			r := mustRun(t, sc, opt)
			if want == "" {
				want = r.Fingerprint
			}
			if r.Fingerprint != want {
				t.Errorf("%s, run %d: fingerprint %s, want %s", how, i, r.Fingerprint, want)
			}
		}
	}
}

// TestExecutedPolls: recorded one by one, the polls of a run are as many as it
// counts, follow each other, and the last of them hits. What each took is its own
// cycles and those that it lost to the memory bus.
func TestExecutedPolls(t *testing.T) {
	for _, how := range executions[1:] {
		var rs keep
		sc := withExecution(t, how, "fig6.4", "traffic.packets=30")
		mustRun(t, sc, Options{Check: true, Sinks: []traces.Sink{&rs}, Expand: []Span{{0, des.Second}}})
		counts := make([]uint32, sc.Cards)
		hits := make([]uint8, sc.Cards)
		runs, stalls := 0, 0
		for _, r := range rs {
			switch r.Kind {
			case traces.KindPoll:
				if took := uint64((r.End - r.Start) / (30 * des.Nanosecond)); took != r.Cycles+uint64(r.Stall) {
					t.Fatalf("%s: a poll of Q%d at %v took %d cycles, of which %d its own and %d lost", how, r.Queue, r.End, took, r.Cycles, r.Stall)
				}
				if r.Stall > 0 {
					stalls++
				}
				counts[r.Card]++
				hits[r.Card] = traces.NoQueue
				if r.Count == 1 {
					hits[r.Card] = r.Queue
				}
			case traces.KindPolls:
				if r.Queue == traces.NoQueue {
					continue
				}
				if runs++; counts[r.Card] != r.Count || hits[r.Card] != r.Queue {
					t.Fatalf("%s: a run of %d polls that hits Q%d at %v, and %d were recorded that hit Q%d", how, r.Count, r.Queue, r.End, counts[r.Card], hits[r.Card])
				}
				counts[r.Card] = 0
			}
		}
		if runs < 30*15 || stalls < 30 {
			t.Errorf("%s: %d runs of polls, %d polls with a stall", how, runs, stalls)
		}
	}
}

type keep []traces.Record

func (k *keep) Record(r *traces.Record) error { *k = append(*k, *r); return nil }

// TestExecutedSteady: what is executed allocates as much for many packets as for
// few.
func TestExecutedSteady(t *testing.T) {
	for _, how := range executions[1:] {
		cost := func(packets int) float64 {
			s, err := New(withExecution(t, how, "fig6.4", fmt.Sprintf("traffic.packets=%d", packets)), Options{})
			if err != nil {
				t.Fatal(err)
			}
			return mallocs(func() {
				if _, err := s.Run(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		few := cost(500)
		if per := (cost(1500) - few) / 1000; per > 0.05 {
			t.Errorf("%s: %.3f allocations a packet", how, per)
		}
	}
}

func TestExecutionRefused(t *testing.T) {
	for _, c := range []struct {
		settings string
		want     string // key and reason
	}{
		{"firmware.execution=some", "firmware.execution"},
		{"firmware.extension=[x.o]", "firmware.extension: with execution: table nothing is executed"},
		{"firmware.execution=full policy=round-robin", "policy: with execution: full, round-robin is not an order"},
		{"firmware.execution=handlers policy=oldest-first", "policy: with execution: handlers, oldest-first reads the hardware event vector"},
		{"firmware.execution=handlers policy=static", "policy: with execution: handlers, static runs a fixed cycle"},
		{"firmware.execution=handlers firmware.receive=ring", "firmware.receive: with execution: handlers, ring"},
		{"firmware.execution=full firmware.dma_chain=self", "firmware.dma_chain: with execution: full, self"},
		{"firmware.execution=full firmware.batch=2", "firmware.batch: with execution: full, 2"},
		{"firmware.execution=full firmware.buffers=33", "firmware.buffers: with execution: full, 33"},
		{"firmware.execution=full firmware.credits=65", "firmware.credits: with execution: full, 65"},
		{"firmware.execution=full firmware.header_bytes=64_B", "firmware.header_bytes: with execution: full, 64"},
		{"firmware.execution=full firmware.max_packet=20000_B", "firmware.max_packet: with execution: full, 20000"},
		{"firmware.execution=full host.return=card", "host.return: with execution: full, card"},
		{"firmware.execution=full traffic.link=ethernet extensions=[{kind:_l2}]", "traffic.link: with execution: full, ethernet"},
		{"firmware.execution=full extensions=[{kind:_ipv4},{kind:_ipv4}]", "extensions: with execution: full"},
	} {
		var settings []string
		for _, s := range strings.Fields(c.settings) {
			settings = append(settings, strings.ReplaceAll(strings.ReplaceAll(s, "_B", " B"), ":_", ": "))
		}
		_, err := Load("fig6.4", settings...)
		var ie *InputError
		if err == nil || !errors.As(err, &ie) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.settings, err, c.want)
		}
	}
	for _, c := range []struct{ object, want string }{
		{"testdata/none.o", "no such file"},
		{"execution_test.go", "execution_test.go"},
		{"testdata/extensions/homeless.o", "spine_nowhere"},
	} {
		sc := mustLoad(t, "fig6.4", "firmware.execution=full", "firmware.extension=["+c.object+"]")
		_, err := New(sc, Options{})
		var ie *InputError
		if err == nil || !errors.As(err, &ie) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.object, err, c.want)
		}
	}
	sc := mustLoad(t, "fig6.4", "firmware.execution=full")
	if _, _, err := LowerBound(sc); err == nil || !strings.Contains(err.Error(), "cost table") {
		t.Errorf("a lower bound of executed firmware: %v", err)
	}
	if _, err := New(sc, Options{Extensions: func(int, *lanai.SRAM) ([]spine.Extension, error) { return nil, nil }}); err == nil || !strings.Contains(err.Error(), "extensions in Go") {
		t.Errorf("an extension in Go beside executed firmware: %v", err)
	}
}

// TestExecutionHash: a scenario that says nothing of execution, or table, has the
// hash that it had before there was a choice; what is executed and with which
// extension counts, and not where its object lies.
func TestExecutionHash(t *testing.T) {
	hash := func(settings ...string) string {
		h, err := mustLoad(t, "fig6.4", settings...).Hash()
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	if h := hash(); h != "1326696037aefae8" || hash("firmware.execution=table") != h {
		t.Errorf("hashes %s and %s, want 1326696037aefae8", h, hash("firmware.execution=table"))
	}
	moved := filepath.Join(t.TempDir(), "other.o")
	b, err := os.ReadFile("testdata/extensions/misdeeds.o")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(moved, b, 0o644); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, s := range [][]string{{"firmware.execution=handlers"}, {"firmware.execution=full"}, {"firmware.execution=full", "firmware.extension=[testdata/extensions/misdeeds.o]"}} {
		seen[hash(s...)] = true
	}
	if len(seen) != 3 {
		t.Errorf("hashes of three different runs: %v", slices.Sorted(maps.Keys(seen)))
	}
	if !seen[hash("firmware.execution=full", "firmware.extension=["+moved+"]")] {
		t.Error("the hash depends on where the object lies")
	}
}

// TestExtensionMisdeeds: an extension that breaks every rule there is is stopped
// each time; its packet is dropped, the others go their way, and all that was
// lent comes back.
func TestExtensionMisdeeds(t *testing.T) {
	const packets = 600
	var want ends
	for _, how := range executions[1:] {
		got := ends{}
		var rs keep
		sc := withExecution(t, how, "fig6.4", fmt.Sprintf("traffic.packets=%d", packets), "traffic.arrivals.rate=1 ms",
			"firmware.extension=[testdata/extensions/misdeeds.o]")
		r := mustRun(t, sc, Options{Check: true, Sinks: []traces.Sink{got, &rs}})
		if !r.Drained {
			t.Errorf("%s did not drain: %v", how, r.Notes)
		}
		var kinds []string
		var stopped uint64
		for _, f := range r.Faults {
			stopped += f.Count
			what, _, _ := strings.Cut(f.Text, " at pc")
			_, access, _ := strings.Cut(f.Text, "): ")
			access, _, _ = strings.Cut(access, " of 4")
			kinds = append(kinds, strings.TrimSpace(f.Symbol[:max(0, strings.IndexAny(f.Symbol+"+", "+"))]+": "+what+" "+access))
			if f.Symbol == "" || f.PC == 0 || f.First == 0 || f.Card != 0 {
				t.Errorf("%s: %+v", how, f)
			}
		}
		slices.Sort(kinds)
		wantKinds := []string{
			"recurse: access not allowed", "spine_dispatch: access not allowed fetch",
			"spine_extension: access not allowed", "spine_extension: access not allowed", "spine_extension: access not allowed", "spine_extension: access not allowed",
			"spine_extension: misaligned address", "spine_extension: undefined opcode", "spine_extension: watchdog ran out",
			"spine_router_in: extension breaks the rules of its call: it forwards by card 1000, which is none fetch",
			"spine_router_in: extension breaks the rules of its call: it returns 77, want an action fetch",
			"spine_send: access not allowed fetch",
		}
		if d := cmp.Diff(wantKinds, kinds); d != "" {
			t.Errorf("%s: faults (-want +got):\n%s", how, d)
		}
		drops := r.Dropped[traces.ReasonExtension.String()] + r.Dropped[traces.ReasonWatchdog.String()]
		if r.Forwarded+drops != packets || stopped >= drops || drops > packets/2 || r.Dropped[traces.ReasonWatchdog.String()] == 0 {
			t.Errorf("%s: %d forwarded, dropped %v, %d stopped", how, r.Forwarded, r.Dropped, stopped)
		}
		var marks uint64
		for _, x := range rs {
			if x.Kind != traces.KindMark {
				continue
			}
			marks++
			if x.Count != 3 || x.Event != traces.RouterIn || x.Packet == 0 || x.Cause == 0 || x.Card != 0 {
				t.Errorf("%s: mark %+v", how, x)
			}
		}
		if marks == 0 || !slices.Equal(r.Marks, []uint64{0, 0, 0, marks, 0}) {
			t.Errorf("%s: %d marks recorded, counted %v", how, marks, r.Marks)
		}
		if want == nil {
			want = got
		} else if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s does other than handlers:\n%s", how, d)
		}
	}
}

// TestExtensionMarks: marks are in every format that names records.
func TestExtensionMarks(t *testing.T) {
	dir := t.TempDir()
	sc := withExecution(t, spine.ExecuteHandlers, "fig6.4", "traffic.packets=40", "firmware.extension=[testdata/extensions/misdeeds.o]")
	var rs keep
	s, err := New(sc, Options{Sinks: []traces.Sink{&rs}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	var marks []traces.Record
	for _, r := range rs {
		if r.Kind == traces.KindMark {
			marks = append(marks, r)
		}
	}
	if len(marks) == 0 {
		t.Fatal("no marks")
	}
	for _, name := range []string{"r.csv", "r.txt", "r.parquet", "r.perfetto-trace", "r.rec", "r.json"} {
		path := filepath.Join(dir, name)
		w, err := traces.CreateWriter(path, s.Meta())
		if err != nil {
			t.Fatal(err)
		}
		for i := range rs {
			if err := w.Record(&rs[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if name == "r.json" { // Chrome's viewer; not read back
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(b), `"log_3"`); n < len(marks) {
				t.Errorf("%s: %d marks, want %d", name, n, len(marks))
			}
			continue
		}
		rd, err := traces.OpenReader(path)
		if err != nil {
			t.Fatal(err)
		}
		var got []traces.Record
		var x traces.Record
		for {
			ok, err := rd.Next(&x)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if !ok {
				break
			}
			if x.Kind == traces.KindMark {
				got = append(got, x)
			}
		}
		rd.Close()
		if d := cmp.Diff(marks, got); d != "" {
			t.Errorf("%s: marks (-recorded +read):\n%s", name, d)
		}
	}
}

// TestTestExtensions: the objects in testdata are what their sources compile to.
func TestTestExtensions(t *testing.T) {
	testenv.Client(t, "clang")
	for _, name := range []string{"misdeeds", "homeless"} {
		out := filepath.Join(t.TempDir(), name+".o")
		if err := firmware.Build(context.Background(), firmware.Compiler{}, "testdata/extensions/"+name+".c", out); err != nil {
			t.Fatal(err)
		}
		sc := func(object string) string {
			s := withExecution(t, spine.ExecuteHandlers, "fig6.4", "traffic.packets=60", "traffic.arrivals.rate=1 ms", "firmware.extension=["+object+"]")
			r, err := Run(context.Background(), s, Options{})
			if err != nil {
				return strings.ReplaceAll(err.Error(), object, "")
			}
			return r.Fingerprint
		}
		if kept, now := sc("testdata/extensions/"+name+".o"), sc(out); kept != now {
			v, _ := exec.Command("clang", "--version").Output()
			t.Errorf("%s: the object kept does %s, compiled anew it does %s; %.60s", name, kept, now, v)
		}
	}
}

// TestExecutionRandom runs random machines under random traffic each way, some
// with an extension that breaks rules: every invariant holds, and packets that
// two of them took in end alike in both.
func TestExecutionRandom(t *testing.T) {
	machines := testenv.Size(5, 40)
	for seed := range uint64(machines) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			pick := func(of ...string) string { return of[r.IntN(len(of))] }
			order := "default"
			if r.IntN(2) == 0 {
				order = strings.Trim(fmt.Sprint(r.Perm(spine.NumQueues)), "[]")
			}
			preset := pick("fig6.4", "fig6.4", "four-way", "one-card")
			settings := []string{
				"traffic.packets=100", fmt.Sprintf("seed=%d", seed), fmt.Sprintf("policy=%q", order),
				fmt.Sprintf("firmware.buffers=%d", 1+r.IntN(32)), fmt.Sprintf("firmware.credits=%d", 1+r.IntN(8)),
				fmt.Sprintf("traffic.arrivals.rate=%d µs", 40+r.IntN(300)), "traffic.sizes.kind=" + pick("imix", "rfc2544", "fixed"),
				fmt.Sprintf("traffic.fifo=%d", 2+r.IntN(40)), "traffic.ttl=" + pick("1", "31"), fmt.Sprintf("traffic.carry=%d B", 60+r.IntN(1500)),
				fmt.Sprintf("bus.peer_wait=%d", 1+r.IntN(3)), fmt.Sprintf("bus.latency_timer=%d", 40+r.IntN(100)),
				"card.no_buffer=" + pick("backpressure", "discard"), "random_ties=" + pick("true", "false"),
			}
			if preset == "four-way" && r.IntN(2) == 0 {
				settings = append(settings, "routes.cards=[0, 1, 2, 3]")
			}
			if r.IntN(3) == 0 {
				settings = append(settings, "routes.default_route=false", "traffic.destinations.unroutable=0.2")
			}
			if r.IntN(4) == 0 {
				settings = append(settings, "traffic.arrivals.process=saturating")
			}
			ways := executions
			if r.IntN(4) == 0 {
				settings = append(settings, "firmware.extension=[testdata/extensions/misdeeds.o]")
				ways = ways[1:]
			}
			var first ends
			for _, how := range ways {
				got := ends{}
				res := mustRun(t, withExecution(t, how, preset, settings...), Options{Check: true, Sinks: []traces.Sink{got}})
				if !res.Drained {
					t.Errorf("%s did not drain: %v; %v", how, res.Notes, settings)
				}
				if first == nil {
					first = got
				}
				if preset == "four-way" && slices.Contains(settings, "traffic.arrivals.process=saturating") {
					continue // which card's packet is which goes by the machine
				}
				for p, end := range got {
					_, end, _ = strings.Cut(end, ", ")
					_, want, _ := strings.Cut(first[p], ", ")
					if strings.Contains(end+want, "(FIFO full)") || strings.Contains(end+want, "(no buffer") || want == "" {
						continue // there was no room for it
					}
					if end != want {
						t.Errorf("%s: packet %d is %s, with %s %s; %v", how, p, end, ways[0], want, settings)
					}
				}
			}
		})
	}
}

// TestExecutedChain: measures know how long an executed DMA chain's handlers are.
func TestExecutedChain(t *testing.T) {
	chain := func(settings ...string) des.Time {
		m, _, err := mustLoad(t, "fig6.4", settings...).RecordSpec()
		if err != nil {
			t.Fatal(err)
		}
		return m.ChainHandlers
	}
	var cycles int64
	costs, err := executedCosts()
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []traces.Event{traces.PeerToPeerStart, traces.DMAStartHandler, traces.DMAGenericStart, traces.DMAStartBody, traces.DMAStartHeader} {
		cycles += int64(costs.Handler[h].Cycles)
	}
	want := des.Time(cycles) * 30 * des.Nanosecond
	if got := chain("firmware.execution=full"); got != want || got != chain("firmware.execution=handlers") || got == chain() {
		t.Errorf("a chain of %v, want %v, and other than the table's %v", got, want, chain())
	}
}
