#include "list.h"

#define MOST_BUFFERS 64
static struct packet packets[MOST_BUFFERS];

static void empty(struct list *l)
{
	l->first = 0;
	l->last = &l->first;
}

/* A router card with so many packet buffers, one after the other in memory. */
void spine_setup(u32 card, u32 buffers, u32 memory, u32 buffer_bytes)
{
	spine.card = card;
	spine.buffer_bytes = buffer_bytes;
	empty(&spine.free);
	empty(&spine.host);
	empty(&spine.out);
	for (u32 i = 0; i < buffers && i < MOST_BUFFERS; i++, memory += buffer_bytes) {
		packets[i].buffer = (u32 *)memory;
		append(&spine.free, &packets[i]);
	}
	for (u32 i = 0; i < PEERS; i++) {
		empty(&spine.peer[i].starts);
		empty(&spine.peer[i].sent);
		spine.peer[i].acks = &spine_acks[i];
	}
	for (u32 i = 0; i <= QUEUES; i++)
		spine.order[i] = i;
}

/* How large a slot is, and all slots for one peer; where the host's packets go. */
void spine_setup_slots(u32 slot_bytes, u32 slots, u32 host_at)
{
	spine.slot_bytes = slot_bytes;
	spine.slots = slots;
	spine.host_at = host_at;
}

/* Another card: where this card's slots and ACK word are there, and its slots
 * here. */
void spine_setup_peer(u32 peer, u32 slots_there, u32 ack_there, u32 inbox)
{
	struct peer *p = &spine.peer[peer];

	p->slots = slots_there;
	p->ack_at = ack_there;
	p->inbox = (u32 *)inbox;
}

/* How many packets the peer has room for. */
void spine_setup_credits(u32 peer, u32 credits)
{
	spine.peer[peer].credits = credits;
}

/* Which queue is polled at a place of the order, from 0. */
void spine_setup_order(u32 place, u32 queue)
{
	spine.order[place] = queue;
}

/* The table's image: six words of header (magic, form, routes, nodes, base and
 * prefix records), the three vectors, the next hops. */
void spine_setup_routes(const u32 *image, u32 own_wire, u32 mtu)
{
	struct routes *r = &spine.routes;
	u32 nodes = image[3], base = image[4], prefixes = image[5];

	r->wide = image[1] == 2;
	r->empty = nodes == 0;
	r->nodes = image + 6;
	r->base = r->nodes + nodes;
	r->prefixes = r->base + base + base + (r->wide ? base : 0);
	r->hops = r->prefixes + prefixes + (r->wide ? prefixes : 0);
	r->own_wire = own_wire;
	r->mtu = mtu;
}

/* Adds a prefix to a list: 0 sources that no packet has, 1 this router's own
 * addresses, 2 targets that no packet has. The lists are filled in this order. */
void spine_setup_prefix(u32 list, u32 address, u32 mask)
{
	struct routes *r = &spine.routes;
	u32 n = r->bad_sources + r->locals + r->bad_targets;
	u32 octet = address >> 24, last = octet | (~mask >> 24);

	if (n == sizeof r->list / sizeof *r->list)
		return;
	r->list[n].address = address;
	r->list[n].mask = mask;
	if (list == 0)
		r->bad_sources++;
	else if (list == 1)
		r->locals++;
	else
		r->bad_targets++;
	for (; octet <= last; octet++)
		r->special[octet] = 1;
}
