// SPDX-License-Identifier: GPL-2.0
/* What programs do with the driver's mappings, in the fuzzer's grammar. */
#include "fuzz.h"

#include <linux/userfaultfd.h>
#include <setjmp.h>
#include <sys/syscall.h>
#include <sys/uio.h>

static __thread sigjmp_buf fault_target;
static __thread volatile bool in_touch;

static void on_fault(int signum)
{
	if (in_touch)
		siglongjmp(fault_target, 1);
	signal(signum, SIG_DFL);
}

void fuzz_catch_faults(void)
{
	struct sigaction action = { .sa_handler = on_fault, .sa_flags = SA_NODEFER };

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

bool op_mmap(struct fuzz_thread *t)
{
	const struct fuzz_buffer *buffer = a_buffer(t);
	struct fuzz_map *slot = &t->world->maps[pick(t, FUZZ_MAPS)];
	bool area = one_in(t, 3);
	int fd = area ? an_fd(t) : buffer->fd;
	off_t offset = area ? 0 : (off_t)buffer->offset;
	size_t bytes = one_in(t, 2) ? PAGE : some_pages(t);
	int flags = (one_in(t, 10) ? MAP_PRIVATE : MAP_SHARED) | (one_in(t, 4) ? MAP_POPULATE : 0) | (one_in(t, 10) ? MAP_32BIT : 0);
	char *at;

	if (one_in(t, 20))
		offset = (off_t)(any_number(t) & ~(PAGE - 1));
	at = mmap(NULL, bytes, a_prot(t), flags, fd, offset);
	if (at == MAP_FAILED)
		return false;
	slot->bytes = bytes;
	slot->at = at;
	return true;
}

bool op_munmap(struct fuzz_thread *t)
{
	struct fuzz_map *map = a_map(t);
	size_t pages = map->bytes / PAGE, first;
	char *at = map->at;

	if (!at || !pages)
		return false;
	if (one_in(t, 2)) {
		map->at = NULL;
		return !munmap(at, pages * PAGE);
	}
	first = pick(t, pages);
	return !munmap(at + first * PAGE, (one_in(t, 2) ? pages - first : 1) * PAGE);
}

bool op_mremap(struct fuzz_thread *t)
{
	struct fuzz_map *map = a_map(t);
	static const int flags[] = { MREMAP_MAYMOVE, MREMAP_MAYMOVE, 0, MREMAP_MAYMOVE | MREMAP_DONTUNMAP };
	size_t from = one_in(t, 8) ? 0 : map->bytes, to = one_in(t, 2) ? map->bytes : some_pages(t);
	char *at = map->at ? mremap(map->at, from, to, flags[pick(t, 4)]) : MAP_FAILED;

	if (at == MAP_FAILED)
		return false;
	map->bytes = to;
	map->at = at;
	return true;
}

bool op_advice(struct fuzz_thread *t)
{
	static const int advice[] = { MADV_NORMAL, MADV_DONTNEED, MADV_FREE, MADV_REMOVE, MADV_DONTFORK, MADV_DOFORK, MADV_MERGEABLE,
				      MADV_HUGEPAGE, MADV_WIPEONFORK, MADV_COLD, MADV_PAGEOUT, MADV_POPULATE_READ, MADV_POPULATE_WRITE };
	const struct fuzz_map *map = a_map(t);

	switch (pick(t, 4)) {
	case 0: return !mprotect(map->at, map->bytes, a_prot(t));
	case 1: return !mlock(map->at, map->bytes);
	case 2: return !munlock(map->at, map->bytes);
	default: return !madvise(map->at, map->bytes, advice[pick(t, sizeof(advice) / sizeof(advice[0]))]);
	}
}

/* False when there is nothing that can be touched so. */
__attribute__((noinline)) static bool touch_word(volatile uint32_t *at, bool write, uint32_t value)
{
	if (sigsetjmp(fault_target, 1)) {
		in_touch = false;
		return false;
	}
	in_touch = true;
	if (write)
		*at = value;
	else
		(void)*at;
	in_touch = false;
	return true;
}

/* Reads or writes what is mapped, also the rings, also while it goes away. */
bool op_touch(struct fuzz_thread *t)
{
	const struct fuzz_map *map = a_map(t);
	volatile uint32_t *at;

	if (!map->at || map->bytes < PAGE)
		return false;
	at = (volatile uint32_t *)(map->at + pick(t, map->bytes / 4) * 4);
	if (one_in(t, 2))
		at = (volatile uint32_t *)(map->at + pick(t, 64) * 4);
	return touch_word(at, one_in(t, 2), (uint32_t)any_number(t));
}

/* The kernel's own ways into a mapping. */
bool op_kernel_access(struct fuzz_thread *t)
{
	const struct fuzz_map *map = a_map(t);
	char bytes[64] = { 0 };
	struct iovec local = { bytes, sizeof(bytes) }, remote = { map->at, sizeof(bytes) };
	int ends[2];
	bool good;

	switch (pick(t, 4)) {
	case 0: return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) > 0;
	case 1: return process_vm_writev(getpid(), &local, 1, &remote, 1, 0) > 0;
	case 2: return syscall(SYS_futex, map->at, 1 /* FUTEX_WAKE */, 1, NULL, NULL, 0) >= 0;
	default:
		if (pipe(ends))
			return false;
		good = vmsplice(ends[1], &remote, 1, SPLICE_F_NONBLOCK) > 0;
		close(ends[0]);
		close(ends[1]);
		return good;
	}
}

bool op_userfaultfd(struct fuzz_thread *t)
{
	struct uffdio_api api = { .api = UFFD_API };
	const struct fuzz_map *map = a_map(t);
	struct uffdio_register range = { .range = { (uint64_t)map->at, map->bytes }, .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	bool good;

	if (fd < 0)
		return false;
	good = !ioctl(fd, UFFDIO_API, &api) && !ioctl(fd, UFFDIO_REGISTER, &range);
	close(fd);
	return good;
}
