// Package traffic makes the packets that enter the router and keeps those that
// leave it.
//
// A Source yields arrivals: Synthetic joins an arrival process (saturating,
// constant, jittered, Poisson, on/off bursts; one sender or several that share
// the link), a mix of sizes and a choice of destinations into real IPv4/UDP
// packets; Capture replays pcap and pcapng files. Whatever the source, packets
// are serialised by a Wire: one takes its time on the link, waits for the one
// before, and arrives when its last byte has. A Port is the FIFO upstream of a
// card, the only place where packets are lost. PcapSink writes what leaves.
//
// Rules and defaults are those of the simulated router: the FIFO of 16 packets
// and the three independent Poisson senders of the default experiment are
// choices of ours; the frame sizes are RFC 2544's, the address block for
// benchmarks RFC 2544's too (198.18.0.0/15), the mix 7:4:1 of 40, 576 and
// 1,500 bytes the customary IMIX.
//
// All lengths are of IPv4 packets, from the IP header on. Every random number
// comes from a des.Stream named after the source and its use, so that scaling
// the rate leaves sizes, destinations and the order of senders as they were.
//
// What is left out: protocols that react to loss or delay (an arrival never
// depends on what the router did), IPv6, reassembly and the cutting up of
// packets that segmentation offload left in one piece, which are skipped and
// counted.
package traffic
