// Package bihash is an exact-match table after the bounded-index extensible
// hash of VPP, and a model of what its look-ups cost on processors with caches.
//
// # The table
//
// A fixed, power-of-two number of bucket words; behind each one 2^n pages of 4
// key-value pairs. The hash's low bits choose the bucket, the next ones the
// page, so that a look-up is two dependent loads. A page that overflows doubles
// the bucket's pages; where two doublings do not part the pairs, the bucket is
// searched from end to end. This is the layout of December 2019, when the
// published figures were measured; bit positions, allocator and code are ours.
// Keys have 8, 16, 24, 40 or 48 bytes, values 64 bits. The memory is a card's
// SRAM or the host's.
//
// # The model
//
// Node is VPP's l2_fwd node: frames of 256 packets, a one-entry cache of the
// last address, the table look-up with or without prefetch, other work, and
// other nodes that use the caches between frames. It runs on a Processor: levels
// of cache, a memory, a window of instructions that are under way at once, and
// a number of misses outstanding. The look-ups' addresses are those of a real
// Table. Node.Run plays frames through caches and window and gives clocks a
// packet; nothing is fitted to a curve. One figure of the mail by L. Zhang
// (vpp-dev, 27 December 2019) calibrates one parameter, the other two are
// predicted (Figures).
//
// # What is left out
//
// Of the processor: TLBs, hardware prefetchers, branch mispredictions, stores,
// contention for memory bandwidth. Of the table: readers beside writers (the
// lock bit), and the later layout that keeps the first pairs in the bucket.
package bihash
