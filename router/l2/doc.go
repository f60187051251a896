// Package l2 forwards frames by their station addresses, as a learning bridge
// does (IEEE 802.1D), from an exact-match table (package bihash) in each card's
// memory. It is an extension of the SPINE run-time, to be used instead of the IP
// router or before it.
//
// # What it does
//
// The source of a frame is learned with the card that it came in by; entries
// that are not heard of for Spec.Age are forgotten. A known destination decides
// the card; an unknown one is flooded to all other cards, or left to the next
// extension, the host, or dropped. Frames to groups are flooded, frames whose
// destination lies where they came from are filtered. Like VPP's l2_fwd, each
// card keeps a one-entry cache of the last destination, and one of the last
// source.
//
// # Addresses
//
// With Ethernet the packet begins with an Ethernet header and the addresses are
// its own; extensions that follow see the packet behind it. With FromIPv4 there
// is no link header, as on the published router's links, and a station is known
// by its IPv4 address (StationOf).
//
// # Several cards
//
// Every card has its own table, as every card of the published router has its
// own routes. What one learns the others know Spec.Notice later.
//
// # What is left out
//
// Spanning trees, VLANs beyond one domain, and the bus transfers by which cards
// tell each other what they learned: their processor time is charged where they
// are sent and taken in, the bus is not held.
package l2
