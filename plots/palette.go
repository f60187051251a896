package plots

import (
	"image/color"

	"spinesim/traces"
)

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
	midGrey   = color.NRGBA{170, 170, 170, 255}
	lightGrey = color.NRGBA{225, 225, 225, 255}
	white     = color.NRGBA{255, 255, 255, 255}
)

// series are the colours of several lines or groups of bars, in order.
var series = [...]color.NRGBA{blue, vermilion, green, orange, purple, skyBlue, grey, black}

func seriesColour(i int) color.NRGBA { return series[i%len(series)] }

// stepColours are those of the steps of a packet's way, in every figure.
var stepColours = [traces.NumSteps]color.NRGBA{
	traces.StepNone: midGrey, traces.StepPoll: grey, traces.StepReceive: blue, traces.StepRoute: green,
	traces.StepDMA: vermilion, traces.StepFlow: purple, traces.StepOutput: orange, traces.StepHost: skyBlue,
}

// pale is a colour laid over white at the given opacity, so that figures need
// no transparency.
func pale(c color.NRGBA, opacity float64) color.NRGBA {
	mix := func(v uint8) uint8 { return uint8(float64(v)*opacity + 255*(1-opacity) + 0.5) }
	return color.NRGBA{mix(c.R), mix(c.G), mix(c.B), 255}
}

// contrast is black or white, whichever is easier to read on c.
func contrast(c color.NRGBA) color.NRGBA {
	if 0.299*float64(c.R)+0.587*float64(c.G)+0.114*float64(c.B) < 140 {
		return white
	}
	return black
}

// cividis is a scale of colours that rises evenly in lightness for readers of
// all kinds of colour vision: nine points of the map of Nuñez, Anderton and
// Renslow (2018), joined by straight lines.
var cividis = [...]color.NRGBA{
	{0, 34, 78, 255}, {24, 56, 107, 255}, {65, 77, 108, 255}, {95, 99, 111, 255}, {123, 123, 120, 255},
	{153, 147, 119, 255}, {186, 173, 108, 255}, {220, 200, 91, 255}, {254, 232, 56, 255},
}

// scaleColour is the colour of v between 0 and 1.
func scaleColour(v float64) color.NRGBA {
	v = min(max(v, 0), 1) * float64(len(cividis)-1)
	i := min(int(v), len(cividis)-2)
	return between(cividis[i], cividis[i+1], v-float64(i))
}

// divergingColour is the colour of v between -1 (blue) and 1 (vermilion), white
// at 0.
func divergingColour(v float64) color.NRGBA {
	if v < 0 {
		return between(white, blue, min(-v, 1))
	}
	return between(white, vermilion, min(v, 1))
}

func between(a, b color.NRGBA, f float64) color.NRGBA {
	mix := func(x, y uint8) uint8 { return uint8(float64(x)*(1-f) + float64(y)*f + 0.5) }
	return color.NRGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 255}
}

// look is how an area is filled: a colour, and lines over it for what shares
// the colour with something else.
type look struct {
	colour color.NRGBA
	lines  hatching
}

// hatching is how lines run over an area.
type hatching uint8

const (
	plain hatching = iota
	rising
	falling
)

// looks are as many areas as can be told apart beside each other.
var looks = func() (out [3 * len(lookColours)]look) {
	for i := range out {
		out[i] = look{lookColours[i%len(lookColours)], hatching(i / len(lookColours))}
	}
	return out
}()

var lookColours = [...]color.NRGBA{blue, vermilion, green, orange, purple, skyBlue, yellow, grey}
