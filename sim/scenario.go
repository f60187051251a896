package sim

import (
	"spinesim/sim/des"
	"spinesim/sim/traffic"
	"spinesim/spine"
)

// Scenario is everything that a run needs. It is read from YAML; every value
// that has a unit is written with it. The zero value is not a scenario: start
// from Load or Preset.
type Scenario struct {
	Name        string `yaml:"name" doc:"What the scenario is called."`
	Description string `yaml:"description,omitempty" doc:"What it shows, for people."`
	Extends     string `yaml:"extends,omitempty" doc:"Another scenario (a preset's name or a file beside this one) whose values hold where this one is silent."`
	Seed        uint64 `yaml:"seed" doc:"Seed of every random stream: same scenario and seed, same bytes."`
	RandomTies  bool   `yaml:"random_ties" doc:"Shuffle events of equal time and priority, to expose results that depend on their order."`

	Cards    int          `yaml:"cards" doc:"Number of cards in the router, 1 to 4 (thesis p.108: four)." min:"1" max:"4"`
	Card     CardSpec     `yaml:"card" doc:"The hardware of every card."`
	Bus      BusSpec      `yaml:"bus" doc:"The PCI bus."`
	Firmware FirmwareSpec `yaml:"firmware" doc:"The run-time on every card."`
	Policy   string       `yaml:"policy" doc:"The dispatcher's policy: a name with parameters, or an order of the seven queues."`
	Routes   RouteSpec    `yaml:"routes" doc:"The forwarding table."`
	// Extensions are what the router handler runs on every card, in order; none
	// given is ipv4 alone.
	Extensions []ExtensionSpec `yaml:"extensions,omitempty" doc:"What the router handler runs on every card, in this order, until one decides; ipv4 alone unless given."`

	Traffic TrafficSpec `yaml:"traffic" doc:"What arrives on the wires."`
	Host    HostSpec    `yaml:"host" doc:"The host behind the bus."`
	Measure MeasureSpec `yaml:"measure" doc:"How the run is measured."`
	Found   *Finding    `yaml:"found,omitempty" doc:"How a value of this scenario was found, for the record; it changes nothing."`
}

// CardSpec is the hardware of a card.
type CardSpec struct {
	Preset    string          `yaml:"preset" doc:"lanai4 (33 1/3 MHz, 1 MiB) or lanai9 (132 MHz, 2 MiB)." enum:"lanai4,lanai9"`
	Clock     *des.Frequency  `yaml:"clock,omitempty" doc:"Processor clock; the preset's unless given."`
	SRAM      *des.Bytes      `yaml:"sram,omitempty" doc:"Memory of a card; the preset's unless given."`
	Wire      *des.Rate       `yaml:"wire,omitempty" doc:"Rate of the link in either direction; the preset's unless given (thesis p.108: 160 MB/s)."`
	NoBuffer  string          `yaml:"no_buffer" doc:"What happens to a packet on the wire while no buffer is posted: backpressure or discard." enum:"backpressure,discard"`
	Phases    string          `yaml:"phases" doc:"Phases of the cards' clocks: seeded, or aligned." enum:"seeded,aligned"`
	Deviation []des.Deviation `yaml:"deviation,omitempty" doc:"Offset of each card's oscillator, such as 50 ppm."`
}

// BusSpec is the bus.
type BusSpec struct {
	Clock        des.Frequency `yaml:"clock" doc:"Bus clock (thesis p.108: 33 MHz; 33 1/3 MHz is chosen)."`
	Width        int           `yaml:"width" doc:"Width in bits: 32 or 64." enum:"32,64"`
	LatencyTimer int           `yaml:"latency_timer" doc:"Clocks that a master may keep the bus once others want it." min:"0" max:"255"`
	Burst        des.Bytes     `yaml:"burst" doc:"Longest burst of a DMA; 0 B is a whole packet."`
	PeerWait     int           `yaml:"peer_wait" doc:"Wait states a data phase of a card as target; free in the fit. A whole number, as the bus counts clocks: 2 carries 44 MB/s of a long burst (1,500 bytes take about 35 µs), 1 would carry 66. The 55–60 MB/s measured between two cards of such PCs are effective, of 8 KB UDP packets, and lie between the two: no whole number gives them, and a fraction would stand for a mix that nobody has measured." min:"0" max:"7"`
}

