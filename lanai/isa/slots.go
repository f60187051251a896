package isa

// Slots tells what the memory bus leaves to the processor.
type Slots interface {
	// Window tells the accesses that are free in each cycle from the given one
	// on. free[i] is that of cycle + i; nil stands for at least two in every
	// cycle until the boundary until, which lies beyond cycle. The slice is
	// valid until the next call and is not changed.
	Window(cycle int64) (free []uint8, until int64)
}

// Devices are the special registers, at addresses from DeviceBase on. They are
// accessed a word at a time, at multiples of 4.
type Devices interface {
	Load(addr uint32) (uint32, error)
	Store(addr, v uint32) error
}

// Steady is implemented by Devices that have registers whose reading changes
// nothing and whose value changes with events and stores only. Such registers
// are read without stopping the run.
type Steady interface {
	Steady(addr uint32) bool
}

// DeviceBase is where device registers begin. An address is taken for a device
// before it is compared with the memory's size.
const DeviceBase = 0xFFFF_FF00

// ReturnAddress is where a function called from outside returns to: reaching
// it stops the run with Returned.
const ReturnAddress = 0xFFFF_FEFC
