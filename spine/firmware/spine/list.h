#ifndef LIST_H
#define LIST_H

#include "spine.h"

static inline void append(struct list *l, struct packet *p)
{
	p->next = 0;
	*l->last = p;
	l->last = &p->next;
}

static inline struct packet *take(struct list *l)
{
	struct packet *p = l->first;

	l->first = p->next;
	if (!l->first)
		l->last = &l->first;
	return p;
}

#endif
