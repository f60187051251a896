// Package sweep runs designed experiments over any fields of a scenario: all
// combinations of their values, a regular fraction of them (Box, Hunter and
// Hunter), or a Latin hypercube. Each run is a row of an SQLite database, which
// survives being killed, goes on where it stopped, and joins with those of other
// shards.
//
// Points meet common random numbers: replication i of each has the scenario's
// seed plus i. What is stored depends neither on how many runs go on at once nor
// on the order in which they end.
//
// Left out: designs that choose their points by the results so far.
package sweep
