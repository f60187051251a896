#include "list.h"

/* Makes the receive engine wait for a header. */
void spine_start(void)
{
	spine.receiving_body = 0;
	RMP = (u32)spine_staging;
	RML = (u32)spine_staging + HEADER_BYTES - 4;
}

/* A header is in the staging buffer: take a packet buffer, copy the header
 * there, and let the body follow it. Runs only while a buffer is free. */
void spine_rx_check_header(struct packet *unused)
{
	struct packet *p = take(&spine.free);
	u32 *to = p->buffer + 1;
	const u32 *from = spine_staging;

	(void)unused;
	ISR = INT_BUFF;
	for (u32 i = HEADER_BYTES / 4; i; i--)
		*to++ = *from++;
	p->bad_crc = 0;
	p->why = NO_REASON;
	p->bytes = spine_staging[0] & 0xFFFF;
	spine.receiving = p;
	spine.receiving_body = 1;
	RMP = (u32)to;
	if (!(ISR & INT_RECV))	/* else it was no longer than a header */
		RML = (u32)p->buffer + spine.buffer_bytes - 4;
}

/* The body is in: the next header may come, and the packet goes to the router. */
void spine_rx_check_body(struct packet *unused)
{
	struct packet *p = spine.receiving;

	(void)unused;
	ISR = INT_RECV | INT_BUFF;
	if (RMP < (((u32)p->buffer + 4 + p->bytes + 3) & ~3u))
		p->bad_crc = 1;	/* shorter than its header says */
	spine_start();
	spine_send(&spine.self, spine_enq_router_in, p);
}

void spine_enq_router_in(struct packet *p)
{
	spine_send(&spine.self, spine_router_in, p);
}

/* The extension first, then the router. */
void spine_router_in(struct packet *p)
{
	enum action a = spine_extension(p);

	if (a == NEXT)
		a = spine_route(p);
	switch (a) {
	case FORWARD:
		spine_send(&spine.self, spine_enq_ip_output, p);
		break;
	case DROP:
		spine_send(&spine.self, spine_free_buffer, p);
		break;
	default:
		append(&spine.host, p);
	}
}

void spine_free_buffer(struct packet *p)
{
	p->next = spine.free.first;
	spine.free.first = p;
	if (!p->next)
		spine.free.last = &p->next;
}
