package traces

// queue is a first-in first-out list that reuses its memory.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) len() int { return len(q.items) - q.head }

func (q *queue[T]) push(v T) {
	if len(q.items) == cap(q.items) && q.head > len(q.items)/2 {
		n := copy(q.items, q.items[q.head:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, v)
}

// more is push of an item to be filled in place; what it holds is undefined.
func (q *queue[T]) more() *T {
	n := len(q.items)
	if n == cap(q.items) {
		var none T
		q.push(none)
		return &q.items[len(q.items)-1]
	}
	q.items = q.items[:n+1]
	return &q.items[n]
}

func (q *queue[T]) front() *T { return &q.items[q.head] }

func (q *queue[T]) at(i int) *T { return &q.items[q.head+i] }

func (q *queue[T]) pop() {
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
}

func (q *queue[T]) clear() { q.items, q.head = q.items[:0], 0 }
