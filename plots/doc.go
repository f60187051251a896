// Package plots draws figures from records and results: the event graph of
// Figure 6.4 (thesis p.107), and the pictures that explain what a run did.
//
// Of a run: the event graph; gaps, receive runs and backlog over time with the
// fast and the slow state shaded; distributions of latencies and gaps; the use
// of processors, engines and bus; and what the gap is made of along its
// critical path. Of several runs: comparisons with confidence intervals, Pareto
// scatters, lines over a swept parameter, a lower bound beside what was reached,
// a repeating schedule, and grids over two parameters, all from plain values.
// And the figures of Ahlgren's paper on integrated layer processing.
//
// Figures are made with gonum/plot and saved as SVG (text stays text), PNG or
// PDF by the file's extension; the same values give the same bytes. Colours are
// those of Okabe and Ito, which people who do not tell red from green can tell
// apart, with lines and dashes beside them.
//
// What it leaves out: interaction, which plots/report has, and surfaces in
// perspective, which are drawn as lines and grids.
package plots
