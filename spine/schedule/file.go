package schedule

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"spinesim/spine"
	"spinesim/traces"
)

// Bounds of schedule files: far beyond any cycle that is of use, and small
// enough that no file can fill the memory.
const (
	maxFile   = 1 << 20
	maxRepeat = 64
	maxSteps  = 4096
	maxDepth  = 8
	maxPolls  = 1 << 20
)

// ReadFile reads a schedule file; errors name file, line and key.
func ReadFile(path string) (*Plan, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("schedule %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("schedule %w", err)
	}
	return Parse(text, path)
}

// Parse reads a schedule from YAML text; file names it in errors.
//
//	name: mine
//	cards:
//	  - cards: [0]
//	    cycle:
//	      - run: Peer to peer start
//	        guard: wait              # known, look, wait, wait 4 polls
//	      - repeat: 2
//	        cycle:
//	          - run: Free buffer
//	            guard: known
//	      - background: Q0 Q1 Q2
//	        handlers: 3
//	  - cards: [1, 2, 3]
//	    sources: [0]
//	    cycle: …
func Parse(text []byte, file string) (*Plan, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s: more than %d bytes", file, maxFile)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("%s: %s", file, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(doc.Content) == 0 {
		return nil, fmt.Errorf("%s: empty, want name and cards", file)
	}
	r := &planReader{file: file}
	p := &Plan{File: file, Name: "schedule"}
	root, err := r.mapping(doc.Content[0], "", "name", "description", "cards")
	if err != nil {
		return nil, err
	}
	if n := root["name"]; n != nil {
		if p.Name, err = r.text(n, "name"); err != nil {
			return nil, err
		}
	}
	if n := root["description"]; n != nil {
		if p.Description, err = r.text(n, "description"); err != nil {
			return nil, err
		}
	}
	cards := root["cards"]
	if cards == nil {
		return nil, r.errorf(doc.Content[0], "", "cards is missing: a list of cycles")
	}
	list, err := r.list(cards, "cards")
	if err != nil {
		return nil, err
	}
	for i, n := range list {
		c, err := r.card(n, fmt.Sprintf("cards[%d]", i))
		if err != nil {
			return nil, err
		}
		for _, card := range c.Cards {
			if p.of(card) != nil {
				return nil, r.errorf(n, fmt.Sprintf("cards[%d].cards", i), "card %d has a cycle already", card)
			}
		}
		p.Cards = append(p.Cards, *c)
	}
	return p, nil
}

// planReader reads the nodes of a file.
type planReader struct {
	file  string
	steps int
}

func (r *planReader) errorf(n *yaml.Node, path, format string, args ...any) error {
	at := fmt.Sprintf("%s:%d", r.file, n.Line)
	if path != "" {
		at += ": " + path
	}
	return fmt.Errorf("%s: %w", at, fmt.Errorf(format, args...))
}

// mapping is the values of a mapping that may have the given keys only.
func (r *planReader) mapping(n *yaml.Node, path string, keys ...string) (map[string]*yaml.Node, error) {
	if n.Kind == yaml.AliasNode {
		return nil, r.errorf(n, path, "aliases are not supported here")
	}
	if n.Kind != yaml.MappingNode {
		return nil, r.errorf(n, path, "want keys and values")
	}
	out := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if !slices.Contains(keys, k.Value) {
			return nil, r.errorf(k, path, "%q is not a key here, want %s", k.Value, strings.Join(keys, ", "))
		}
		if out[k.Value] != nil {
			return nil, r.errorf(k, path, "%s is there twice", k.Value)
		}
		out[k.Value] = n.Content[i+1]
	}
	return out, nil
}

func (r *planReader) list(n *yaml.Node, path string) ([]*yaml.Node, error) {
	if n.Kind != yaml.SequenceNode {
		return nil, r.errorf(n, path, "want a list")
	}
	if len(n.Content) == 0 {
		return nil, r.errorf(n, path, "an empty list")
	}
	return n.Content, nil
}

func (r *planReader) text(n *yaml.Node, path string) (string, error) {
	if n.Kind != yaml.ScalarNode {
		return "", r.errorf(n, path, "want a single value")
	}
	return n.Value, nil
}

func (r *planReader) number(n *yaml.Node, path string, low, high int) (int, error) {
	t, err := r.text(n, path)
	if err != nil {
		return 0, err
	}
	v, err := strconv.Atoi(t)
	if err != nil || v < low || v > high {
		return 0, r.errorf(n, path, "%q, want a whole number of %d … %d", t, low, high)
	}
	return v, nil
}

