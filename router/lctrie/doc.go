// Package lctrie finds the longest matching prefix of an IPv4 address in a
// level-compressed trie, after Nilsson and Karlsson, "IP-Address Lookup Using
// LC-Tries" (IEEE JSAC 17(6), 1999). The SPINE router keeps its 1,000 routes
// in one, in less than 20 KB of card memory (thesis p.107).
//
// # The structure
//
// Three vectors of 32-bit words make up a table.
//
// The nodes: one word each, 5 bits of branch, 5 bits of skip and 22 bits of
// address, from the top. A node of branch b > 0 has 2^b children, which lie one
// after the other from its address on; the walk passes over skip bits of the
// destination and takes the next b bits as the child's number. A node of branch
// 0 is a leaf, and its address is a record of the base vector. The 1999 paper's
// node has 5 bits of branch, 7 of skip and 20 of address; a skip never exceeds
// 31, so two of its bits serve the address better: a full table of today has
// 1.5 million nodes and would overflow 20 bits.
//
// The base vector: the routes that are no prefix of another route, in order.
// A record has the address string, its length, the next hop and the link to the
// longest route that is a prefix of this one.
//
// The prefix vector: the routes that are prefixes of others. A record has a
// length, a next hop and the link to the next shorter one; the string is that
// of the base record from which the chain was entered.
//
// Skipped bits are not looked at on the way down, so the base record's string
// decides: it is compared with the destination in all its length, and where it
// differs the chain of its prefixes is followed to the first that matches.
// A child for which there is no string is a copy of the neighbouring leaf that
// has the longer prefix in common with it, so that its chain is complete.
//
// # The records
//
// A base record takes 8 bytes and a prefix record 4 where all fits: 6 bits of
// length, 16 of link, 10 of next hop. Beyond 65,535 prefix records or a next-hop
// index above 1,023 the records are 12 and 8 bytes. The form is chosen when the
// table is built, and can be forced.
//
// The next hop in a record is an index into a vector that belongs to the caller
// (package router keeps address and card there): many routes share few next
// hops, so the index is what makes the record short.
//
// # What is left out
//
// The table is built once and not changed; routes of other families than IPv4;
// the variant that puts prefixes of the base vector into inner nodes.
package lctrie
