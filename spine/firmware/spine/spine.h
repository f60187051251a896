/* What firmware on the simulated card works with: its registers, the run-time's
 * structures in SRAM, and the run-time's functions. An extension includes this
 * file and defines spine_extension. */

#ifndef SPINE_H
#define SPINE_H

typedef unsigned u32;
typedef unsigned short u16;
typedef unsigned char u8;

/* Special registers: one load or store each, as their addresses are r0 and a
 * signed 16-bit offset. */
#define REGISTER(offset) (*(volatile u32 *)(0xFFFFFF00u + (offset)))

#define ISR	REGISTER(0x28)	/* a one written clears the bit */
#define EIMR	REGISTER(0x2C)
#define IT	REGISTER(0x30)
#define RTC	REGISTER(0x34)
#define CKS	REGISTER(0x38)
#define EAR	REGISTER(0x3C)	/* host DMA: bus address */
#define LAR	REGISTER(0x40)	/* host DMA: address here */
#define DMA_CTR	REGISTER(0x44)	/* host DMA: bytes; writing starts it */
#define RMP	REGISTER(0x48)	/* receive: first word */
#define RML	REGISTER(0x4C)	/* receive: last word; writing starts it */
#define SMP	REGISTER(0x50)	/* send: first word */
#define SML	REGISTER(0x54)	/* send: last word, the frame goes on */
#define SMLT	REGISTER(0x58)	/* send: last word and the frame's end */
#define DMA_DIR	REGISTER(0x80)	/* 0 to the bus, 1 from it */
#define DMA_STS	REGISTER(0x84)

/* Bits of ISR. */
#define INT_BYTE	(1u << 0)
#define INT_RECV	(1u << 1)
#define INT_BUFF	(1u << 2)
#define INT_SEND	(1u << 3)
#define INT_DMA		(1u << 4)
#define INT_SEND_READY	(1u << 13)

/* Marks for the record: one cycle each. */
#define MARK_0()	__asm__ volatile("log_0")
#define MARK_1()	__asm__ volatile("log_1")
#define MARK_2()	__asm__ volatile("log_2")
#define MARK_3()	__asm__ volatile("log_3")
#define MARK_4()	__asm__ volatile("log_4")

/* The bytes that the receive engine takes before the rest, and that are moved
 * over the bus after the rest. */
#define HEADER_BYTES	32

/* A buffer's first word, before the packet: that it is whole, from whom, and how
 * long. The peer has it with the header, last. */
#define VALID		0x80000000u
#define LENGTH_OF(flag)	((flag) & 0xFFFF)

enum queue_number { Q_SELF, Q_WIRE, Q_HOST, Q_PEER0, Q_PEER1, Q_PEER2, Q_DMA, QUEUES };
#define PEERS 3

/* What becomes of a packet, and why. */
enum action { NEXT, FORWARD, TO_HOST, DROP };
enum reason {
	NO_REASON, BAD_CRC, TRUNCATED, BAD_VERSION, BAD_HEADER_LENGTH, BAD_CHECKSUM,
	BAD_TOTAL_LENGTH, MARTIAN, LOCAL, OPTIONS, TTL_EXPIRED, NO_ROUTE, OWN_WIRE, TOO_LONG, REASONS
};

struct packet {
	struct packet *next;	/* in whatever list it is */
	u32 *buffer;		/* the word of VALID, then the packet */
	u32 bytes;		/* from the IP header on */
	u32 bad_crc;
	u32 peer;		/* number of the card to leave by */
	u32 hop;		/* next hop's address */
	u32 slot;		/* bus address where the peer wants it */
	u32 order;		/* of those that wait for their DMA */
	u32 why;		/* enum reason, of what is not forwarded */
} __attribute__((aligned(16)));

typedef void (*handler)(struct packet *);

/* An active message: what to run on which packet. */
struct message {
	handler run;
	struct packet *packet;
};

/* head and tail count up for ever; the ring is a power of two. */
#define RING 32
struct queue {
	u32 head, tail;
	struct message ring[RING];
};

struct list {
	struct packet *first, **last;
};

