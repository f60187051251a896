#include "list.h"

/* A whole packet is in a peer's slot here: out on the wire with it. The argument
 * is the peer, for the slot is no buffer of this card; without one it is a packet
 * that leaves by the wire it came by. */
void spine_wire_output_start(struct packet *peer)
{
	struct peer *from = (struct peer *)peer;
	u32 *slot, bytes;

	if (from) {
		slot = (u32 *)((u32)from->inbox + from->next_in);
		bytes = LENGTH_OF(slot[0]);
	} else {
		spine.own = take(&spine.out);
		slot = spine.own->buffer;
		bytes = spine.own->bytes;
	}
	spine.sending = 1;
	spine.sending_peer = from;
	SMP = (u32)(slot + 1);
	SMLT = ((u32)slot + 4 + bytes - 1) & ~3u;
}

/* The packet is out: its slot may be used again, and its sender is told. */
void spine_wire_output_done(struct packet *unused)
{
	struct peer *from = spine.sending_peer;
	u32 *slot;

	(void)unused;
	ISR = INT_SEND;
	if (!from) {
		spine.sending = 0;
		spine_send(&spine.self, spine_free_buffer, spine.own);
		return;
	}
	slot = (u32 *)((u32)from->inbox + from->next_in);
	slot[0] = 0;
	from->next_in += spine.slot_bytes;
	if (from->next_in == spine.slots)
		from->next_in = 0;
	spine.sending = 0;
	from->acks_due++;
}

/* Hands the oldest packet that waits for the host to the bus. */
void spine_to_host(struct packet *unused)
{
	struct packet *p = take(&spine.host);

	(void)unused;
	spine.moving = p;
	spine.engine_busy = 3;
	DMA_DIR = 0;
	EAR = spine.host_at;
	LAR = (u32)(p->buffer + 1);
	DMA_CTR = (p->bytes + 3) & ~3u;
}
