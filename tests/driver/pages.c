// SPDX-License-Identifier: GPL-2.0
/*
 * Buffers are ordinary memory of the program: debuggers, pipes and futexes reach them, nobody executes them, and memory that the program has
 * already can be one.
 *
 * usage: pages          all of this
 *        pages keep     maps a buffer, says "mapped", says "lost" when the channel is, and after SIGUSR1 looks whether the memory is still its own
 *        pages full     the same with a large buffer, and takes nearly all other memory until then
 *        pages pieces N says "ready"; at each SIGUSR1 makes a buffer of N pages that are not next to each other, and says "lost" when its channel
 *                       was lost meanwhile, or "pinned". Then the next SIGUSR1 frees the buffer
 */
#include "ring.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define PATIENCE 30.0
#define KEPT (4 * MIB)
#define OTHER (64 * MIB)
#define LARGE (96 * MIB)
#define LEFT (32 * MIB)

static void fill(uint64_t *words, size_t bytes, uint64_t seed)
{
	for (size_t i = 0; i < bytes / 8; i++)
		words[i] = seed * 0x9e3779b97f4a7c15ull + i;
}

static bool holds(const uint64_t *words, size_t bytes, uint64_t seed)
{
	for (size_t i = 0; i < bytes / 8; i++)
		if (words[i] != seed * 0x9e3779b97f4a7c15ull + i)
			return false;
	return true;
}

static int buffer_pin(int fd, void *at, uint64_t bytes, struct vgpu_ioc_buffer *buffer)
{
	memset(buffer, 0, sizeof(*buffer));
	buffer->address = (uintptr_t)at;
	buffer->bytes = bytes;
	return ioctl(fd, VGPU_IOC_BUFFER_PIN, buffer) ? errno : 0;
}

static void *anonymous(size_t bytes, int protection)
{
	void *at = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		tap_bail("mmap: %s", strerror(errno));
	return at;
}

/* What needs references of pages. */
static void test_reach(struct ring *ring)
{
	struct vgpu_ioc_buffer buffer;
	int error = buffer_alloc(ring->fd, MIB, &buffer), pipes[2], mem = open("/proc/self/mem", O_RDWR);
	char *at = error ? MAP_FAILED : buffer_map(ring->fd, &buffer, MIB), copy[16] = "";
	struct iovec to = { copy, sizeof(copy) }, from = { at, sizeof(copy) }, page = { at, PAGE };

	if (at == MAP_FAILED)
		tap_bail("a buffer: %s", strerror(error ? error : errno));
	strcpy(at, "a buffer");
	tap_ok(process_vm_readv(getpid(), &to, 1, &from, 1, 0) == sizeof(copy) && !strcmp(copy, "a buffer"),
	       "another process's system call reads it");
	tap_ok(pwrite(mem, "a debug", 8, (off_t)(uintptr_t)at) == 8 && !strcmp(at, "a debug"), "a debugger writes it");
	tap_ok(!pipe(pipes) && vmsplice(pipes[1], &page, 1, 0) == (ssize_t)PAGE && read(pipes[0], copy, 8) == 8 && !strcmp(copy, "a debug"),
	       "a pipe takes its pages");
	tap_ok(syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 0, "a futex of the process can be in it");
	tap_ok(mprotect(at, MIB, PROT_READ | PROT_EXEC) && errno == EACCES, "it can't be executed");
	tap_ok(mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, ring->fd, (off_t)buffer.mmap_offset) == MAP_FAILED, "nor mapped so");
	tap_ok(!madvise(at, MIB, MADV_DONTNEED) && !strcmp(at, "a debug"), "it is the same after MADV_DONTNEED");
	tap_ok(!buffer_free(ring->fd, buffer.buffer) && !strcmp(at, "a debug"), "it outlives the buffer");
	munmap(at, MIB);
	close(mem);
}

