// Package stats is the statistics of a running simulation: everything is fed
// one value at a time, keeps a fixed amount of memory however long the run is,
// and can say that the run was too short to give an answer.
//
//   - Moments: count, mean, variance, extremes of independent values (Welford
//     1962; merging after Chan, Golub and LeVeque 1979).
//   - Histogram: counts of int64 values in buckets whose width is bounded
//     relative to the value, after G. Tene's HdrHistogram; quantiles, merging.
//   - TimeAverage: mean over time of a level that changes in steps.
//   - Batches, TimeBatches: the mean of a correlated stream with a confidence
//     interval, by batch means whose batches are collapsed in pairs when they
//     get too many; the warm-up is found by MSER-5 (White 1997; White, Cobb and
//     Spratt 2000) and left out.
//   - Replications: one value a run, summarised over independent runs, with the
//     median and percentiles that RFC 8219 asks for.
//   - Compare: two machines under common random numbers, by paired differences,
//     with a verdict.
//
// Intervals are Student's t at a level of the caller's choice (0.95 in all of
// spinesim's output). An Estimate whose Shortfall is not Enough has no interval
// and prints as "too short to say"; its point value is then only what was seen.
//
// What is left out: intervals of quantiles, regenerative and spectral methods,
// and sequential stopping rules, which a caller builds from Estimate.Relative.
//
// The package imports nothing else of spinesim. Times are plain int64 counts
// of whatever unit the caller keeps.
package stats
