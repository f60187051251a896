package sim

import (
	"errors"
	"fmt"
	"strings"

	"spinesim/lanai/ilp"
	"spinesim/pci/host"
	"spinesim/router/bihash"
	"spinesim/router/l2"
	"spinesim/sim/des"
)

// ExtensionSpec is one extension of every card.
type ExtensionSpec struct {
	Kind string   `yaml:"kind" doc:"ipv4 (routes by the table), l2 (forwards by station addresses), or ilp (works on packets' data)." enum:"ipv4,l2,ilp"`
	L2   *L2Spec  `yaml:"l2,omitempty" doc:"For kind: l2."`
	ILP  *ILPSpec `yaml:"ilp,omitempty" doc:"For kind: ilp."`
}

// L2Spec is forwarding by station addresses. What is left out has the value in
// brackets.
type L2Spec struct {
	Buckets  int       `yaml:"buckets,omitempty" doc:"Buckets of each card's station table, a power of two [1024]." min:"0" max:"16777216"`
	Memory   des.Bytes `yaml:"memory,omitempty" doc:"Memory of the table on each card [96 KiB]."`
	Hash     string    `yaml:"hash,omitempty" doc:"Hash function: crc32c or multiplicative [crc32c]." enum:"crc32c,multiplicative"`
	Stations int       `yaml:"stations,omitempty" doc:"Stations that a card knows at most [1024]." min:"0"`
	Age      des.Time  `yaml:"age,omitempty" doc:"How long a station is remembered [300 s, IEEE 802.1D]."`
	Learning string    `yaml:"learning,omitempty" doc:"Whether stations are learned from the packets they send [on]." enum:"on,off"`
	Cache    string    `yaml:"one_entry_cache,omitempty" doc:"Whether the last source and destination are kept [on]." enum:"on,off"`
	Unknown  string    `yaml:"unknown,omitempty" doc:"A packet to a station that is not known: flood, next (the next extension), to-host or drop [flood]." enum:"flood,next,to-host,drop"`
	Notice   des.Time  `yaml:"notice,omitempty" doc:"Time until the other cards know what one has learned [100 µs]."`
}

// ILPSpec is work on packets' data.
type ILPSpec struct {
	Functions      []string `yaml:"functions" doc:"In this order: bswap, pes, cksum, crc32, or synthetic:N with N words of state."`
	Mode           string   `yaml:"mode" doc:"sequential (a pass for each function), integrated (one pass), or dma-checksum (one pass, and the DMA engine computes the checksum)." enum:"sequential,integrated,dma-checksum"`
	BlockRegisters bool     `yaml:"block_registers,omitempty" doc:"Registers that a block of more than a word occupies are lost to state."`
	SpillConstants bool     `yaml:"spill_constants,omitempty" doc:"Constants compete with state for registers."`
}

// KernelSpec is the kernel's path of a packet that a card hands up. What is left
// out has the default of package host.
type KernelSpec struct {
	Processor        string     `yaml:"processor,omitempty" doc:"The host's processor [pentium-pro-200, thesis p.107]." enum:"pentium-pro-200,powerbook-g3,walnut-405,pseries-650"`
	Queue            int        `yaml:"queue,omitempty" doc:"Packets that wait in host memory [64]; one that finds no room is dropped." min:"0" max:"1000000"`
	Notify           string     `yaml:"notify,omitempty" doc:"How the kernel learns of packets: interrupt (each), coalesced (the first of a busy spell) or poll [interrupt]." enum:"interrupt,coalesced,poll"`
	PollInterval     des.Time   `yaml:"poll_interval,omitempty" doc:"For notify: poll [50 µs]."`
	InterruptLatency *des.Time  `yaml:"interrupt_latency,omitempty" doc:"From a card's interrupt to its handler on an idle processor [2 µs]."`
	Copies           *int       `yaml:"copies,omitempty" doc:"How often the packet is copied [1]." min:"0" max:"8"`
	CopyOffset       *des.Bytes `yaml:"copy_offset,omitempty" doc:"Where a packet begins in its buffer [0 B]; one that is no multiple of the word makes copies unaligned."`
	Flush            string     `yaml:"flush,omitempty" doc:"When pages are made coherent: never, eager, lazy, or at execute [never]." enum:"never,eager,lazy,at execute"`
	Pages            int        `yaml:"pages,omitempty" doc:"Pages that packets are copied to in turn [64]." min:"0" max:"1000000"`
	MappedEvery      int        `yaml:"mapped_every,omitempty" doc:"Every so many packets, the page is mapped into a process [0: never]." min:"0"`
	ExecutedEvery    int        `yaml:"executed_every,omitempty" doc:"Every so many packets, the page is executed from [0: never]." min:"0"`
}

