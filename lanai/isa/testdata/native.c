/* Runs the programs natively: words of input come on the standard input, as
 * many times 64 as there are runs of each program; words of output go out. */

#include <stdio.h>

extern unsigned in[64], out[64];
void checksum(void), crc(void), sort(void), wide(void), division(void), tree(void), indirect(void), moves(void), varargs(void), parts(void);

static void (*const programs[])(void) = { checksum, crc, sort, wide, division, tree, indirect, moves, varargs, parts };

int main(void)
{
	while (fread(in, sizeof in, 1, stdin) == 1)
		for (unsigned i = 0; i < sizeof programs / sizeof *programs; i++) {
			for (int k = 0; k < 64; k++)
				out[k] = 0;
			programs[i]();
			fwrite(out, sizeof out, 1, stdout);
		}
	return 0;
}