func (r *planReader) cardList(n *yaml.Node, path string) ([]uint8, error) {
	list, err := r.list(n, path)
	if err != nil {
		return nil, err
	}
	var out []uint8
	for _, e := range list {
		v, err := r.number(e, path, 0, spine.MaxCards-1)
		if err != nil {
			return nil, err
		}
		if slices.Contains(out, uint8(v)) {
			return nil, r.errorf(e, path, "card %d is there twice", v)
		}
		out = append(out, uint8(v))
	}
	return out, nil
}

func (r *planReader) card(n *yaml.Node, path string) (*CardPlan, error) {
	m, err := r.mapping(n, path, "cards", "sources", "cycle")
	if err != nil {
		return nil, err
	}
	c := &CardPlan{line: n.Line}
	if m["cards"] == nil || m["cycle"] == nil {
		return nil, r.errorf(n, path, "want cards and cycle")
	}
	if c.Cards, err = r.cardList(m["cards"], path+".cards"); err != nil {
		return nil, err
	}
	if s := m["sources"]; s != nil {
		if c.Sources, err = r.cardList(s, path+".sources"); err != nil {
			return nil, err
		}
	}
	r.steps = 0
	c.Steps, _, err = r.cycle(m["cycle"], path+".cycle", 0)
	return c, err
}

// cycle reads steps, and how many they are with repeats written out.
func (r *planReader) cycle(n *yaml.Node, path string, depth int) (steps []Step, count int, err error) {
	if depth > maxDepth {
		return nil, 0, r.errorf(n, path, "repeats more than %d deep", maxDepth)
	}
	list, err := r.list(n, path)
	if err != nil {
		return nil, 0, err
	}
	for i, e := range list {
		s, k, err := r.step(e, fmt.Sprintf("%s[%d]", path, i), depth)
		if err != nil {
			return nil, 0, err
		}
		if count += k; count > maxSteps {
			return nil, 0, r.errorf(e, path, "more than %d steps with repeats written out", maxSteps)
		}
		steps = append(steps, s)
	}
	return steps, count, nil
}

func (r *planReader) step(n *yaml.Node, path string, depth int) (Step, int, error) {
	s := Step{line: n.Line}
	m, err := r.mapping(n, path, "run", "guard", "repeat", "cycle", "background", "handlers")
	if err != nil {
		return s, 0, err
	}
	only := func(keys ...string) error {
		for _, k := range []string{"run", "guard", "repeat", "cycle", "background", "handlers"} {
			if v := m[k]; v != nil && !slices.Contains(keys, k) {
				return r.errorf(v, path, "%s does not go with %s", k, keys[0])
			}
		}
		return nil
	}
	switch {
	case m["run"] != nil:
		if err := only("run", "guard"); err != nil {
			return s, 0, err
		}
		name, err := r.text(m["run"], path+".run")
		if err != nil {
			return s, 0, err
		}
		h, ok := traces.EventByName(name)
		if !ok || !slices.Contains(spine.Handlers[:], h) {
			return s, 0, r.errorf(m["run"], path+".run", "%q is not a handler, want one of %s", name, handlerNames())
		}
		s.Handler = h
		if m["guard"] == nil {
			return s, 0, r.errorf(n, path, "%s has no guard, want known, look, wait or wait N polls", h)
		}
		if s.Guard, s.Polls, err = r.guard(m["guard"], path+".guard"); err != nil {
			return s, 0, err
		}
		return s, 1, nil
	case m["repeat"] != nil:
		if err := only("repeat", "cycle"); err != nil {
			return s, 0, err
		}
		if s.Repeat, err = r.number(m["repeat"], path+".repeat", 1, maxRepeat); err != nil {
			return s, 0, err
		}
		if m["cycle"] == nil {
			return s, 0, r.errorf(n, path, "repeat without cycle: the steps to repeat")
		}
		inner, k, err := r.cycle(m["cycle"], path+".cycle", depth+1)
		s.Steps = inner
		return s, k * s.Repeat, err
	case m["background"] != nil:
		if err := only("background", "handlers"); err != nil {
			return s, 0, err
		}
		if s.Order, err = r.queues(m["background"], path+".background"); err != nil {
			return s, 0, err
		}
		s.Handler, s.Handlers = traces.NoEvent, 1
		if h := m["handlers"]; h != nil {
			if s.Handlers, err = r.number(h, path+".handlers", 1, maxPolls); err != nil {
				return s, 0, err
			}
		}
		return s, 1, nil
	}
	return s, 0, r.errorf(n, path, "want run, repeat or background")
}