// checkExtensions returns the first problem with extensions, what they need, and
// the host's model, with its key.
func (s *Scenario) checkExtensions() (string, error) {
	ethernet := s.Traffic.Link == "ethernet"
	bridged := false
	for i := range s.Extensions {
		x := &s.Extensions[i]
		path := fmt.Sprintf("extensions[%d]", i)
		switch {
		case x.Kind == "":
			return path, errors.New("want a kind: ipv4, l2 or ilp")
		case x.L2 != nil && x.Kind != "l2":
			return path + ".l2", fmt.Errorf("belongs to kind: l2, not to kind: %s", x.Kind)
		case x.ILP != nil && x.Kind != "ilp":
			return path + ".ilp", fmt.Errorf("belongs to kind: ilp, not to kind: %s", x.Kind)
		}
		switch x.Kind {
		case "ilp":
			if x.ILP == nil {
				return path, errors.New("kind: ilp needs ilp, with functions and a mode")
			}
			if _, err := ilp.NewStage(x.ILP.stage(ilp.Lanai4())); err != nil {
				return path + ".ilp", err
			}
		case "l2":
			if bridged {
				return path, errors.New("l2 is there twice")
			}
			bridged = true
			if err := x.l2(ethernet).Validate(); err != nil {
				return path + ".l2", err
			}
		case "ipv4":
			if ethernet && !bridged {
				return path, errors.New("with traffic.link: ethernet, ipv4 needs l2 before it, which takes the link header off")
			}
		}
	}
	if ethernet && s.Extensions == nil {
		return "extensions", errors.New("with traffic.link: ethernet, want an l2 extension: IPv4 alone does not know link headers")
	}
	n := s.Traffic.Stations
	switch {
	case n < 0 || n > 1<<16 || n&(n-1) != 0:
		return "traffic.stations", fmt.Errorf("%d, want 0, or a power of two up to 65536", n)
	case n > 0 && s.Cards < 2:
		return "traffic.stations", errors.New("stations send to stations behind other cards: want at least 2 cards")
	case n > 0 && s.Traffic.Capture != nil:
		return "traffic.stations", errors.New("a capture brings its own addresses")
	case s.Firmware.Batch > 1 && s.Firmware.BatchWait <= 0:
		return "firmware.batch_wait", fmt.Errorf("%v, want a time above 0", s.Firmware.BatchWait)
	}
	switch {
	case s.Host.Kernel != nil && s.Host.Model != "kernel":
		return "host.kernel", fmt.Errorf("belongs to model: kernel, not to model: %s", s.Host.Model)
	case s.Host.Model == "kernel":
		p, err := s.Host.kernel()
		if err == nil {
			err = p.Validate()
		}
		if err != nil {
			return "host.kernel", err
		}
	}
	return "", nil
}

// stage is the work on data as package ilp knows it.
func (x *ILPSpec) stage(m ilp.Machine) ilp.StageSpec {
	s := ilp.StageSpec{
		Functions: x.Functions, Machine: m, BlockRegisters: x.BlockRegisters, SpillConstants: x.SpillConstants,
		Mode: ilp.Integrated, DMAChecksum: x.Mode == "dma-checksum",
	}
	if x.Mode == "sequential" {
		s.Mode = ilp.Sequential
	}
	return s
}

// l2 is forwarding as package l2 knows it.
func (x *ExtensionSpec) l2(ethernet bool) l2.Spec {
	s := l2.DefaultSpec()
	if ethernet {
		s.Addressing = l2.Ethernet
	}
	p := x.L2
	if p == nil {
		return s
	}
	set(&s.Table.Buckets, p.Buckets)
	set(&s.Table.Bytes, int(p.Memory))
	set(&s.Table.Hash, bihash.Hash(p.Hash))
	set(&s.Stations, p.Stations)
	set(&s.Age, p.Age)
	set(&s.Unknown, l2.Unknown(p.Unknown))
	set(&s.Notice, p.Notice)
	s.NoLearning, s.NoCache = p.Learning == "off", p.Cache == "off"
	return s
}

// set gives v a value that was given, any but the zero one.
func set[T comparable](v *T, given T) {
	var zero T
	if given != zero {
		*v = given
	}
}

// kernel is the kernel's path as package host knows it.
func (h *HostSpec) kernel() (host.PathSpec, error) {
	s := host.DefaultPath()
	k := h.Kernel
	if k == nil {
		return s, nil
	}
	var err error
	if k.Processor != "" {
		if s.Processor, err = host.ProcessorByName(k.Processor); err != nil {
			return s, err
		}
	}
	if k.Notify != "" {
		if s.Notify, err = host.NotifyByName(k.Notify); err != nil {
			return s, err
		}
	}
	if k.Flush != "" {
		if s.Flush, err = flushByName(k.Flush); err != nil {
			return s, err
		}
	}
	set(&s.QueuePackets, k.Queue)
	set(&s.PollInterval, k.PollInterval)
	set(&s.Pages, k.Pages)
	s.MappedEvery, s.ExecutedEvery = k.MappedEvery, k.ExecutedEvery
	if k.InterruptLatency != nil {
		s.InterruptLatency = *k.InterruptLatency
	}
	if k.Copies != nil {
		s.Copies = *k.Copies
	}
	if k.CopyOffset != nil {
		s.CopyOffset = int(*k.CopyOffset)
	}
	return s, nil
}

func flushByName(name string) (host.FlushPolicy, error) {
	var names []string
	for f := range host.FlushPolicy(host.NumFlushPolicies) {
		if f.String() == name {
			return f, nil
		}
		names = append(names, f.String())
	}
	return 0, fmt.Errorf("flush policy %q, want one of %s", name, strings.Join(names, ", "))
}

// Cycles is what the work costs a card's processor for a packet of that many
// bytes of data.
func (x *ILPSpec) Cycles(bytes int) (int, error) {
	s, err := ilp.NewStage(x.stage(ilp.Lanai4()))
	if err != nil {
		return 0, err
	}
	cycles, _ := s.Cost(bytes)
	return cycles, nil
}
