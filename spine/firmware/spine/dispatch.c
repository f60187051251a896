#include "spine.h"

static inline u32 found(handler run, void *arg)
{
	spine_found.run = run;
	spine_found.packet = arg;
	return 1;
}

static inline u32 take_from(struct queue *q)
{
	struct message *m;

	if (q->head == q->tail)
		return 0;
	m = &q->ring[q->head++ & (RING - 1)];
	spine_found = *m;
	return 1;
}

static u32 self(void)
{
	return take_from(&spine.self);
}

/* The send engine's interrupt, packets that leave by the wire they came by, and
 * the receive engine's interrupts. */
static u32 wire(void)
{
	u32 isr = ISR;

	if (spine.sending) {
		if (isr & INT_SEND)
			return found(spine_wire_output_done, 0);
	} else if (spine.out.first)
		return found(spine_wire_output_start, 0);
	if (!(isr & (INT_RECV | INT_BUFF)))
		return 0;
	if (spine.receiving_body)
		return found(spine_rx_check_body, 0);
	return spine.free.first ? found(spine_rx_check_header, 0) : 0;
}

/* Nothing comes from the host but its own DMA, which needs no handler here. */
static u32 host(void)
{
	return 0;
}

/* What another card wrote here: an ACK, or a whole packet. */
static u32 peer(struct peer *p)
{
	if (*p->acks != p->acks_seen)
		return found(spine_peer_ack, p);
	if (!spine.sending && *(volatile u32 *)((u32)p->inbox + p->next_in) & VALID)
		return found(spine_wire_output_start, p);
	return 0;
}

static u32 peer0(void) { return peer(&spine.peer[0]); }
static u32 peer1(void) { return peer(&spine.peer[1]); }
static u32 peer2(void) { return peer(&spine.peer[2]); }

/* The peer whose packet has waited longest of those that have a credit. */
static struct peer *startable(void)
{
	struct peer *p = spine.peer, *best = 0;

	for (u32 i = PEERS; i; i--, p++) {
		if (!p->starts.first || !p->credits)
			continue;
		if (!best || (int)(p->starts.first->order - best->starts.first->order) < 0)
			best = p;
	}
	return best;
}

/* Continuations of the chain and the engine's completions, then ACKs to be
 * sent, then packets that wait. */
static u32 dma(void)
{
	struct peer *p;

	if (take_from(&spine.dma))
		return 1;
	if (spine.engine_busy) {
		u32 was = spine.engine_busy;

		if (!(ISR & INT_DMA))
			return 0;
		if (was == 2)
			return found(spine_dma_start_header, spine.moving);
		ISR = INT_DMA;
		spine.engine_busy = 0;
		if (was == 3)
			return found(spine_free_buffer, spine.moving);
	}
	for (p = spine.peer; p < spine.peer + PEERS; p++)
		if (p->acks_due)
			return found(spine_ack_send, 0);
	p = startable();
	if (p)
		return found(spine_peer_to_peer_start, (void *)p);
	return spine.host.first ? found(spine_to_host, 0) : 0;
}

u32 (*const spine_polls[QUEUES])(void) = { self, wire, host, peer0, peer1, peer2, dma };

void spine_dispatch(void)
{
	for (;;) {
		const u8 *q = spine.order;

		/* After a hit the scan begins at the top again. */
		while (*q != QUEUES)
			if (spine_polls[*q++]()) {
				spine_found.run(spine_found.packet);
				break;
			}
	}
}
