// Package traces is the record of what happened in a simulation: who records
// it, what is in it, the files it is kept in, and what can be asked of it.
//
// # The record
//
// The model reports to a [Recorder], which passes every [Record] on to sinks in
// the canonical order (End, Card, order of making). A nil Recorder is a working
// one that records nothing. A [Fingerprint] condenses the stream into 64 bits;
// a [Buffer] keeps it in memory, packed; a [Ring] keeps its end; [Window],
// [AfterPackets], [BeforeDrop] and [AroundGap] pass a part of it on.
//
// # Files
//
// Every file format is a writer over the one stream, in bounded memory.
// [OpenReader] and [CreateWriter] choose it by a path's extension; [Formats]
// lists them. Packed records, CSV, Parquet, Perfetto traces and listings hold
// every field of every record exactly and can be read back; Chrome traces,
// wave forms (VCD), captures (pcapng) and profiles (pprof) are views. [Convert],
// [Cut], [CutAroundGap] and [Diff] work on readers of any of them. All that can
// be read back carries the run's [Meta] and a trailer with the number of
// records and their check sum, so that a file that is cut short or damaged is
// told from a whole one, with the place and the reason ([FormatError]); a
// partial reader gives what is whole.
//
// # Questions
//
// The measures and the validator are sinks too, so that a figure computed from
// a live run and from its file is the same. A [Sampler] is a timer's view of what
// the processors run, beside the exact profile, to see what sampling gets wrong.
//
// # Left out
//
// Files are not indexed: a window of a long record is found by reading it from
// the start. Records are not signed. Perfetto's arrows join the steps of a
// packet's way in the order of time; the causes between packets are in the
// annotations only.
package traces
