package traces

import (
	"fmt"
	"strconv"
	"strings"
)

// idBits is how many bits of an ID number the records of one card.
const idBits = 48

// MakeID names record number n (from 1, below 2⁴⁸) of a card.
func MakeID(card uint8, n uint64) ID { return ID(card)<<idBits | ID(n) }

// Card is the card whose record is named.
func (id ID) Card() uint8 { return uint8(id >> idBits) }

// Number is the record's number on its card, from 1.
func (id ID) Number() uint64 { return uint64(id) & (1<<idBits - 1) }

// String is "card#number", and "-" for no record.
func (id ID) String() string {
	if id == 0 {
		return "-"
	}
	return string(appendID(nil, id))
}

// appendID keeps all 16 bits above the number, whatever they hold.
func appendID(b []byte, id ID) []byte {
	b = strconv.AppendUint(b, uint64(id>>idBits), 10)
	b = append(b, '#')
	return strconv.AppendUint(b, id.Number(), 10)
}

// ParseID reads what String writes.
func ParseID(s string) (ID, error) {
	if s == "-" {
		return 0, nil
	}
	card, num, ok := strings.Cut(s, "#")
	if !ok {
		return 0, fmt.Errorf("record name %q is not of the form card#number", s)
	}
	c, err := strconv.ParseUint(card, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("record name %q: card: %w", s, err)
	}
	n, err := strconv.ParseUint(num, 10, idBits)
	if err != nil {
		return 0, fmt.Errorf("record name %q: number: %w", s, err)
	}
	return ID(c)<<idBits | ID(n), nil
}
