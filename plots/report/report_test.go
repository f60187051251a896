package report_test

import "gonum.org/v1/plot"

func column(p *plot.Plot) [][]*plot.Plot { return [][]*plot.Plot{{p}} }