func (r *planReader) guard(n *yaml.Node, path string) (spine.Guard, int, error) {
	t, err := r.text(n, path)
	if err != nil {
		return 0, 0, err
	}
	f := strings.Fields(t)
	switch {
	case len(f) == 1 && f[0] == "known":
		return spine.GuardKnown, 0, nil
	case len(f) == 1 && f[0] == "look":
		return spine.GuardLook, 0, nil
	case len(f) == 1 && f[0] == "wait":
		return spine.GuardWait, 0, nil
	case len(f) == 3 && f[0] == "wait" && (f[2] == "polls" || f[2] == "poll"):
		if v, err := strconv.Atoi(f[1]); err == nil && v >= 1 && v <= maxPolls {
			return spine.GuardWait, v, nil
		}
	}
	return 0, 0, r.errorf(n, path, "%q, want known, look, wait, or wait N polls with N from 1 to %d", t, maxPolls)
}

func (r *planReader) queues(n *yaml.Node, path string) ([]uint8, error) {
	t, err := r.text(n, path)
	if err != nil {
		return nil, err
	}
	var out []uint8
	for _, f := range strings.FieldsFunc(t, func(c rune) bool { return c == ' ' || c == ',' }) {
		v, err := strconv.Atoi(strings.TrimPrefix(strings.ToUpper(f), "Q"))
		if err != nil || v < 0 || v >= spine.NumQueues || slices.Contains(out, uint8(v)) {
			return nil, r.errorf(n, path, "%q: want each of Q0 … Q%d at most once", t, spine.NumQueues-1)
		}
		out = append(out, uint8(v))
	}
	if len(out) == 0 {
		return nil, r.errorf(n, path, "no queues, want some of Q0 … Q%d", spine.NumQueues-1)
	}
	return out, nil
}

func handlerNames() string {
	var out []string
	for _, h := range spine.Handlers {
		out = append(out, h.String())
	}
	return strings.Join(out, ", ")
}

// WriteYAML writes the plan as Parse reads it, with comments that tell what it
// may be changed to.
func (p *Plan) WriteYAML(w io.Writer) error {
	var b bytes.Buffer
	b.WriteString(`# A static schedule for spinesim: what each card's dispatcher does over and over.
#   run: a handler, with its guard:
#     known         no poll; the card's own software has made the message
#     look          one poll of each queue that may hold it, else go on
#     wait          poll until it is there, as long as it is to come
#     wait N polls  the same, but go on after N polls
#   repeat: so many times, the steps of its cycle
#   background: queues scanned in this order, for so many handlers at most
# Run it with: spinesim run --policy static:file=THIS
`)
	fmt.Fprintf(&b, "name: %s\n", quote(p.Name))
	if p.Description != "" {
		fmt.Fprintf(&b, "description: %s\n", quote(p.Description))
	}
	b.WriteString("cards:\n")
	for _, c := range p.Cards {
		fmt.Fprintf(&b, "  - cards: %s\n", cardText(c.Cards))
		if len(c.Sources) > 0 {
			fmt.Fprintf(&b, "    sources: %s\n", cardText(c.Sources))
		}
		b.WriteString("    cycle:\n")
		writeSteps(&b, c.Steps, "      ")
	}
	_, err := w.Write(b.Bytes())
	return err
}

func writeSteps(b *bytes.Buffer, steps []Step, indent string) {
	for i := range steps {
		s := &steps[i]
		switch {
		case s.Repeat > 0:
			fmt.Fprintf(b, "%s- repeat: %d\n%s  cycle:\n", indent, s.Repeat, indent)
			writeSteps(b, s.Steps, indent+"    ")
		case s.Background():
			var q []string
			for _, n := range s.Order {
				q = append(q, fmt.Sprintf("Q%d", n))
			}
			fmt.Fprintf(b, "%s- background: %s\n%s  handlers: %d\n", indent, strings.Join(q, " "), indent, s.Handlers)
		default:
			fmt.Fprintf(b, "%s- {run: %s, guard: %s}\n", indent, s.Handler, guardText(&s.StaticStep))
		}
	}
}

// quote writes text so that YAML reads it as text.
func quote(s string) string { return strconv.Quote(s) }

func cardText(cards []uint8) string {
	var out []string
	for _, c := range cards {
		out = append(out, strconv.Itoa(int(c)))
	}
	return "[" + strings.Join(out, ", ") + "]"
}
