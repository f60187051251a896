// Package router holds the extensions that make a router of the SPINE run-time:
// IPv4 forwarding as RFC 1812 asks, from a route table that lies in the card's
// memory (thesis p.107–109).
//
// # Routes
//
// Routes come from text (prefix, next hop, anything), from MRT dumps
// of a BGP table (RFC 6396, TABLE_DUMP and TABLE_DUMP_V2), plain or compressed with gzip or bzip2, or
// from the thousand real routes that ship with the program (RIB2008). An
// Assignment puts the next hops on egress cards by a rule. A Table is the
// result: an LC-trie (package lctrie) and the vector of its next hops, as one
// image of big-endian words.
//
// # Forwarding
//
// IPv4 is the extension. It checks a packet's header, finds its route in the
// image in SRAM, lowers the TTL, corrects the checksum (RFC 1624) and tells the
// run-time the card and the next hop. What it cannot forward goes to the host or
// is dropped, counted by reason. Work is charged as it is done: cycles from
// Costs, loads and stores as they are made, so that a deep route costs more
// than a shallow one.
//
// # Data
//
// Manipulation works on every byte of a packet's data on the card, layer by layer
// or integrated (package ilp), before whatever routes the packet. Forwarding by
// station addresses is in package l2.
//
// # What is left out
//
// ICMP, fragmentation, options and redirects are the host's; the extension
// hands it the packets that need them. There is no multicast forwarding, no
// source filtering by reverse path, and routes do not change during a run.
package router
