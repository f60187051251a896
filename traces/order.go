package traces

import "errors"

// ErrOrder reports a record that is out of the canonical order (End, Card,
// the order in which the card made them), or whose own times run backwards.
var ErrOrder = errors.New("records out of order")