// FirmwareSpec is the run-time of a card.
type FirmwareSpec struct {
	Receive     string              `yaml:"receive" doc:"How the receive engine is armed: split (header, then body), whole, or ring." enum:"split,whole,ring"`
	DMAChain    string              `yaml:"dma_chain" doc:"Queue of the DMA chain's continuations: dma (front of Q6) or self (back of Q0)." enum:"dma,self"`
	Buffers     int                 `yaml:"buffers" doc:"Packet buffers on a card." min:"1" max:"65536"`
	Credits     int                 `yaml:"credits" doc:"Packets that may be under way to one egress card." min:"1" max:"4096"`
	HeaderBytes des.Bytes           `yaml:"header_bytes" doc:"Length of the header receive and of the header transfer."`
	MaxPacket   des.Bytes           `yaml:"max_packet" doc:"Longest packet a buffer holds."`
	Poll        des.Cycles          `yaml:"poll" doc:"Cost of polling one queue; free in the fit."`
	Vector      des.Cycles          `yaml:"vector" doc:"Cost of reading the hardware event vector, for policies that need it."`
	Factors     spine.Factors       `yaml:"factors" json:"Scale" doc:"Factors on the table's costs, by groups of handlers; each free in the fit. As costs do, they count where execution is table."`
	Costs       map[string]CostSpec `yaml:"costs,omitempty" doc:"Costs of single handlers by their published names, whatever factors says of the table's."`
	Batch       int                 `yaml:"batch" doc:"Packets that the router handler is given at a time; extensions can share work among them, packets wait for each other." min:"1" max:"256"`
	BatchWait   des.Time            `yaml:"batch_wait" doc:"Longest time that a packet waits for its batch to fill."`
	Watchdog    des.Cycles          `yaml:"watchdog" doc:"Longest run of the router handler; an extension that exceeds it is stopped and unloaded, one in C loses its packet."`
	Execution   string              `yaml:"execution" json:",omitempty" doc:"What the card's processor executes: table (nothing: costs are data), handlers (each poll and handler, compiled from C; dispatcher and policy take no time) or full (the whole firmware in C, its dispatcher polling in the policy's order). Costs of what is executed do not count." enum:"table,handlers,full"`
	Extension   []string            `yaml:"extension,omitempty" json:",omitempty" doc:"For execution: handlers or full: object files of an extension in C, which the router handler calls first (spinesim firmware build makes them)."`
	RouterCost  string              `yaml:"router_cost" doc:"Cost of the router handler: charged (by the extension as it works, beside the table's) or table (the table's alone, as where it was measured whole)." enum:"charged,table"`
}

// CostSpec is one handler's cost.
type CostSpec struct {
	Cycles   des.Cycles `yaml:"cycles" doc:"Instruction cycles."`
	Accesses int        `yaml:"accesses" doc:"Loads and stores among them."`
	Source   string     `yaml:"source,omitempty" doc:"Where the figure comes from."`
}

// RouteSpec is the forwarding table.
type RouteSpec struct {
	File         string  `yaml:"file,omitempty" doc:"Route file: text lines of prefix and next hop, or an MRT TABLE_DUMP_V2 dump, plain, .gz or .bz2. The embedded table unless given."`
	Embedded     string  `yaml:"embedded,omitempty" doc:"Embedded table: rib2008 (1,000 real routes)." enum:"rib2008"`
	Limit        int     `yaml:"limit,omitempty" doc:"Use only the first so many routes; 0 is all." min:"0"`
	DefaultRoute bool    `yaml:"default_route" doc:"Keep a route 0.0.0.0/0."`
	Cards        []int   `yaml:"cards,omitempty" doc:"Cards that next hops are assigned to; all but the ingress card when there is one, else all."`
	Assign       string  `yaml:"assign" doc:"Rule that assigns next hops to cards: round-robin, balance (by number of routes), per-route (each route by itself, an even share) or hash." enum:"round-robin,balance,per-route,hash"`
	Fill         float64 `yaml:"fill" doc:"Fill factor of the LC-trie." min:"0.01" max:"1"`
	RootBranch   int     `yaml:"root_branch" doc:"Bits of the LC-trie's root branch; 0 lets the fill factor decide." min:"0" max:"24"`
}

// TrafficSpec is what arrives.
type TrafficSpec struct {
	Packets      uint64          `yaml:"packets" doc:"Packets offered to each ingress card, 0 for as many as a capture has."`
	Ingress      []int           `yaml:"ingress" doc:"Cards whose wires carry traffic."`
	FIFO         int             `yaml:"fifo" doc:"Packets that wait upstream of a card (switch port and sender)." min:"1"`
	Arrivals     ArrivalSpec     `yaml:"arrivals" doc:"When packets arrive."`
	Sizes        SizeSpec        `yaml:"sizes" doc:"How long they are."`
	Destinations DestinationSpec `yaml:"destinations" doc:"Where they go."`
	Link         string          `yaml:"link" doc:"Link header before each packet: ip (none) or ethernet (14 bytes, addresses 02:00 and the IPv4 address)." enum:"ip,ethernet"`
	Stations     int             `yaml:"stations" doc:"Stations behind each card, a power of two: packets go from one behind the ingress card to one behind another. 0: sources of 198.18.0.0/15, destinations of the routes." min:"0" max:"65536"`
	Capture      *CaptureSpec    `yaml:"capture,omitempty" doc:"Packets of a capture instead of synthetic ones."`
	TTL          int             `yaml:"ttl" doc:"Time to live of synthetic packets." min:"1" max:"255"`
	Carry        des.Bytes       `yaml:"carry" doc:"Leading bytes of a packet that the simulation carries; the rest is only length."`
}

