package policy

import (
	"fmt"
	"strconv"
	"strings"
)

// Args are the parameters that a policy is made with.
type Args struct {
	values map[string]string
	text   string
	// Seed is the run's seed, Card the card: together they give a policy
	// that draws lots a stream of its own.
	Seed uint64
	Card uint8
}

// Text is all that stands behind the colon, for policies with a language of
// their own.
func (a Args) Text() string { return a.text }

// String is a parameter's text.
func (a Args) String(name string) string { return a.values[name] }

// Bool is a parameter that is yes or no.
func (a Args) Bool(name string) (bool, error) {
	switch v := a.values[name]; v {
	case "yes":
		return true, nil
	case "no":
		return false, nil
	default:
		return false, fmt.Errorf("parameter %s: %q, want yes or no", name, v)
	}
}

// Int is a parameter that is a whole number of at least low.
func (a Args) Int(name string, low int) (int, error) {
	v, err := strconv.Atoi(a.values[name])
	if err != nil || v < low {
		return 0, fmt.Errorf("parameter %s: %q, want a whole number of at least %d", name, a.values[name], low)
	}
	return v, nil
}

// Ints is a parameter that is one whole number from low to high for each queue,
// separated by blanks or slashes; a single number stands for all seven.
func (a Args) Ints(name string, low, high int) ([NumQueues]int, error) {
	var out [NumQueues]int
	f := strings.FieldsFunc(a.values[name], func(r rune) bool { return r == ' ' || r == '/' })
	if len(f) != 1 && len(f) != NumQueues {
		return out, fmt.Errorf("parameter %s: %q, want 1 or %d numbers", name, a.values[name], NumQueues)
	}
	for i := range out {
		v, err := strconv.Atoi(f[i%len(f)])
		if err != nil || v < low || v > high {
			return out, fmt.Errorf("parameter %s: %q, want whole numbers of %d … %d", name, a.values[name], low, high)
		}
		out[i] = v
	}
	return out, nil
}

// Order is a parameter that is an order of the queues, or the name of one.
func (a Args) Order(name string) ([NumQueues]uint8, error) {
	o, err := namedOrder(a.values[name])
	if err != nil {
		return o, fmt.Errorf("parameter %s: %w", name, err)
	}
	return o, nil
}

// Level is a parameter that is a part of something countable: a whole number
// such as "4", or a share of all such as "25%".
func (a Args) Level(name string) (Level, error) {
	l, err := parseLevel(a.values[name])
	if err != nil {
		return l, fmt.Errorf("parameter %s: %w", name, err)
	}
	return l, nil
}

// namedOrder is an order of the queues: default, pci-first, or written out.
func namedOrder(text string) ([NumQueues]uint8, error) {
	switch text {
	case "default":
		return DefaultOrder, nil
	case "pci-first":
		return PCIFirstOrder, nil
	}
	return ParseOrder(text)
}

// Level is a number of things, or a share of all of them in percent.
type Level struct {
	N       int
	Percent bool
}

func parseLevel(text string) (Level, error) {
	digits, percent := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || percent && n > 100 || n > maxLevel {
		return Level{}, fmt.Errorf("%q, want a whole number of 0 … %d or a share of 0%% … 100%%", text, maxLevel)
	}
	return Level{N: n, Percent: percent}, nil
}

// maxLevel is far above any number of buffers or messages.
const maxLevel = 1_000_000_000

// String writes the level as it is read.
func (l Level) String() string {
	if l.Percent {
		return strconv.Itoa(l.N) + "%"
	}
	return strconv.Itoa(l.N)
}

// compare tells whether have, out of all, is below the level (negative), at it
// (0) or above (positive).
func (l Level) compare(have, all int) int {
	if l.Percent {
		return have*100 - l.N*all
	}
	return have - l.N
}
