/* An extension that calls what nobody has. */

#include "spine.h"

extern enum action spine_nowhere(struct packet *);

enum action spine_extension(struct packet *p)
{
	return spine_nowhere(p);
}
