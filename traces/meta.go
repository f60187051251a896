package traces

import (
	"encoding/json"
	"fmt"

	"spinesim/sim/des"
)

// Meta says which run a record stream comes from. Every file format that has
// room for it carries the whole of it.
type Meta struct {
	Version         int        `json:"record_version"`          // RecordVersion of the writer; 0 means the present one
	Program         string     `json:"program,omitempty"`       // name and version of the program that ran
	Scenario        string     `json:"scenario,omitempty"`      // its name
	ScenarioHash    string     `json:"scenario_hash,omitempty"` // hash of the scenario, hexadecimal
	ScenarioYAML    string     `json:"scenario_yaml,omitempty"` // the scenario itself, complete
	Seed            uint64     `json:"seed"`                    // of all random streams
	RunID           string     `json:"run_id,omitempty"`        // unique within a study
	Cards           []CardMeta `json:"cards,omitempty"`         // by card number
	RouteTableBytes uint64     `json:"route_table_bytes"`       // in simulated SRAM
	Labels          []Label    `json:"labels,omitempty"`        // anything else, in the order given
}

// CardMeta describes one card.
type CardMeta struct {
	Name       string   `json:"name,omitempty"`
	ClockNum   uint64   `json:"clock_hz_num"`          // frequency in Hz is ClockNum / ClockDen
	ClockDen   uint64   `json:"clock_hz_den"`          // 3 for 100,000,000/3 Hz = 33⅓ MHz
	Phase      des.Time `json:"clock_phase"`           // time of the card's edge 0
	QueueOrder Order    `json:"queue_order,omitempty"` // queues as the dispatcher polled them, first first
}

// Order is a polling order of queues; a JSON array of numbers.
type Order []uint8

// MarshalJSON writes numbers, where a byte slice would become a base64 text.
func (o Order) MarshalJSON() ([]byte, error) {
	n := make([]int, len(o))
	for i, q := range o {
		n[i] = int(q)
	}
	return json.Marshal(n)
}

// Label is a free-form remark on a run.
type Label struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Label finds the value of a key.
func (m *Meta) Label(key string) (string, bool) {
	for _, l := range m.Labels {
		if l.Key == key {
			return l.Value, true
		}
	}
	return "", false
}

// CardName is the card's name, or one made from its number: "card 2", "host",
// "-" for no card. A nil m knows no names.
func (m *Meta) CardName(card uint8) string {
	switch {
	case m != nil && int(card) < len(m.Cards) && m.Cards[card].Name != "":
		return m.Cards[card].Name
	case card == HostCard:
		return "host"
	case card == NoCard:
		return "-"
	}
	return fmt.Sprintf("card %d", card)
}

// clone is a deep copy, with the version filled in.
func (m *Meta) clone() *Meta {
	if m == nil {
		return &Meta{Version: RecordVersion}
	}
	c := *m
	if c.Version == 0 {
		c.Version = RecordVersion
	}
	c.Cards = append([]CardMeta(nil), m.Cards...)
	for i := range c.Cards {
		c.Cards[i].QueueOrder = append(Order(nil), m.Cards[i].QueueOrder...)
	}
	c.Labels = append([]Label(nil), m.Labels...)
	return &c
}

// maxMetaBytes bounds what a reader takes as metadata (chosen; a scenario is a
// few kilobytes).
const maxMetaBytes = 16 << 20

func (m *Meta) encode() ([]byte, error) {
	b, err := json.Marshal(m.clone())
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	if len(b) > maxMetaBytes {
		return nil, fmt.Errorf("metadata of %d bytes exceeds %d", len(b), maxMetaBytes)
	}
	return b, nil
}

func decodeMeta(b []byte) (*Meta, error) {
	m := new(Meta)
	if err := json.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	if m.Version < 1 || m.Version > RecordVersion {
		return nil, fmt.Errorf("record version %d is not one this program reads (1 to %d)", m.Version, RecordVersion)
	}
	if len(m.Cards) > 256 {
		return nil, fmt.Errorf("metadata names %d cards; at most 256 can exist", len(m.Cards))
	}
	return m, nil
}
