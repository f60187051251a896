package lanai

// Careful makes the processors on a card's bus stop for each other's steps, so
// that nothing executed is ever taken back.
func Careful(c *Card) { c.CPU.together.careful = true }
