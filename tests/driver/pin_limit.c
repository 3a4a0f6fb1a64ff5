// SPDX-License-Identifier: GPL-2.0
/*
 * A user pins no more memory than the limit, however it is held: by a buffer, only by a mapping of a buffer that was freed, or by
 * one page each of huge pages.
 * Where the limit is reached BUFFER_ALLOC fails; no process is killed for it.
 */
#include "device.h"

#define PIECE (8 * MIB)
#define BYSTANDER_BYTES (60 * MIB)
#define HUGE (2 * MIB)

/* Allocates until it fails; the IDs go to `ids`. */
static unsigned int fill(int fd, uint32_t *ids, unsigned int max, int *error)
{
	unsigned int count = 0;

	for (*error = 0; count < max; count++) {
		struct vgpu_ioc_buffer buffer;

		*error = buffer_alloc(fd, PIECE, &buffer);
		if (*error)
			break;
		ids[count] = buffer.buffer;
	}
	return count;
}

/* Allocates, maps one page and frees, until something fails or `max` are held. */
static unsigned int hold_by_mapping(int fd, void **maps, unsigned int max, int *error)
{
	unsigned int count = 0;

	*error = 0;
	while (count < max) {
		struct vgpu_ioc_buffer buffer;

		*error = buffer_alloc(fd, PIECE, &buffer);
		if (*error)
			break;
		maps[count] = buffer_map(fd, &buffer, PAGE);
		*error = maps[count] == MAP_FAILED ? errno : buffer_free(fd, buffer.buffer);
		if (*error)
			break;
		*(volatile char *)maps[count] = 1;
		count++;
	}
	return count;
}

/* A huge page, at best, of which one page becomes a buffer before it is unmapped. 0, or an errno. */
static int pin_part(int fd)
{
	char *at = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *page = (char *)(((uintptr_t)at + HUGE - 1) & ~(HUGE - 1));
	struct vgpu_ioc_buffer buffer = { .address = (uintptr_t)page, .bytes = PAGE };
	int error;

	if (at == MAP_FAILED)
		return errno;
	madvise(page, HUGE, MADV_HUGEPAGE);
	*page = 1;
	error = ioctl(fd, VGPU_IOC_BUFFER_PIN, &buffer) ? errno : 0;
	munmap(at, 2 * HUGE);
	return error;
}

static void test_parts_of_huge_pages(int fd, size_t limit)
{
	int64_t before = memory_available(), kept;
	unsigned int count = 0;
	int error = 0;

	while (count < 2 * limit / HUGE && !(error = pin_part(fd)))
		count++;
	if (error == EOPNOTSUPP) {
		tap_skip("parts of huge pages", "the device does not reach the program's own memory in this guest");
		return;
	}
	kept = before - memory_available();
	tap_ok(kept < (int64_t)(limit + 24 * MIB), "one page each of %u huge pages keeps %lld MiB, %lu MiB allowed (%s)", count,
	       (long long)kept / (long long)MIB, limit / MIB, strerror(error));
}

static int be_a_bystander(void *arg)
{
	int *ready = arg;
	char *memory = malloc(BYSTANDER_BYTES);

	for (size_t i = 0; i < BYSTANDER_BYTES; i += 512)
		((volatile char *)memory)[i] = 1;
	if (write(ready[1], "", 1) != 1)
		return 1;
	pause();
	return 0;
}

/* Two channels hold what they can through mappings, as an attacker would. */
static int hog(void *arg)
{
	static void *maps[4096];
	unsigned int max = (unsigned int)(meminfo("MemTotal") / (int64_t)PIECE) * 2, count = 0;

	int error = 0;

	(void)arg;
	for (int i = 0; i < 2; i++) {
		int fd = device_open_soon();

		if (fd >= 0)
			count += hold_by_mapping(fd, maps,
						 max / 2 < 4096 ? max / 2 : 4096, &error);
	}
	printf("# the hog held %lu MiB, then: %s\n", count * PIECE / MIB, strerror(error));
	fflush(stdout);
	return 0;
}

static void test_nobody_is_killed(void)
{
	int ready[2];
	pid_t bystander, attacker;
	char byte;
	int status;

	if (pipe(ready))
		tap_bail("pipe");
	bystander = spawn_as(0, be_a_bystander, ready);
	if (read(ready[0], &byte, 1) != 1)
		tap_bail("the bystander did not start");
	attacker = spawn_as(0, hog, NULL);
	status = child_status(attacker, 120);
	tap_ok(status == 0, "a process that pins what it can gets errors, not signals (%d)", status);
	status = child_status(bystander, 0);
	tap_ok(status == -1, "a bystander with 60 MiB lives (%d)", status);
	kill(bystander, SIGKILL);
	waitpid(bystander, NULL, 0);
	kill(attacker, SIGKILL);
	waitpid(attacker, NULL, 0);
}

int main(void)
{
	static uint32_t ids[4096];
	static void *maps[4096];
	unsigned int limit, held, again;
	int64_t before;
	int fd, error;

	tap_begin();
	before = memory_available();
	fd = device_open_or_bail();
	limit = fill(fd, ids, 4096, &error);
	tap_note("%lu MiB pinned by buffers, then: %s", limit * PIECE / MIB, strerror(error));
	tap_ok(limit > 0 && (error == ENOMEM || error == EDQUOT || error == ENOSPC || error == EAGAIN),
	       "buffers can be pinned up to a limit: %s", strerror(error));
	for (unsigned int i = 0; i < limit; i++)
		error = buffer_free(fd, ids[i]);
	tap_ok(!error, "all of them are freed: %s", strerror(error));
	held = hold_by_mapping(fd, maps, limit + 4, &error);
	tap_ok(held <= limit, "mappings of freed buffers count: %lu MiB held, %lu MiB allowed (%s)", held * PIECE / MIB,
	       limit * PIECE / MIB, strerror(error));
	for (unsigned int i = 0; i < held; i++)
		munmap(maps[i], PAGE);
	again = fill(fd, ids, 4096, &error);
	tap_ok(again == limit, "after munmap the whole limit can be used again: %u of %u (%s)", again, limit,
	       strerror(error));
	for (unsigned int i = 0; i < again; i++)
		buffer_free(fd, ids[i]);
	test_parts_of_huge_pages(fd, limit * PIECE);
	close(fd);
	tap_ok(memory_returns(before - 16 * (int64_t)MIB, 20), "after close the memory is back");
	test_nobody_is_killed();
	tap_ok(memory_returns(before - 16 * (int64_t)MIB, 20), "and so it is after the hog");
	tap_end();
}
