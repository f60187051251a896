/* Programs that run on the simulated processor and, compiled natively, on the
 * machine the tests run on. Each takes words in and leaves words out. */

#include <stdarg.h>

typedef unsigned u32;
typedef unsigned short u16;
typedef unsigned char u8;
typedef unsigned long long u64;
typedef long long s64;
typedef int s32;

/* in and out: 64 words each, set and read by the test. */
u32 in[64], out[64];

void *memmove(void *, const void *, __SIZE_TYPE__);
void *memcpy(void *, const void *, __SIZE_TYPE__);
void *memset(void *, int, __SIZE_TYPE__);

static u32 word(int i) { return in[i & 63]; }

void checksum(void)
{
	for (int k = 0; k < 8; k++) {
		u32 sum = 0;

		for (int i = 0; i < 20 + k; i++)
			sum += (word(i + k) & 0xFFFF) + (word(i) >> 16);
		while (sum >> 16)
			sum = (sum & 0xFFFF) + (sum >> 16);
		out[k] = ~sum & 0xFFFF;
	}
}

static u32 table[256];

void crc(void)
{
	u32 c = ~0u;

	for (u32 i = 0; i < 256; i++) {
		u32 v = i;

		for (int k = 0; k < 8; k++)
			v = v & 1 ? v >> 1 ^ 0xEDB88320 : v >> 1;
		table[i] = v;
	}
	for (int i = 0; i < 64; i++)
		for (int k = 24; k >= 0; k -= 8)
			c = table[(c ^ in[i] >> k) & 0xFF] ^ c >> 8;
	out[0] = ~c;
}

static void quick(s32 *a, int lo, int hi)
{
	int i = lo, j = hi;
	s32 p;

	if (lo >= hi)
		return;
	p = a[(lo + hi) / 2];
	while (i <= j) {
		while (a[i] < p)
			i++;
		while (a[j] > p)
			j--;
		if (i <= j) {
			s32 t = a[i];
			a[i++] = a[j];
			a[j--] = t;
		}
	}
	quick(a, lo, j);
	quick(a, i, hi);
}

void sort(void)
{
	s32 a[64];

	memcpy(a, in, sizeof a);
	quick(a, 0, 63);
	memcpy(out, a, sizeof a);
}

static void put64(int i, u64 v)
{
	out[i & 63] = v >> 32;
	out[(i + 1) & 63] ^= (u32)v;
}

void wide(void)
{
	memset(out, 0, sizeof out);
	for (int i = 0; i < 60; i += 4) {
		u64 a = (u64)in[i] << 32 | in[i + 1], b = (u64)in[i + 2] << 32 | in[i + 3];
		int n = in[i] & 63;

		switch (in[i + 1] % 9) {
		case 0: put64(i, a + b); break;
		case 1: put64(i, a - b); break;
		case 2: put64(i, a * b); break;
		case 3: put64(i, a << n); break;
		case 4: put64(i, a >> n); break;
		case 5: put64(i, (s64)a >> n); break;
		case 6: put64(i, (a < b) | ((s64)a < (s64)b) << 1 | (a == b) << 2); break;
		case 7: put64(i, (a ^ b) & ~(a | b << 3)); break;
		default: put64(i, -a); break;
		}
		out[i + 2] = (a < b) + 2 * ((s64)a >= (s64)b);
	}
}

void division(void)
{
	for (int i = 0; i < 32; i += 2) {
		u32 d = in[i + 1] >> (in[i] & 31);
		s32 sd = (s32)in[i + 1] >> (in[i] & 31);
		u64 n64 = (u64)in[i] << 32 | in[i + 1], d64 = n64 >> (in[i + 1] & 63);

		if (d == 0)
			d = 7;
		if (sd == 0 || sd == -1)
			sd = -3;
		if (d64 == 0)
			d64 = 3;
		out[i] = in[i] / d ^ in[i] % d << 16;
		out[i + 1] = (s32)in[i] / sd ^ (s32)in[i] % sd << 7;
		out[32 + i] = (u32)(n64 / d64) ^ (u32)(n64 / d64 >> 32) ^ (u32)(n64 % d64);
		out[33 + i] = (u32)((s64)n64 / (s64)(d64 >> 1 | 1)) + (u32)((s64)n64 % (s64)(d64 >> 1 | 1));
	}
}

