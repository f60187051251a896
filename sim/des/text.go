package des

// The quantities are texts in scenario files and in JSON: a number and a unit.

// MarshalText writes the time with its unit.
func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads a time with its unit.
func (t *Time) UnmarshalText(b []byte) (err error) {
	*t, err = ParseTime(string(b))
	return err
}

// MarshalText writes the frequency with its unit.
func (f Frequency) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads a frequency with its unit.
func (f *Frequency) UnmarshalText(b []byte) (err error) {
	*f, err = ParseFrequency(string(b))
	return err
}

// MarshalText writes the rate with its unit.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a rate with its unit.
func (r *Rate) UnmarshalText(b []byte) (err error) {
	*r, err = ParseRate(string(b))
	return err
}

// MarshalText writes the number of bytes with its unit.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText reads a number of bytes with its unit.
func (b *Bytes) UnmarshalText(p []byte) (err error) {
	*b, err = ParseBytes(string(p))
	return err
}

// MarshalText writes the number of cycles with its unit.
func (c Cycles) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads a number of cycles with its unit.
func (c *Cycles) UnmarshalText(b []byte) (err error) {
	*c, err = ParseCycles(string(b))
	return err
}

// MarshalText writes the deviation with its unit.
func (d Deviation) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a deviation with its unit.
func (d *Deviation) UnmarshalText(b []byte) (err error) {
	*d, err = ParseDeviation(string(b))
	return err
}