static int copy_in_and_out(struct ring *ring, uint32_t from, uint32_t to, uint64_t bytes)
{
	struct vgpu_cqe done;
	int ret = ring_run(ring, (struct vgpu_sqe){ .op = VGPU_OP_MEM_ALLOC, .args = { bytes } }, &done, PATIENCE);
	uint64_t address = done.value[0];

	if (!ret)
		ret = ring_run(ring, (struct vgpu_sqe){ .op = VGPU_OP_BUF_IN, .args = { address, from, 0, bytes } }, &done, PATIENCE);
	if (!ret)
		ret = ring_run(ring, (struct vgpu_sqe){ .op = VGPU_OP_BUF_OUT, .args = { address, to, 0, bytes } }, &done, PATIENCE);
	return ret;
}

static int look_at(void *at)
{
	return !holds(at, MIB, 1);
}

static void test_pinned(struct ring *ring)
{
	uint64_t *in = anonymous(MIB, PROT_READ | PROT_WRITE), *out = anonymous(MIB, PROT_READ | PROT_WRITE);
	struct vgpu_ioc_buffer from, to;
	int error;

	fill(in, MIB, 1);
	error = buffer_pin(ring->fd, in, MIB, &from);
	if (error == EOPNOTSUPP) {
		tap_skip("memory that the program has already", "the device does not reach it in this guest");
		return;
	}
	if (!error)
		error = buffer_pin(ring->fd, out, MIB, &to);
	if (!tap_ok(!error, "memory that the program has already becomes two buffers: %s", strerror(error)))
		return;
	tap_ok(!from.mmap_offset && mmap(NULL, PAGE, PROT_READ, MAP_SHARED, ring->fd, (off_t)from.buffer * PAGE) == MAP_FAILED,
	       "which the driver maps nowhere else");
	error = copy_in_and_out(ring, from.buffer, to.buffer, MIB);
	tap_ok(!error && holds(out, MIB, 1), "the device copies one into the other (%d)", error);
	error = child_status(spawn_as(0, look_at, in), PATIENCE);
	tap_ok(!error, "a forked child has its contents (%d)", error);
	in[0]++;
	error = copy_in_and_out(ring, from.buffer, to.buffer, MIB);
	tap_ok(!error && out[0] == in[0], "the device still sees what the program writes after the fork (%d)", error);
	munmap(in, MIB);
	error = copy_in_and_out(ring, from.buffer, to.buffer, MIB);
	tap_ok(!error && out[1] == 0x9e3779b97f4a7c15ull + 1, "unmapped, its pages are there until the buffer is freed (%d)", error);
	error = buffer_free(ring->fd, from.buffer);
	if (!error)
		error = buffer_free(ring->fd, to.buffer);
	tap_ok(!error, "both are freed: %s", strerror(error));
	munmap(out, MIB);
}

static void test_not_pinned(struct ring *ring)
{
	char *readable = anonymous(2 * PAGE, PROT_READ);
	struct vgpu_ioc_buffer buffer;

	tap_ok(buffer_pin(ring->fd, readable + 1, PAGE, &buffer) == EINVAL, "an address within a page");
	tap_ok(buffer_pin(ring->fd, readable, PAGE + 1, &buffer) == EINVAL, "a length that is no page's");
	tap_ok(buffer_pin(ring->fd, (void *)~(PAGE - 1), 2 * PAGE, &buffer) == EINVAL, "beyond the end of all addresses");
	tap_ok(buffer_pin(ring->fd, NULL, PAGE, &buffer) == EFAULT, "nothing");
	tap_ok(buffer_pin(ring->fd, (void *)~(2 * PAGE - 1), PAGE, &buffer) != 0, "the kernel's memory");
	tap_ok(buffer_pin(ring->fd, readable, 2 * PAGE, &buffer) != 0, "memory that the program may not write");
	munmap(readable, 2 * PAGE);
}

static volatile sig_atomic_t told;

static void on_signal(int number)
{
	told = number;
}

