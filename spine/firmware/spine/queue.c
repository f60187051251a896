#include "spine.h"

struct spine spine;
struct message spine_found;
u32 spine_staging[HEADER_BYTES / 4];
u32 spine_acks[PEERS];

void spine_send(struct queue *q, handler run, struct packet *p)
{
	struct message *m = &q->ring[q->tail++ & (RING - 1)];

	m->run = run;
	m->packet = p;
}

void spine_send_front(struct queue *q, handler run, struct packet *p)
{
	struct message *m = &q->ring[--q->head & (RING - 1)];

	m->run = run;
	m->packet = p;
}
