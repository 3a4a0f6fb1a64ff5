// SPDX-License-Identifier: GPL-2.0
/* What the fuzzer chooses its arguments from: mostly what is there, sometimes what cannot be. */
#include "fuzz.h"

#define TRIES 8

uint64_t fuzz_random(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

uint64_t pick(struct fuzz_thread *t, uint64_t below)
{
	return fuzz_random(&t->random) % below;
}

bool one_in(struct fuzz_thread *t, uint64_t n)
{
	return pick(t, n) == 0;
}

/* Mostly one that is there. */
int an_fd(struct fuzz_thread *t)
{
	for (int i = 0; i < TRIES; i++) {
		int fd = t->world->fds[pick(t, FUZZ_FDS)];

		if (fd)
			return fd;
	}
	return -1;
}

struct fuzz_map *a_map(struct fuzz_thread *t)
{
	struct fuzz_map *map = NULL;

	for (int i = 0; i < TRIES && !(map && map->at); i++)
		map = &t->world->maps[pick(t, FUZZ_MAPS)];
	return map;
}

struct fuzz_buffer *a_buffer(struct fuzz_thread *t)
{
	struct fuzz_buffer *buffer = NULL;

	for (int i = 0; i < TRIES && !(buffer && buffer->id); i++)
		buffer = &t->world->buffers[pick(t, FUZZ_BUFFERS)];
	return buffer;
}

size_t some_pages(struct fuzz_thread *t)
{
	static const size_t pages[] = { 1, 1, 1, 2, 3, 8, 49, 64, 513, 561, 562, 1024 };

	return pages[pick(t, sizeof(pages) / sizeof(pages[0]))] * PAGE;
}

uint64_t any_number(struct fuzz_thread *t)
{
	uint64_t number = fuzz_random(&t->random);

	return number >> pick(t, 64);
}

int a_prot(struct fuzz_thread *t)
{
	return one_in(t, 3) ? (int)pick(t, 8) : PROT_READ | PROT_WRITE;
}

/* Where arguments lie: most often good memory; else nowhere, read-only, at the end of a page, or in a mapping of the device. */
void *an_argument(struct fuzz_thread *t, void *good, size_t bytes)
{
	static char *edge;

	if (!edge) {
		char *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		mprotect(pages + PAGE, PAGE, PROT_READ);
		munmap(pages + 2 * PAGE, PAGE);
		edge = pages;
	}
	switch (pick(t, 24)) {
	case 0: return NULL;
	case 1: return (void *)0x123000;
	case 2: return memcpy(edge + PAGE - bytes, good, bytes);
	case 3: return edge + PAGE;
	case 4: return edge + 2 * PAGE - bytes / 2;
	case 5: return a_map(t)->at;
	case 6: return (void *)(UINT64_MAX - any_number(t));
	default: return good;
	}
}