struct node { u32 key; struct node *left, *right; u32 count; };
static struct node nodes[64];
static int used;

static struct node *insert(struct node *t, u32 key)
{
	if (!t) {
		t = &nodes[used++];
		t->key = key;
		t->left = t->right = 0;
		t->count = 1;
	} else if (key < t->key)
		t->left = insert(t->left, key);
	else if (key > t->key)
		t->right = insert(t->right, key);
	else
		t->count++;
	return t;
}

static u32 depth(const struct node *t)
{
	u32 l, r;

	if (!t)
		return 0;
	l = depth(t->left);
	r = depth(t->right);
	return 1 + (l > r ? l : r);
}

static int walk(const struct node *t, int at)
{
	if (!t)
		return at;
	at = walk(t->left, at);
	out[at++ & 63] = t->key * 3 + t->count;
	return walk(t->right, at);
}

void tree(void)
{
	struct node *root = 0;

	used = 0;
	memset(out, 0, sizeof out);
	for (int i = 0; i < 62; i++)
		root = insert(root, in[i] % 97);
	walk(root, 0);
	out[63] = depth(root);
}

static u32 rotate(u32 v, u32 n) { n &= 31; return n ? v << n | v >> (32 - n) : v; }
static u32 plus(u32 a, u32 b) { return a + b; }
static u32 times(u32 a, u32 b) { return a * b; }
static u32 less(u32 a, u32 b) { return (s32)a < (s32)b; }
static u32 ones(u32 a, u32 b) { return __builtin_popcount(a) + (b ? __builtin_clz(b) + __builtin_ctz(b) : 99); }
static u32 bytes(u32 a, u32 b) { return (u32)(signed char)a + (u32)(short)b + (u8)(b >> 8) + (u16)a; }

typedef u32 (*fn)(u32, u32);
static const fn fns[] = { rotate, plus, times, less, ones, bytes };

void indirect(void)
{
	u32 v = in[0];

	for (int i = 0; i < 64; i++) {
		fn f = fns[in[i] % (sizeof fns / sizeof *fns)];

		v = f(v, in[(i + 1) & 63]);
		out[i] = v;
	}
}

static u8 bytesbuf[512];

void moves(void)
{
	for (int i = 0; i < 512; i++)
		bytesbuf[i] = (u8)(i * 7 + (in[i & 63] >> (i & 24)));
	for (int i = 0; i < 60; i++) {
		u32 from = in[i] & 255, to = in[i] >> 8 & 255, n = in[i] >> 16 & 127;

		if (in[i] >> 31)
			memset(bytesbuf + to, in[i + 1], n);
		else
			memmove(bytesbuf + to, bytesbuf + from, n);
	}
	for (int i = 0; i < 64; i++)
		out[i] = bytesbuf[8 * i] | bytesbuf[8 * i + 1] << 8 | bytesbuf[8 * i + 5] << 16 | (u32)bytesbuf[8 * i + 7] << 24;
}

static u32 fold(int n, ...)
{
	va_list l;
	u32 v = 0;

	va_start(l, n);
	while (n--)
		v = v * 31 + va_arg(l, u32);
	va_end(l);
	return v;
}

void varargs(void)
{
	for (int i = 0; i < 60; i++)
		out[i] = fold(3 + (i & 1), in[i], in[i + 1], in[i + 2], in[i + 3]) ^ fold(0) ^ fold(1, in[i]);
	for (int i = 60; i < 64; i++)
		out[i] = 0;
}

static signed char sb[64];
static short sh[64];

void parts(void)
{
	u32 sum = 0;

	for (int i = 0; i < 64; i++) {
		sb[i] = in[i];
		sh[63 - i] = in[i] >> 3;
	}
	for (int i = 0; i < 64; i++) {
		sum = sum * 5 + sb[i] + sh[i] * 3;
		switch (sb[i] & 7) {
		case 0: sum ^= 0x1234; break;
		case 1: sum += in[i]; break;
		case 2: sum -= sh[i]; break;
		case 3: sum = ~sum; break;
		case 4: sum <<= 3; break;
		case 5: sum = (s32)sum >> 2; break;
		default: sum >>= 1;
		}
		out[i] = sum;
	}
}
