// Package report writes a run as one HTML file that needs nothing else: a
// summary, figures as SVG, and an event graph of every record to move about in.
//
// The event graph has a lane for each handler, engine, wait and level of each
// card, and one for the bus. It is drawn on a canvas from packed columns that
// the file carries: at any zoom a lane costs a few steps for each dot of its
// width, however many records lie there, for the share of time that a lane is
// busy between two moments is the difference of two running sums. A page opens
// no connection, and its security policy forbids it to.
//
// What it leaves out: records beyond a limit that the caller sets, and bytes of
// packets.
package report
