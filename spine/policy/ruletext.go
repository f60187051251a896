package policy

import (
	"fmt"
	"strconv"
	"strings"
)

// orderItem tells whether an item of a rules text is "order=ORDER", blanks
// around the sign allowed.
func orderItem(item string) (string, bool) {
	key, val, ok := strings.Cut(item, "=")
	return strings.TrimSpace(val), ok && strings.TrimSpace(key) == "order"
}

// ruleReader takes a rule apart, word by word.
type ruleReader struct {
	text  string
	words []string
}

// ruleWords splits at blanks and around relations.
func ruleWords(text string) []string {
	var words []string
	for _, f := range strings.Fields(text) {
		for f != "" {
			i := strings.IndexAny(f, "<>=!")
			if i < 0 {
				words = append(words, f)
				break
			}
			if i > 0 {
				words = append(words, f[:i])
			}
			n := 1
			if strings.HasPrefix(f[i+1:], "=") {
				n = 2
			}
			words = append(words, f[i:i+n])
			f = f[i+n:]
		}
	}
	return words
}

func (r *ruleReader) peek() string {
	if len(r.words) == 0 {
		return ""
	}
	return r.words[0]
}

func (r *ruleReader) next() string {
	w := r.peek()
	if w != "" {
		r.words = r.words[1:]
	}
	return w
}

// errorf names the rule.
func (r *ruleReader) errorf(format string, args ...any) error {
	return fmt.Errorf("rule %q: %w", r.text, fmt.Errorf(format, args...))
}

// found shows a word in a message.
func found(word string) string {
	if word == "" {
		return "nothing"
	}
	return strconv.Quote(word)
}

func parseRule(text string) (rule, error) {
	var u rule
	r := &ruleReader{text: text, words: ruleWords(text)}
	if w := r.next(); w != "when" {
		return u, r.errorf("begins with %s, want when", found(w))
	}
	var err error
	if u.when, err = r.conditions(); err != nil {
		return u, err
	}
	if r.peek() == "until" {
		r.next()
		if u.until, err = r.conditions(); err != nil {
			return u, err
		}
	}
	switch w := r.next(); w {
	case "use":
		if u.order, err = namedOrder(strings.Join(r.words, " ")); err != nil {
			return u, r.errorf("%w", err)
		}
	case "first", "last":
		if w == "first" {
			u.action = actionFirst
		} else {
			u.action = actionLast
		}
		if u.queues, err = r.queues(); err != nil {
			return u, err
		}
	default:
		return u, r.errorf("%s behind the conditions, want and, until, use, first or last", found(w))
	}
	return u, nil
}

func (r *ruleReader) conditions() ([]condition, error) {
	var cs []condition
	for {
		c, err := r.condition()
		if err != nil {
			return nil, err
		}
		cs = append(cs, c)
		if r.peek() != "and" {
			return cs, nil
		}
		r.next()
	}
}

func (r *ruleReader) condition() (condition, error) {
	var c condition
	w := r.next()
	if w == "not" {
		c.not = true
		w = r.next()
	}
	known := false
	var names []string
	for f := range facts {
		if facts[f].name == w {
			c.fact, known = fact(f), true
		}
		name := facts[f].name
		if facts[f].queue {
			name += " Qn"
		}
		names = append(names, name)
	}
	if !known {
		return c, r.errorf("%s is nothing that a condition can be about, want one of %s", found(w), strings.Join(names, ", "))
	}
	f := &facts[c.fact]
	var err error
	if f.queue {
		if c.queue, err = r.queue(); err != nil {
			return c, err
		}
	}
	if !f.numeric {
		return c, nil
	}
	if c.not {
		return c, r.errorf("not before %s, want it before a question (chain, engine, last Qn) only", f.name)
	}
	if c.rel, err = r.relation(f.name); err != nil {
		return c, err
	}
	if c.level, err = parseLevel(r.next()); err != nil {
		return c, r.errorf("%s %s: %w", f.name, relations[c.rel], err)
	}
	if c.level.Percent && !f.share {
		return c, r.errorf("%s %s %v: want a number, for there is nothing that it would be a share of", f.name, relations[c.rel], c.level)
	}
	return c, nil
}

func (r *ruleReader) relation(what string) (relation, error) {
	w := r.next()
	if w == "==" {
		return equal, nil
	}
	for i, s := range relations {
		if s == w {
			return relation(i), nil
		}
	}
	return 0, r.errorf("%s behind %s, want < <= = != >= or >", found(w), what)
}

func (r *ruleReader) queue() (uint8, error) {
	w := r.next()
	if len(w) == 2 && (w[0] == 'Q' || w[0] == 'q') && w[1] >= '0' && w[1] < '0'+NumQueues {
		return w[1] - '0', nil
	}
	return 0, r.errorf("%s, want a queue: Q0 … Q%d", found(w), NumQueues-1)
}

// queues reads at least one queue, each once, to the end of the rule.
func (r *ruleReader) queues() ([]uint8, error) {
	var out []uint8
	seen := 0
	for len(r.words) > 0 || len(out) == 0 {
		q, err := r.queue()
		if err != nil {
			return nil, err
		}
		if seen>>q&1 != 0 {
			return nil, r.errorf("names Q%d twice", q)
		}
		seen |= 1 << q
		out = append(out, q)
	}
	return out, nil
}

// String writes a rule as it is read.
func (u *rule) String() string {
	var b strings.Builder
	list := func(word string, cs []condition) {
		for i := range cs {
			b.WriteString(word + " " + cs[i].String() + " ")
			word = "and"
		}
	}
	list("when", u.when)
	list("until", u.until)
	b.WriteString(actionNames[u.action])
	if u.action == actionUse {
		b.WriteString(" " + digits(u.order))
	}
	for _, q := range u.queues {
		fmt.Fprintf(&b, " Q%d", q)
	}
	return b.String()
}

// String writes a condition as it is read.
func (c *condition) String() string {
	f := &facts[c.fact]
	s := f.name
	if c.not {
		s = "not " + s
	}
	if f.queue {
		s += fmt.Sprintf(" Q%d", c.queue)
	}
	if f.numeric {
		s += relations[c.rel] + c.level.String()
	}
	return s
}
