package plots

import "image/color"

// Colours of Okabe and Ito's palette, safe for colour-blind readers.
var (
	black     = color.NRGBA{0, 0, 0, 255}
	orange    = color.NRGBA{230, 159, 0, 255}
	skyBlue   = color.NRGBA{86, 180, 233, 255}
	green     = color.NRGBA{0, 158, 115, 255}
	yellow    = color.NRGBA{240, 228, 66, 255}
	blue      = color.NRGBA{0, 114, 178, 255}
	vermilion = color.NRGBA{213, 94, 0, 255}
	purple    = color.NRGBA{204, 121, 167, 255}
	grey      = color.NRGBA{120, 120, 120, 255}
	lightGrey = color.NRGBA{225, 225, 225, 255}
)

// series are the colours of several lines or groups of bars, in order.
var series = []color.NRGBA{blue, vermilion, green, orange, purple, skyBlue, yellow, black}