// ArrivalSpec is an arrival process.
type ArrivalSpec struct {
	Process string       `yaml:"process" doc:"saturating, constant, jittered, poisson or bursts." enum:"saturating,constant,jittered,poisson,bursts"`
	Rate    traffic.Rate `yaml:"rate,omitempty" doc:"Mean rate into each ingress card: packets, such as 10000 packets/s, or the mean gap, such as 95 µs."`
	Senders int          `yaml:"senders" doc:"Independent senders of equal rate, serialised at the wire rate." min:"1" max:"1024"`
	Jitter  float64      `yaml:"jitter,omitempty" doc:"For jittered: uniform share of the mean gap, 0 to 1." min:"0" max:"1"`
	On      des.Time     `yaml:"on,omitempty" doc:"For bursts: mean length of a burst."`
	Off     des.Time     `yaml:"off,omitempty" doc:"For bursts: mean length of a pause."`
	First   int          `yaml:"first,omitempty" doc:"Packets that come back to back, at the wire's rate, before the process begins: to see whether the router recovers from a burst." min:"0" max:"1000000"`
}

// SizeSpec is a mix of packet lengths, counted from the IP header on.
type SizeSpec struct {
	Kind    string      `yaml:"kind" doc:"fixed, rfc2544, imix or empirical." enum:"fixed,rfc2544,imix,empirical"`
	Bytes   des.Bytes   `yaml:"bytes,omitempty" doc:"For fixed: the length (the default experiment: 1,500)."`
	Lengths []des.Bytes `yaml:"lengths,omitempty" doc:"For empirical: the lengths."`
	Weights []uint64    `yaml:"weights,omitempty" doc:"For empirical: their weights."`
}

// DestinationSpec is how destinations are drawn.
type DestinationSpec struct {
	Kind       string  `yaml:"kind" doc:"uniform over the routes, or zipf." enum:"uniform,zipf"`
	Exponent   float64 `yaml:"exponent,omitempty" doc:"For zipf: the exponent."`
	Unroutable float64 `yaml:"unroutable" doc:"Share of packets that no route covers." min:"0" max:"1"`
}

// CaptureSpec replays a capture.
type CaptureSpec struct {
	File    string   `yaml:"file" doc:"pcap or pcapng, also .gz."`
	Pace    string   `yaml:"pace" doc:"stamps (by time stamp), rate (traffic.arrivals.rate), or link (as fast as the card takes them)." enum:"stamps,rate,link"`
	Repeat  int      `yaml:"repeat,omitempty" doc:"Times to play it; 0 and 1 are once." min:"0"`
	MaxJump des.Time `yaml:"max_jump,omitempty" doc:"Longest gap between time stamps that is believed; a longer one is cut to it."`
	Partial bool     `yaml:"partial,omitempty" doc:"Play the readable part of a capture that is cut off."`
}

// HostSpec is the host.
type HostSpec struct {
	Return  string      `yaml:"return" doc:"What the host does with a packet handed to it: none (it keeps it), or card (it sends it to return_card)." enum:"none,card"`
	Card    int         `yaml:"return_card,omitempty" doc:"For return: card, the egress card."`
	Model   string      `yaml:"model" doc:"What a packet costs the host: fixed (service), or kernel (notification, copies, flushes, routing, from host.kernel)." enum:"fixed,kernel"`
	Kernel  *KernelSpec `yaml:"kernel,omitempty" doc:"For model: kernel."`
	Credits int         `yaml:"credits" doc:"Packets that the host may have under way to a card." min:"1" max:"4096"`
	Service des.Time    `yaml:"service" doc:"For model: fixed: time that the host's processor needs for a packet."`
}

// MeasureSpec is how a run is measured.
type MeasureSpec struct {
	LossLimit float64  `yaml:"loss_limit" doc:"Share of lost packets that still counts as carried (thesis p.108: 0.5 %)." min:"0" max:"1"`
	Drain     des.Time `yaml:"drain" doc:"Time allowed to empty the router after the last arrival."`
}

// Finding tells how a value was found.
type Finding struct {
	Value  string `yaml:"value" doc:"The value."`
	Method string `yaml:"method" doc:"The command and method that found it."`
	Result string `yaml:"result" doc:"What came out, with its uncertainty."`
}

// CostTable is the firmware's cost table.
func (f *FirmwareSpec) costTable() (spine.CostTable, error) {
	t := spine.FactoredCosts(f.Factors, int32(f.Poll))
	t.Vector.Cycles, t.Vector.Accesses = int32(f.Vector), int32(f.Vector)/4
	return t, applyCosts(&t, f.Costs)
}
