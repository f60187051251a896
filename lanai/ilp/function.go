package ilp

import "fmt"

// Function holds the parameters of one data-manipulation function (Ahlgren
// Table 1 and 4).
type Function struct {
	Name string `json:"name"`

	// StateWords is s_i: words kept from one block to the next. 0 to 1e4.
	StateWords float64 `json:"state_words"`

	// Constants is how many constant words the loop uses. Ahlgren's model does
	// not count them (§4.1); Model.SpillConstants does. 0 to 1e4.
	Constants float64 `json:"constants"`

	// Instructions is c_i: computation instructions an input block, loads,
	// stores and loop overhead apart. 0 to 1e6.
	Instructions float64 `json:"instructions"`

	// In is in_i, the bytes that must be present to compute. 1 to 4096.
	In int `json:"in_bytes"`

	// Out is out_i: In for a function that rewrites the data, 0 for one that
	// only reads it.
	Out int `json:"out_bytes"`

	// Source says where the values are from, and which were chosen.
	Source string `json:"source"`
}

// MaxBlock bounds block sizes, in bytes.
const MaxBlock = 4096

// Validate reports the first parameter outside its range.
func (f Function) Validate() error {
	if f.Name == "" {
		return fmt.Errorf("function without a name")
	}
	for _, c := range []struct {
		what   string
		v      float64
		lo, hi float64
	}{
		{"state", f.StateWords, 0, 1e4},
		{"constants", f.Constants, 0, 1e4},
		{"instructions", f.Instructions, 0, 1e6},
		{"input block", float64(f.In), 1, MaxBlock},
	} {
		if err := inRange(c.what, c.v, c.lo, c.hi, false); err != nil {
			return fmt.Errorf("function %q: %w", f.Name, err)
		}
	}
	if f.Out != 0 && f.Out != f.In {
		return fmt.Errorf("function %q: output block is %d bytes, want 0 or the input block's %d", f.Name, f.Out, f.In)
	}
	return nil
}

// accesses is how often the function touches a word of message: 1 to read, 2
// to read and write (Ahlgren eq. 2).
func (f Function) accesses() float64 {
	if f.Out == 0 {
		return 1
	}
	return 2
}
