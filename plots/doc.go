// Package plots draws figures from records and results: the event graph of
// Figure 6.4 (thesis p.107), and the pictures that explain what a run did.
//
// Figures are made with gonum/plot and saved as SVG (text stays text), PNG or
// PDF by the file's extension. Colours are those of Okabe and Ito, which people
// who do not tell red from green can tell apart.
//
// What it leaves out: interaction; the HTML report carries its own viewer.
package plots