/* Another card, as this one knows it. */
struct peer {
	u32 credits;
	u32 slots;		/* bus address of this card's slots there */
	u32 next_slot;
	u32 ack_at;		/* bus address of this card's word in its ACK box */
	u32 acks_sent;
	u32 *inbox;		/* its slots here */
	u32 next_in;
	volatile u32 *acks;	/* where its ACKs are written here */
	u32 acks_seen;
	struct list starts;	/* packets that wait for their DMA */
	struct list sent;	/* that have had it, and no ACK yet */
	u32 acks_due;
};

struct prefix { u32 address, mask; };

/* The LC-trie as the loader put it, and the lists of addresses that no packet
 * may have or that end here. */
struct routes {
	const u32 *nodes, *base, *prefixes, *hops;
	u32 empty, wide;
	u8 special[256];	/* by first octet: the lists have to be looked at */
	u32 bad_sources, locals, bad_targets;
	struct prefix list[32];	/* in that order */
	u32 own_wire, mtu;
	u32 refused[REASONS];
};

struct spine {
	u32 card;
	struct queue self, dma;
	struct list free;
	u32 buffers, buffer_bytes, slot_bytes, slots;
	struct packet *receiving;
	u32 receiving_body;
	u32 engine_busy;	/* 1: last transfer of a chain, 2: a body, 3: to the host */
	struct packet *moving;
	u32 started;		/* counts packets that wait for their DMA */
	u32 sending;
	struct peer *sending_peer;
	u32 ack;		/* the word that is on its way to a peer */
	struct peer peer[PEERS];
	struct routes routes;
	struct list host;
	struct list out;	/* packets for the wire they came by */
	struct packet *own;	/* the one of them that is being sent */
	u32 host_at;		/* bus address where the host wants packets */
	u8 order[8];		/* queues as they are polled, ended by QUEUES */
};

extern struct spine spine;

extern struct message spine_found;		/* by the last poll that hit */
extern u32 spine_staging[HEADER_BYTES / 4];	/* where headers are received */
extern u32 spine_acks[PEERS];			/* where peers write their ACKs */

/* Queues. */
void spine_send(struct queue *q, handler run, struct packet *p);
void spine_send_front(struct queue *q, handler run, struct packet *p);

/* The polls: whether a queue has a message that can run; it is then
 * spine_found. */
extern u32 (*const spine_polls[QUEUES])(void);

/* Polls and runs for ever, in the order of spine.order. */
void spine_dispatch(void);

/* Setting up, before anything runs. */
void spine_setup(u32 card, u32 buffers, u32 memory, u32 buffer_bytes);
void spine_setup_slots(u32 slot_bytes, u32 slots, u32 host_at);
void spine_setup_peer(u32 peer, u32 slots_there, u32 ack_there, u32 inbox);
void spine_setup_credits(u32 peer, u32 credits);
void spine_setup_order(u32 place, u32 queue);
void spine_setup_routes(const u32 *image, u32 own_wire, u32 mtu);
void spine_setup_prefix(u32 list, u32 address, u32 mask);
void spine_start(void);

/* Handlers. Those that act for a peer get it in place of a packet. */
void spine_free_buffer(struct packet *);
void spine_peer_ack(struct packet *);
void spine_rx_check_header(struct packet *);
void spine_rx_check_body(struct packet *);
void spine_enq_router_in(struct packet *);
void spine_router_in(struct packet *);
void spine_enq_ip_output(struct packet *);
void spine_peer_to_peer_start(struct packet *);
void spine_dma_start_handler(struct packet *);
void spine_dma_generic_start(struct packet *);
void spine_dma_start_body(struct packet *);
void spine_dma_start_header(struct packet *);
void spine_wire_output_start(struct packet *);
void spine_wire_output_done(struct packet *);
void spine_ack_send(struct packet *);
void spine_to_host(struct packet *);

/* Routing. An extension decides about a packet before the router does; NEXT
 * leaves it to the router. On a simulated card it may read all memory and
 * registers, write its own data, its stack, the packet's buffer, and p->why,
 * p->peer and p->hop, and call spine_lookup, spine_checksum and the library.
 * Anything else, and a run that is too long, ends its call: the packet is
 * dropped. */
enum action spine_extension(struct packet *p);
enum action spine_route(struct packet *p);
u32 spine_lookup(const struct routes *r, u32 address);
#define NO_HOP 0xFFFFFFFFu
u32 spine_checksum(const u32 *words, u32 count);

#endif
