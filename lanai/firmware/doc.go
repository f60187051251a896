// Package firmware holds code that runs on the simulated card's processor: the
// SPINE run-time's handlers in C, the small library that compiled code needs,
// and their objects, so that no compiler is needed to run them. It compiles
// firmware of one's own where clang is installed, and tells what each handler
// costs when it is executed rather than charged from a table.
package firmware
