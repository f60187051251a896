// Package infer matches machines with published facts: of all machines that the
// choices which the sources leave open can make, which ones agree with what was
// published, and what do the facts say of each other.
//
// It is history matching (R. G. Bower, M. Goldstein and I. Vernon, "Galaxy
// formation: a Bayesian uncertainty analysis", Bayesian Analysis 5, 2010; the R
// package hmer has the same vocabulary): a machine is never fitted, only ruled
// out. Its implausibility for a fact is the distance of what it answers from
// what was published, in standard deviations of the fact's tolerance and of the
// simulation's own noise together, and above 3 the machine is ruled out. Waves
// look for machines that are not: the first is spread over the priors by a
// scrambled Sobol sequence, each later one is drawn from a kernel density round
// the machines that all groups of facts but one leave, and partly from the
// priors again. As the density of every wave is known, weights undo where the
// waves went, so that shares and quantiles are those under the priors.
//
// What it leaves out: an emulator, because a machine takes a fraction of a
// second; and correlations between the facts' tolerances, of which nothing is
// published.
package infer
