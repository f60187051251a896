package spine

import "spinesim/spine/policy"

// Package policy under the names that the run-time, and who wires a router,
// know it by.

// NumQueues is the number of input queues (thesis p.108).
const NumQueues = policy.NumQueues

// The queues, as package policy numbers them.
const (
	QSelf = policy.QSelf
	QWire = policy.QWire
	QHost = policy.QHost
	QPeer = policy.QPeer
	QDMA  = policy.QDMA
)

// How a step of a static cycle looks for its message.
const (
	GuardKnown = policy.GuardKnown
	GuardLook  = policy.GuardLook
	GuardWait  = policy.GuardWait
)

// What a policy is made of, and what makes one from its text.
type (
	Policy           = policy.Policy
	VectorPolicy     = policy.VectorPolicy
	View             = policy.View
	Plan             = policy.Plan
	Vector           = policy.Vector
	PolicyKind       = policy.PolicyKind
	Param            = policy.Param
	Args             = policy.Args
	Strict           = policy.Strict
	StaticPolicy     = policy.StaticPolicy
	StaticCycle      = policy.StaticCycle
	StaticStep       = policy.StaticStep
	StaticCounts     = policy.StaticCounts
	StaticStepCounts = policy.StaticStepCounts
	Guard            = policy.Guard
	Deferred         = policy.Deferred
)

// What package policy makes and lists.
var (
	DefaultOrder  = policy.DefaultOrder
	PCIFirstOrder = policy.PCIFirstOrder
	Handlers      = policy.Handlers
	ErrDeferred   = policy.ErrDeferred
)

// NewPolicy makes a policy from its text, as policy.NewPolicy.
func NewPolicy(text string, seed uint64, card uint8) (Policy, error) {
	return policy.NewPolicy(text, seed, card)
}

// PolicyKinds lists the policies that have names, as policy.PolicyKinds.
func PolicyKinds() []PolicyKind { return policy.PolicyKinds() }
