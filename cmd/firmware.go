package cmd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"spinesim/lanai"
	"spinesim/lanai/isa"
	"spinesim/lanai/loader"
	"spinesim/router"
	"spinesim/router/lctrie"
	"spinesim/sim"
	"spinesim/spine/firmware"
	"spinesim/traces"
)

func newFirmware() *cobra.Command {
	c := &cobra.Command{
		Use:   "firmware",
		Short: "Write, build, list and run C on the simulated card's processor",
		Long: `firmware works with code that the card's processor executes, compiled by clang's
lanai target: start an extension from a template, build it, link it with the
SPINE run-time in C, run packets through it, and see what every handler, function
and instruction costs.`,
		Example: `  spinesim firmware new counter my.c
  spinesim firmware build my.c
  spinesim firmware run --extension my.o
  spinesim firmware profile --extension my.o --function spine_extension`,
		Args: wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newFirmwareNew(), newFirmwareBuild(), newFirmwareDisasm(), newFirmwareRun(), newFirmwareProfile(), newFirmwareCompare())
	return c
}

func newFirmwareNew() *cobra.Command {
	return &cobra.Command{
		Use:     "new TEMPLATE [FILE.c]",
		Short:   "Write an extension to start from, and spine.h beside it",
		Long:    "new writes the C source of an extension (" + strings.Join(firmware.Templates(), ", ") + ") and the header it includes.\nIt overwrites nothing.",
		Example: "  spinesim firmware new filter\n  spinesim firmware new counter flows.c",
		Args:    wrapArgs(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, args []string) error {
			text, err := firmware.Template(args[0])
			if err != nil {
				return usageError{err}
			}
			path := args[0] + ".c"
			if len(args) == 2 {
				path = args[1]
			}
			if err := writeNew(path, text); err != nil {
				return err
			}
			header, err := firmware.Header()
			if err != nil {
				return err
			}
			at := filepath.Join(filepath.Dir(path), "spine.h")
			if err := writeNew(at, header); err != nil && !errors.Is(err, os.ErrExist) {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s and %s; next: spinesim firmware build %s\n", path, at, path)
			return err
		},
	}
}

func writeNew(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return usageError{err}
	}
	if _, err := f.Write(b); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

func newFirmwareBuild() *cobra.Command {
	var out, clang, level string
	c := &cobra.Command{
		Use:     "build FILE.c",
		Short:   "Compile an extension with clang's lanai target",
		Example: "  spinesim firmware build my.c -o my.o",
		Args:    wrapArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if out == "" {
				out = strings.TrimSuffix(args[0], filepath.Ext(args[0])) + ".o"
			}
			if filepath.Clean(out) == filepath.Clean(args[0]) {
				return usagef("the object would replace its source, %s", args[0])
			}
			return firmware.Build(c.Context(), firmware.Compiler{Path: clang, Optimise: level}, args[0], out)
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "", "object `file` (default: beside the source)")
	c.Flags().StringVar(&clang, "clang", "", "compiler `program` (default: clang, or clang-22 down to clang-14)")
	c.Flags().StringVarP(&level, "optimise", "O", "-O2", "optimisation `level`")
	return c
}

func readObject(path string) (*loader.Object, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, usageError{err}
	}
	o, err := loader.Parse(path, b)
	if err != nil {
		return nil, usageError{err}
	}
	return o, nil
}

func newFirmwareDisasm() *cobra.Command {
	var function string
	var showMap bool
	c := &cobra.Command{
		Use:     "disasm [FILE.o ...]",
		Short:   "List the code of objects, placed and linked with the run-time",
		Long:    "disasm links the objects with the SPINE run-time and its library, places them in a\ncard's memory and lists the code; without objects, the run-time's own.",
		Example: "  spinesim firmware disasm --function spine_lookup\n  spinesim firmware disasm my.o --map",
		RunE: func(c *cobra.Command, args []string) error {
			bench, err := firmwareBench(args)
			if err != nil {
				return err
			}
			if showMap {
				return bench.Image.WriteMap(c.OutOrStdout())
			}
			return firmware.WriteListing(c.OutOrStdout(), bench.SRAM, bench.Image, nil, function)
		},
	}
	c.Flags().StringVar(&function, "function", "", "list one `function`")
	c.Flags().BoolVar(&showMap, "map", false, "print the map of memory instead")
	return c
}

// firmwareInputs are the thousand routes' table and the default router's lists.
func firmwareInputs(extension []string) (firmware.Inputs, []router.Route, error) {
	var in firmware.Inputs
	routes, err := router.RIB2008()
	if err != nil {
		return in, nil, err
	}
	table, err := router.NewTable(routes, router.Assignment{Cards: []uint8{1, 2, 3}}, lctrie.Options{})
	if err != nil {
		return in, nil, err
	}
	spec := router.DefaultIPv4()
	in = firmware.Inputs{
		Image: table.AppendImage(nil), OwnWire: spec.OwnWire, MTU: spec.MTU,
		BadSources: masks(spec.MartianSources), Locals: masks(spec.Local), BadTargets: masks(spec.MartianDestinations),
	}
	for _, path := range extension {
		o, err := readObject(path)
		if err != nil {
			return in, nil, err
		}
		in.Extension = append(in.Extension, o)
	}
	return in, routes, nil
}

