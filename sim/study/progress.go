package study

import "spinesim/sim/study/internal/runs"

// Progress is told how much of a long work is done, out of a total that may
// grow while the work goes on, and what is being done. Calls do not overlap.
type Progress = runs.Progress
