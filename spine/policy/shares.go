package policy

import "fmt"

// MaxShare is the largest weight, quota or number of tickets of a queue.
const MaxShare = 1 << 16

// DefaultShares are the handlers that one forwarded packet needs of each queue
// of its ingress card, by its way through the router (thesis pp. 107–108): four
// to itself, two from the wire, one from each peer and from the host, five for
// the DMA chain. Policies that share the processor out start from them (chosen).
var DefaultShares = [NumQueues]int{4, 2, 1, 1, 1, 1, 5}

// checkShares refuses shares outside 1 … MaxShare.
func checkShares(what string, n [NumQueues]int) error {
	for q, v := range n {
		if v < 1 || v > MaxShare {
			return fmt.Errorf("%s of Q%d: %d, want 1 … %d", what, q, v, MaxShare)
		}
	}
	return nil
}
