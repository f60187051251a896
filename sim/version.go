package sim

// Version is the program's version. A change of it may change fingerprints.
const Version = "0.1.0"
