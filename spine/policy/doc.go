// Package policy holds the rules by which a dispatcher chooses the queue that it
// polls next.
//
// A [Policy] answers with a [Plan], a sequence of queues to poll until one of
// them is ready, from a [View]: what the dispatcher's software knows without
// polling. A [VectorPolicy] reads the optional hardware event vector instead. A
// static policy gives a fixed [StaticCycle] of steps. [NewPolicy] makes each from
// its text; what it knows is a list of [PolicyKind], one file and one line each.
//
// The seven queues are the thesis's (p. 108); which queue is which, and every
// policy but strict priority in the published order, is chosen here.
//
// Left out: what a poll or a handler costs, and when a message can run. Those are
// package spine's, which asks a policy for its plan and does the polling.
package policy
