// Package des is the discrete-event kernel: time in whole picoseconds, clocks
// of rational frequency, an engine that runs events in a total order, named
// random streams, and the quantities that scenario files are written in.
//
// # Order
//
// An Engine runs events by (time, priority, sequence): the earlier time first,
// at equal times the smaller Priority, and among equals in both the event that
// was scheduled, armed or moved first. The sequence number is 64 bits wide and
// every Schedule, Arm and successful Advance takes one, so no two events
// compare equal and the order is total; which data structure an event waits in
// never shows. With Options.RandomTies a bijection of the timer's identity,
// keyed by the seed and the time, takes its place: events equal in time and
// priority then run in a shuffled order, and no other events change places. The
// order is the same in every run of that seed, also where a run comes by a time
// in more or fewer events: a timer has its identity from Engine.Adopt.
//
// # How events wait
//
// The least of all events sits in a register of one slot whenever it is known
// without looking, which is all that a chain of single events needs. Behind it
// stand a short sorted list of what comes next; a timing wheel, a ring of
// unsorted buckets each covering a span of 2^k ps, with a bitmap of those in
// use, after Varghese and Lauck ("Hashed and hierarchical timing wheels",
// 1987); and a 4-ary heap for what lies beyond the ring. Buckets move into the
// sorted list when their turn comes, several at once where many events are
// pending, so that the cache misses of their events overlap. The width and the
// number of buckets follow the measured rate of events and their number, as in
// Brown's calendar queue (1988); they decide how fast the engine is and
// nothing else. Events are records linked into these structures themselves, so
// that a timer is moved or cancelled in place, without garbage, in constant
// time (in logarithmic time where it waits in the heap), and an engine that has
// seen its largest number of pending events allocates no more.
//
// # What it leaves out
//
// One engine is sequential: it does not spread one simulation over processors.
// Engines share nothing, so any number can run side by side. There are no
// processes or coroutines; a component is a Handler with a state.
package des
