/* SPDX-License-Identifier: GPL-2.0 */
/* The parts of the fuzzer: fuzz.c starts processes, fuzz_ops.c and fuzz_maps.c are what their threads do, fuzz_pick.c with which arguments. */
#ifndef FUZZ_H
#define FUZZ_H

#include "device.h"

#define FUZZ_FIRST_UID 1000
#define FUZZ_FDS 12u
#define FUZZ_MAPS 24u
#define FUZZ_BUFFERS 32u

struct fuzz_map {
	char *volatile at;
	volatile size_t bytes;
};

struct fuzz_buffer {
	volatile int fd;
	volatile uint32_t id;
	volatile uint64_t offset, bytes;
};

/* What the threads of one process share, without any locks: they get in each other's way, as they shall. */
struct fuzz_world {
	unsigned int user;
	uint64_t seed;
	volatile unsigned int threads;
	volatile int fds[FUZZ_FDS]; /* 0 = none */
	volatile int epoll;
	struct fuzz_map maps[FUZZ_MAPS];
	struct fuzz_buffer buffers[FUZZ_BUFFERS];
};

struct fuzz_thread {
	struct fuzz_world *world;
	uint64_t random;
};

struct fuzz_op {
	const char *name;
	unsigned int weight;
	bool can_succeed;
	bool (*run)(struct fuzz_thread *thread); /* true when the call succeeded */
};

struct fuzz_counters {
	unsigned long calls, good;
};

extern const struct fuzz_op fuzz_ops[];
extern const unsigned int fuzz_op_count;
extern struct fuzz_counters *fuzz_counters;
extern int fuzz_sockets[2][2];

uint64_t fuzz_random(uint64_t *state);
uint64_t pick(struct fuzz_thread *t, uint64_t below);
bool one_in(struct fuzz_thread *t, uint64_t n);
int an_fd(struct fuzz_thread *t);
struct fuzz_map *a_map(struct fuzz_thread *t);
struct fuzz_buffer *a_buffer(struct fuzz_thread *t);
size_t some_pages(struct fuzz_thread *t);
uint64_t any_number(struct fuzz_thread *t);
int a_prot(struct fuzz_thread *t);
void *an_argument(struct fuzz_thread *t, void *good, size_t bytes);
void fuzz_catch_faults(void);
void *fuzz_thread(void *world);
bool op_mmap(struct fuzz_thread *t);
bool op_munmap(struct fuzz_thread *t);
bool op_mremap(struct fuzz_thread *t);
bool op_advice(struct fuzz_thread *t);
bool op_touch(struct fuzz_thread *t);
bool op_kernel_access(struct fuzz_thread *t);
bool op_userfaultfd(struct fuzz_thread *t);

#endif
