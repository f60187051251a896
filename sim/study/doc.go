// Package study answers questions that take many runs of package sim.
//
//   - [MaxRate] searches the highest rate that a scenario carries with a given
//     loss: PDR at 0.5 %, the thesis's criterion (p.108), or NDR at 0.
//     [MaxRateTable] does so for each frame size of RFC 2544 and each arrival
//     process.
//   - [Compare] runs policies on the same traffic and says which differ.
//   - [Tune] tries all 5,040 strict orders, then the parameters of the other
//     policies, and says which priority matters.
//
// Package sweep beside it runs designed experiments over any fields of a
// scenario into an SQLite database that survives being killed.
//
// All of them use common random numbers: replication i of every variant has
// the scenario's seed plus i, so that variants meet the same packets and their
// differences are paired. The runs are spread over the processors; results
// do not depend on how many there are, nor on the order in which runs end.
//
// Left out: steady-state rare events; a loss is only ever estimated from packets
// that were simulated.
package study
