// SPDX-License-Identifier: GPL-2.0
/* What the driver refuses, what a forked child may do, and what a 32-bit program can reach. */
#include "ring.h"

#include <sys/syscall.h>

#define GUEST_PID_WORD 4 /* where earlier drivers wrote it */
#define NR_32_IOCTL 54
#define NR_32_MMAP2 192

/* A system call of a 32-bit program; pointers have to lie below 4 GiB. */
static long call_32(long number, long a, long b, long c, long d, long e, long f)
{
	long ret;

	__asm__ volatile("push %%rbp\n\tmov %[f], %%rbp\n\tint $0x80\n\tpop %%rbp"
			 : "=a"(ret)
			 : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e), [f] "r"(f)
			 : "memory", "r8", "r9", "r10", "r11", "cc");
	return (int)ret;
}

static void test_refusals(struct ring *ring)
{
	struct vgpu_ioc_buffer buffer = { .bytes = PAGE, .mbz = 1 }, made;
	static const uint64_t bad_sizes[] = { 0, 1, PAGE - 1, PAGE + 1, 1ull << 33, UINT64_MAX, UINT64_MAX & ~(PAGE - 1) };
	int error = 0;
	void *p;

	tap_ok(ioctl(ring->fd, VGPU_IOC_BUFFER_ALLOC, &buffer) && errno == EINVAL, "padding that is not zero");
	for (size_t i = 0; i < sizeof(bad_sizes) / sizeof(bad_sizes[0]); i++)
		if (!buffer_alloc(ring->fd, bad_sizes[i], &made))
			error = 1;
	tap_ok(!error, "sizes that there can't be");
	tap_ok(ioctl(ring->fd, _IO(VGPU_IOC_TYPE, 99)) && errno == ENOTTY, "an ioctl that there is not");
	tap_ok(ioctl(ring->fd, VGPU_IOC_INFO, NULL) && errno == EFAULT, "a pointer to nothing");
	tap_ok(buffer_free(ring->fd, 0) == EINVAL && buffer_free(ring->fd, 77) == ENOENT, "buffers that there are not");
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, ring->fd, 0);
	tap_ok(p == MAP_FAILED && errno == EINVAL, "a private mapping");
	p = mmap(NULL, ring->bytes + PAGE, PROT_READ, MAP_SHARED, ring->fd, 0);
	tap_ok(p == MAP_FAILED && errno == EINVAL, "a mapping beyond the channel's end");
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, ring->fd, (off_t)1 << 43);
	tap_ok(p == MAP_FAILED, "a mapping of no buffer");
	p = mremap(ring->area, ring->bytes, ring->bytes + 64 * PAGE, MREMAP_MAYMOVE);
	tap_ok(p == MAP_FAILED, "a mapping that grows");
}

/* An answer that can't be delivered leaves nothing behind: else the channel's buffers would be used up. */
static void test_undelivered(void)
{
	struct vgpu_ioc_buffer *argument = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), made;
	unsigned int faults = 0;
	int fd = device_open_or_bail(), error;

	argument->bytes = PAGE;
	mprotect(argument, PAGE, PROT_READ);
	for (int i = 0; i < 5000; i++)
		faults += ioctl(fd, VGPU_IOC_BUFFER_ALLOC, argument) && errno == EFAULT;
	tap_ok(faults == 5000, "an answer to a page that can't be written is EFAULT (%u of 5000)", faults);
	error = buffer_alloc(fd, PAGE, &made);
	tap_ok(!error, "and no buffer is left behind: %s", strerror(error));
	close(fd);
	munmap(argument, PAGE);
}

/* Bits of what a child could do. */
#define CHILD_IOCTL 1
#define CHILD_ALLOC 2
#define CHILD_MMAP 4
#define CHILD_POLL 8

static int be_a_child(void *arg)
{
	const struct ring *ring = arg;
	struct pollfd p = { .fd = ring->fd, .events = POLLIN };
	struct vgpu_ioc_buffer buffer;
	int could = 0;

	could |= ioctl(ring->fd, VGPU_IOC_KICK) ? 0 : CHILD_IOCTL;
	could |= buffer_alloc(ring->fd, PAGE, &buffer) ? 0 : CHILD_ALLOC;
	could |= mmap(NULL, PAGE, PROT_READ, MAP_SHARED, ring->fd, 0) == MAP_FAILED ? 0 : CHILD_MMAP;
	could |= poll(&p, 1, 0) == 1 && (p.revents & POLLERR) ? 0 : CHILD_POLL;
	return could;
}

static int touch_parents_mapping(void *arg)
{
	const struct ring *ring = arg;

	return (int)ring->header->magic & 1;
}

static void test_fork(struct ring *ring)
{
	int could = child_status(spawn_as(0, be_a_child, ring), 30);

	tap_ok(could == 0, "a forked child can do nothing with its parent's channel (0x%x)", (unsigned int)could);
	tap_ok(child_status(spawn_as(0, touch_parents_mapping, ring), 30) == 128 + SIGSEGV, "and has not got its mapping");
	tap_ok(!ring_nop(ring, 30), "the parent's channel works on");
}

/* The header is shared with the host, and with programs of other process ID namespaces. */
static void test_header(const struct ring *ring)
{
	const uint32_t *words = ring->area;

	tap_ok(ring->header->magic == VGPU_MAGIC && ring->header->payload_bytes >= 0x10000, "the header is filled in");
	tap_ok(words[GUEST_PID_WORD] == 0, "no process ID of the first namespace stands in it (%u)", words[GUEST_PID_WORD]);
}

static void test_32_bit_buffers(int fd)
{
	struct vgpu_ioc_buffer buffer = { 0 };
	unsigned int count = 0, wrong = 0;
	uint32_t last = 0;

	while (count < 20000 && !buffer_alloc(fd, PAGE, &buffer)) {
		volatile uint32_t *wide = buffer_map(fd, &buffer, PAGE), *narrow;
		long at = call_32(NR_32_MMAP2, 0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (int)(buffer.mmap_offset >> 12));

		count++;
		last = buffer.buffer;
		narrow = (void *)(uintptr_t)(uint32_t)at;
		if (wide == MAP_FAILED || ((uint32_t)at > (uint32_t)-4096)) {
			wrong++;
			continue;
		}
		*wide = 0x1000000 + count;
		wrong += *narrow != 0x1000000 + count;
		munmap((void *)wide, PAGE);
		munmap((void *)narrow, PAGE);
	}
	tap_ok(count > 1000 && !wrong, "a 32-bit program maps each of %u buffers, the last one is %u (%u wrong)", count, last, wrong);
}

static void test_32_bit(void)
{
	struct vgpu_ioc_info *info = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	int fd = device_open_or_bail();
	long ret = call_32(NR_32_IOCTL, fd, (int)VGPU_IOC_INFO, (long)info, 0, 0, 0);

	if (ret == -ENOSYS)
		tap_skip("32-bit programs", "this kernel runs none");
	else if (tap_ok(!ret && info->abi_version == VGPU_ABI_VERSION, "a 32-bit program's INFO: %s", strerror((int)-ret)))
		test_32_bit_buffers(fd);
	close(fd);
}

int main(void)
{
	struct ring ring;

	tap_begin();
	if (ring_open(&ring))
		tap_bail("no channel: %s", strerror(errno));
	test_header(&ring);
	test_refusals(&ring);
	test_fork(&ring);
	ring_close(&ring);
	test_undelivered();
	test_32_bit();
	tap_end();
}