func masks(ps []netip.Prefix) (out []firmware.Prefix) {
	for _, p := range ps {
		a := p.Masked().Addr().As4()
		out = append(out, firmware.Prefix{Addr: binary.BigEndian.Uint32(a[:]), Mask: uint32(^uint64(0) << (32 - p.Bits()))})
	}
	return out
}

func firmwareBench(extension []string) (*firmware.Bench, error) {
	in, _, err := firmwareInputs(extension)
	if err != nil {
		return nil, err
	}
	return linked(in)
}

// linked makes the bench; what does not link is the user's.
func linked(in firmware.Inputs) (*firmware.Bench, error) {
	b, err := firmware.NewBench(in)
	for _, known := range []error{loader.ErrUndefined, loader.ErrDuplicate, loader.ErrRange, lanai.ErrNoRoom} {
		if errors.Is(err, known) {
			return nil, usageError{err}
		}
	}
	return b, err
}

// firmwarePackets are packets to random addresses within the routes.
func firmwarePackets(routes []router.Route, n, bytes int, seed uint64) ([]firmware.Packet, error) {
	r := rand.New(rand.NewPCG(seed, 0))
	ps := make([]firmware.Packet, n)
	for i := range ps {
		p := routes[r.IntN(len(routes))].Prefix
		a := p.Addr().As4()
		v := binary.BigEndian.Uint32(a[:]) | uint32(uint64(r.Uint32())&(1<<(32-p.Bits())-1))
		binary.BigEndian.PutUint32(a[:], v)
		src := netip.AddrFrom4([4]byte{198, 18, byte(r.Uint32()), byte(r.Uint32())})
		h, err := router.Header{TotalLength: bytes, TTL: 64, Protocol: 17, Src: src, Dst: netip.AddrFrom4(a)}.Append(nil)
		if err != nil {
			return nil, err
		}
		ps[i] = firmware.Packet{Header: h, Bytes: bytes}
	}
	return ps, nil
}

// firmwareFlags are those of the commands that run packets.
type firmwareFlags struct {
	extension      []string
	packets, bytes int
	seed           uint64
}

func (f *firmwareFlags) add(c *cobra.Command) {
	c.Flags().StringSliceVar(&f.extension, "extension", nil, "object `files` of an extension, linked in before the router")
	c.Flags().IntVar(&f.packets, "packets", 1000, "packets, each to a random address within a random route of the thousand")
	c.Flags().IntVar(&f.bytes, "bytes", 1500, "bytes of a packet, 64 to 1500")
	c.Flags().Uint64Var(&f.seed, "seed", 1, "of the addresses")
}

func (f *firmwareFlags) run(profile bool) (*firmware.Bench, *firmware.Costs, *isa.Profile, []int, error) {
	if f.packets < 1 || f.bytes < 64 || f.bytes > 1500 {
		return nil, nil, nil, nil, usagef("%d packets of %d bytes: want at least 1, of 64 to 1500", f.packets, f.bytes)
	}
	in, routes, err := firmwareInputs(f.extension)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	b, err := linked(in)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	packets, err := firmwarePackets(routes, f.packets, f.bytes, f.seed)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	marks := make([]int, 5)
	b.CPU.OnMark = func(m isa.Mark) { marks[m.Number]++ }
	var p *isa.Profile
	if profile {
		p = isa.NewProfile(0, int(b.SRAM.Bytes()))
		b.CPU.Profile = p
	}
	costs, err := b.HandlerCosts(packets)
	return b, costs, p, marks, err
}

type firmwareRow struct {
	Name       string  `json:"name"`
	Runs       int     `json:"runs"`
	Cycles     float64 `json:"cycles"`
	Min        int64   `json:"min"`
	Max        int64   `json:"max"`
	Accesses   float64 `json:"accesses"`
	Interlocks float64 `json:"interlocks"`
}

func firmwareRows(costs *firmware.Costs) (rows []firmwareRow) {
	add := func(name string, x firmware.Cost) {
		if x.Runs == 0 {
			return
		}
		n := float64(x.Runs)
		rows = append(rows, firmwareRow{name, x.Runs, float64(x.Cycles) / n, x.Min, x.Max, float64(x.Accesses) / n, float64(x.Interlocks) / n})
	}
	for q := range costs.Miss {
		add(fmt.Sprintf("Poll Q%d, miss", q), costs.Miss[q])
		add(fmt.Sprintf("Poll Q%d, hit", q), costs.Hit[q])
	}
	add("idle scan", costs.Scan)
	for e := range traces.Event(traces.NumEvents) {
		add(e.String(), costs.Handler[e])
	}
	return rows
}