/* Memory of which so much is written that nearly none is left for others. */
static void *take_all_memory(size_t *bytes)
{
	char *at;

	*bytes = (size_t)meminfo("MemAvailable");
	at = anonymous(*bytes, PROT_READ | PROT_WRITE);
	for (size_t i = 0; i < *bytes && meminfo("MemAvailable") > (int64_t)LEFT; i += MIB)
		memset(at + i, 1, MIB);
	return at;
}

static void keep(struct ring *ring, size_t bytes, bool full)
{
	struct vgpu_ioc_buffer buffer;
	int error = buffer_alloc(ring->fd, bytes, &buffer);
	uint64_t *at = error ? MAP_FAILED : buffer_map(ring->fd, &buffer, bytes), *other;
	struct pollfd p = { .fd = ring->fd };
	size_t taken = 0;
	void *rest = NULL;

	if (at == MAP_FAILED)
		tap_bail("a buffer: %s", strerror(error ? error : errno));
	signal(SIGUSR1, on_signal);
	fill(at, bytes, 2);
	if (full)
		rest = take_all_memory(&taken);
	puts("mapped");
	while (poll(&p, 1, -1) < 1 || !(p.revents & POLLHUP))
		;
	puts("lost");
	while (!told)
		sleep_ms(5);
	tap_ok(holds(at, bytes, 2), "what the program has put there is there");
	if (full)
		munmap(rest, taken);
	other = anonymous(OTHER, PROT_READ | PROT_WRITE);
	fill(other, OTHER, 3);
	tap_ok(holds(at, bytes, 2), "nobody else has got its pages");
	fill(at, bytes, 4);
	tap_ok(holds(other, OTHER, 3) && holds(at, bytes, 4), "nor is what it writes there written anywhere else");
}

/* Pages in the order of their addresses are not next to each other: every other one is in another mapping. */
static char *scattered(size_t pages)
{
	char *parts[2];

	for (int i = 0; i < 2; i++) {
		parts[i] = anonymous(pages * PAGE, PROT_READ | PROT_WRITE);
		madvise(parts[i], pages * PAGE, MADV_NOHUGEPAGE);
	}
	for (size_t i = 0; i < pages; i++)
		for (int part = 0; part < 2; part++)
			parts[part][i * PAGE] = 1;
	return parts[0];
}

static void pin_pieces(struct ring *ring, size_t pages)
{
	char *at = scattered(pages);
	struct vgpu_ioc_buffer buffer;
	sigset_t signals;
	int error, number;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	puts("ready");
	for (;;) {
		sigwait(&signals, &number);
		error = buffer_pin(ring->fd, at, pages * PAGE, &buffer);
		if (error != EIO)
			break;
		puts("lost");
		ring_close(ring);
		error = ring_open(ring);
		if (error)
			tap_bail("no channel: %s", strerror(error));
	}
	puts("pinned");
	tap_ok(!error, "%zu pages become a buffer: %s", pages, strerror(error));
	sigwait(&signals, &number);
	if (!error)
		error = buffer_free(ring->fd, buffer.buffer);
	tap_ok(!error, "and are the program's own again: %s", strerror(error));
}

int main(int argc, char **argv)
{
	struct ring ring;
	int error;

	tap_begin();
	error = ring_open(&ring);
	if (error)
		tap_bail("no channel: %s", strerror(error));
	if (argc > 1 && !strcmp(argv[1], "keep")) {
		keep(&ring, KEPT, false);
	} else if (argc > 1 && !strcmp(argv[1], "full")) {
		keep(&ring, LARGE, true);
	} else if (argc > 2 && !strcmp(argv[1], "pieces")) {
		pin_pieces(&ring, strtoul(argv[2], NULL, 10));
	} else {
		test_reach(&ring);
		test_pinned(&ring);
		test_not_pinned(&ring);
	}
	ring_close(&ring);
	tap_end();
}
