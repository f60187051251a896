#include "list.h"

/* Peers are numbered without this card itself. */
static inline struct peer *of(u32 card)
{
	return &spine.peer[card - (card > spine.card)];
}

void spine_enq_ip_output(struct packet *p)
{
	if (p->peer == spine.card) {
		append(&spine.out, p);
		return;
	}
	p->order = spine.started++;
	append(&of(p->peer)->starts, p);
}

/* Reserves the engine, takes the credit and the peer's next slot. Runs only
 * while the engine is idle and a packet may start. */
void spine_peer_to_peer_start(struct packet *peer)
{
	struct peer *to = (struct peer *)peer;
	struct packet *p = take(&to->starts);

	spine.engine_busy = 1;
	spine.moving = p;
	to->credits--;
	p->slot = to->slots + to->next_slot;
	to->next_slot += spine.slot_bytes;
	if (to->next_slot == spine.slots)
		to->next_slot = 0;
	spine_send_front(&spine.dma, spine_dma_start_handler, p);
}

/* Marks the packet whole, for the peer to see when its header arrives. */
void spine_dma_start_handler(struct packet *p)
{
	p->buffer[0] = VALID | spine.card << 16 | p->bytes;
	spine_send_front(&spine.dma, spine_dma_generic_start, p);
}

/* What both transfers have in common. */
void spine_dma_generic_start(struct packet *p)
{
	DMA_DIR = 0;
	ISR = INT_DMA;
	spine_send_front(&spine.dma, spine_dma_start_body, p);
}

void spine_dma_start_body(struct packet *p)
{
	if (p->bytes <= HEADER_BYTES - 4) {	/* all of it is header */
		spine_send_front(&spine.dma, spine_dma_start_header, p);
		return;
	}
	EAR = p->slot + HEADER_BYTES;
	LAR = (u32)p->buffer + HEADER_BYTES;
	spine.engine_busy = 2;
	DMA_CTR = p->bytes + 4 - HEADER_BYTES;
}

/* Runs when the body's transfer is done: the header, and with it the flag, goes
 * last. */
void spine_dma_start_header(struct packet *p)
{
	ISR = INT_DMA;
	EAR = p->slot;
	LAR = (u32)p->buffer;
	append(&of(p->peer)->sent, p);
	spine.engine_busy = 1;
	DMA_CTR = HEADER_BYTES;
}

/* An ACK from a peer: the credit comes back, and the buffer is free. */
void spine_peer_ack(struct packet *peer)
{
	struct peer *from = (struct peer *)peer;

	from->acks_seen++;
	from->credits++;
	spine_send(&spine.self, spine_free_buffer, take(&from->sent));
}

/* Writes the number of packets taken to the ingress card's ACK box. */
void spine_ack_send(struct packet *unused)
{
	struct peer *to = spine.peer;

	(void)unused;
	while (!to->acks_due)
		to++;
	to->acks_due--;
	spine.ack = ++to->acks_sent;
	spine.engine_busy = 1;
	DMA_DIR = 0;
	EAR = to->ack_at;
	LAR = (u32)&spine.ack;
	DMA_CTR = 4;
}
