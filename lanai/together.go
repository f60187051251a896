package lanai

import (
	"spinesim/pci"
	"spinesim/sim/des"
)

// together are the processors of the cards on one bus, of which those that
// execute firmware share one timer: none of them is an event that another has
// to stop for. What one does to another, it does over the bus, and the bus's
// events are found to disturb (see Processor.catch).
type together struct {
	procs   []*Processor // by card
	armed   *Processor   // whose timer stands for all, or nil
	looping bool
	careful bool // no run ahead is ever taken back
}

// meet joins the other cards on the bus.
func (p *Processor) meet(bus *pci.Bus) {
	p.together = &together{}
	for i := range bus.Devices {
		if d, ok := i.(*HostDMA); ok && d.card.engine == p.engine {
			p.together = d.card.CPU.together
			break
		}
	}
	p.together.procs = append(p.together.procs, p)
}

// next is the processor whose execution goes on first, nil when none executes.
func (t *together) next() *Processor {
	var first *Processor
	at := des.MaxTime
	for _, p := range t.procs {
		if p.mode == modeExecute && (p.exec.at < at || p.exec.at == at && (first == nil || p.prio < first.prio)) {
			first, at = p, p.exec.at
		}
	}
	return first
}

// others is the last boundary of p up to which no other processor goes on.
func (t *together) others(p *Processor) int64 {
	at := des.MaxTime
	for _, q := range t.procs {
		if q != p && q.mode == modeExecute {
			at = min(at, q.exec.at)
		}
	}
	if at == des.MaxTime {
		return int64(1) << 62
	}
	return p.mem.clk.floor(at)
}

// rearm makes the one timer fit.
func (t *together) rearm() error {
	if t.looping {
		return nil
	}
	p := t.next()
	if a := t.armed; a != nil && a != p {
		t.armed = nil
		if a.mode == modeExecute {
			a.engine.Cancel(&a.timer)
		}
	}
	if p == nil {
		return nil
	}
	t.armed = p
	if p.timer.Armed() && p.timer.At() == p.exec.at {
		return nil
	}
	return p.engine.Arm(&p.timer, p.exec.at)
}

// leave takes p out, which executes no longer.
func (t *together) leave(p *Processor) error {
	if t.armed == p {
		t.armed = nil
	}
	return t.rearm()
}

// run goes on with p, and with all that execute as far as nothing else is due.
func (t *together) run(p *Processor, now des.Time) error {
	t.looping, t.armed = true, nil
	err := t.loop(p, now)
	t.looping = false
	if err != nil {
		return err
	}
	return t.rearm()
}

func (t *together) loop(p *Processor, now des.Time) error {
	for p != nil {
		if err := p.turn(now); err != nil {
			return err
		}
		if p = t.next(); p == nil || !p.engine.Advance(p.exec.at, p.prio) {
			return nil
		}
		now = p.exec.at
	}
	return nil
}

// turn goes on with p's execution as far as p can without the others.
func (p *Processor) turn(now des.Time) error {
	m := p.mem
	p.looping = true
	m.batch++
	ended, err := p.execute()
	if ended && err == nil {
		err = p.finish(now)
	}
	if err == nil {
		err = m.flush()
	}
	m.batch--
	p.looping = false
	if err != nil || p.mode == modeExecute {
		return err
	}
	return p.rearm()
}