func newFirmwareRun() *cobra.Command {
	var f firmwareFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "run",
		Short: "Execute every handler on packets, and tell its cycles",
		Long: `run takes packets through the SPINE run-time in C: received, routed, moved to the
peer, acknowledged, sent. Each poll and handler is executed, alone on the memory
bus, and its cycles and loads and stores are counted.`,
		Example: "  spinesim firmware run --packets 1000\n  spinesim firmware run --extension my.o --json",
		Args:    wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			_, costs, _, marks, err := f.run(false)
			if err != nil {
				return err
			}
			rows := firmwareRows(costs)
			if asJSON {
				return writeJSON(c.OutOrStdout(), struct {
					Costs []firmwareRow `json:"costs"`
					Marks []int         `json:"marks"`
				}{rows, marks})
			}
			return printFirmware(c.OutOrStdout(), rows, marks)
		},
	}
	f.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func printFirmware(w io.Writer, rows []firmwareRow, marks []int) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "handler\truns\tcycles\tleast\tmost\tloads+stores\tinterlocks\t")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%d\t%.1f\t%d\t%d\t%.1f\t%.1f\t\n", r.Name, r.Runs, r.Cycles, r.Min, r.Max, r.Accesses, r.Interlocks)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if slices.Max(marks) > 0 {
		for i, n := range marks {
			if _, err := fmt.Fprintf(w, "log_%d: %d times\n", i, n); err != nil {
				return err
			}
		}
	}
	return nil
}

func newFirmwareProfile() *cobra.Command {
	var f firmwareFlags
	var sc scenarioFlags
	var function, out, how string
	var card int
	c := &cobra.Command{
		Use:   "profile",
		Short: "List code with what each instruction cost, or write a pprof profile",
		Long: `profile runs packets as "run" does and prints the listing with times executed,
cycles and waits at each instruction; with --output it writes a profile by function
for go tool pprof. With --scenario it is that of a card in a whole run, where the
engines take their share of the memory bus.`,
		Example: "  spinesim firmware profile --function spine_lookup\n  spinesim firmware profile -o cycles.pb.gz\n  spinesim firmware profile --scenario fig6.4 --extension my.o --function spine_extension",
		Args:    wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			var b *firmware.Bench
			var p *isa.Profile
			var err error
			if sc.name != "" {
				b, p, err = profileScenario(c, &sc, &f, how, card)
			} else {
				for _, flag := range []string{"set", "firmware", "card"} {
					if c.Flags().Changed(flag) {
						return usagef("--%s belongs to a run of a scenario: want --scenario too", flag)
					}
				}
				b, _, p, _, err = f.run(true)
			}
			if err != nil {
				return err
			}
			if out != "" {
				return writeFile(out, func(w io.Writer) error { return firmware.WriteProfile(w, b.Image, p) })
			}
			return firmware.WriteListing(c.OutOrStdout(), b.SRAM, b.Image, p, function)
		},
	}
	f.add(c)
	c.Flags().StringVarP(&sc.name, "scenario", "s", "", "run this scenario (a preset's name or a file) instead of packets one by one")
	sc.addSet(c)
	c.Flags().StringVar(&how, "firmware", "full", "with --scenario: what is executed, handlers or full")
	c.Flags().IntVar(&card, "card", 0, "with --scenario: the card whose processor is listed")
	c.Flags().StringVar(&function, "function", "", "list one `function`")
	c.Flags().StringVarP(&out, "output", "o", "", "write a pprof profile to a `file` instead")
	return c
}

// profileScenario runs a scenario with what a card executes counted.
func profileScenario(c *cobra.Command, scf *scenarioFlags, f *firmwareFlags, how string, card int) (*firmware.Bench, *isa.Profile, error) {
	exec := executionFlags{firmware: how, extension: f.extension}
	settings := append(scf.settings, exec.settings(scf.settings)...)
	for _, flag := range []string{"bytes", "seed"} {
		if c.Flags().Changed(flag) {
			return nil, nil, usagef("--%s is the scenario's: use --set", flag)
		}
	}
	settings = append(settings, fmt.Sprintf("traffic.packets=%d", f.packets))
	s, err := sim.Load(scf.name, settings...)
	if err != nil {
		return nil, nil, err
	}
	run, err := sim.New(s, sim.Options{Unmeasured: true})
	if err != nil {
		return nil, nil, err
	}
	if card < 0 || card >= s.Cards {
		return nil, nil, usagef("--card %d, want 0 … %d", card, s.Cards-1)
	}
	fw := run.Router().Card(card).Firmware()
	if fw == nil {
		return nil, nil, usagef("--firmware %s: nothing is executed", how)
	}
	fw.CPU.Profile = isa.NewProfile(0, int(fw.SRAM.Bytes()))
	if _, err := run.Run(c.Context()); err != nil {
		return nil, nil, err
	}
	return &fw.Bench, fw.CPU.Profile, nil
}
