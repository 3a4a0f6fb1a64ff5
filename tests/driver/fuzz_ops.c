// SPDX-License-Identifier: GPL-2.0
/* The fuzzer's grammar: every call that a program can make with the driver's file, and the choice of arguments. */
#include "fuzz.h"

#include <linux/userfaultfd.h>
#include <setjmp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
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

/* ---- Descriptors ---- */

static void keep_fd(struct fuzz_thread *t, int fd)
{
	volatile int *slot = &t->world->fds[pick(t, FUZZ_FDS)];
	int old = *slot;

	*slot = fd;
	if (old)
		close(old);
}

static bool op_open(struct fuzz_thread *t)
{
	static const int flags[] = { O_RDWR, O_RDWR, O_RDWR | O_NONBLOCK, O_RDONLY, O_WRONLY, O_RDWR | O_DIRECT, O_PATH };
	int fd = open(device_path(), flags[pick(t, sizeof(flags) / sizeof(flags[0]))]);

	struct vgpu_ioc_info info;

	if (fd < 0)
		return false;
	if (!one_in(t, 6))
		ioctl(fd, VGPU_IOC_CHANNEL, &info);
	keep_fd(t, fd);
	return true;
}

static bool op_close(struct fuzz_thread *t)
{
	volatile int *slot = &t->world->fds[pick(t, FUZZ_FDS)];
	int fd = *slot;

	*slot = 0;
	return fd && !close(fd);
}

static bool op_dup(struct fuzz_thread *t)
{
	int fd = dup(an_fd(t));

	if (fd < 0)
		return false;
	keep_fd(t, fd);
	return true;
}

static bool op_send_fd(struct fuzz_thread *t)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec byte = { "", 1 };
	struct msghdr message = { .msg_iov = &byte, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	int fd = an_fd(t);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	return fd >= 0 && sendmsg(fuzz_sockets[1 - t->world->user][0], &message, MSG_DONTWAIT) == 1;
}

static bool op_receive_fd(struct fuzz_thread *t)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte;
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
	struct cmsghdr *header;
	int fd;

	if (recvmsg(fuzz_sockets[t->world->user][1], &message, MSG_DONTWAIT) != 1)
		return false;
	header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_len != CMSG_LEN(sizeof(int)))
		return false;
	memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	keep_fd(t, fd);
	return true;
}

static bool op_file_calls(struct fuzz_thread *t)
{
	int fd = an_fd(t);
	char bytes[64] = { 0 };

	switch (pick(t, 7)) {
	case 0: return read(fd, bytes, sizeof(bytes)) >= 0;
	case 1: return write(fd, bytes, sizeof(bytes)) >= 0;
	case 2: return lseek(fd, (off_t)any_number(t), (int)pick(t, 5)) >= 0;
	case 3: return !fcntl(fd, F_SETFL, one_in(t, 2) ? O_NONBLOCK | O_ASYNC : O_ASYNC);
	case 4: return !ftruncate(fd, (off_t)any_number(t));
	case 5: return !fcntl(fd, F_SETOWN, getpid());
	default: return !fsync(fd);
	}
}

/* ---- ioctls ---- */

static bool op_info(struct fuzz_thread *t)
{
	struct vgpu_ioc_info info;

	return !ioctl(an_fd(t), VGPU_IOC_INFO, an_argument(t, &info, sizeof(info)));
}

static bool op_channel(struct fuzz_thread *t)
{
	struct vgpu_ioc_info info;

	return !ioctl(an_fd(t), VGPU_IOC_CHANNEL, an_argument(t, &info, sizeof(info)));
}

static bool op_status(struct fuzz_thread *t)
{
	struct vgpu_status status;

	return !ioctl(an_fd(t), VGPU_IOC_STATUS, an_argument(t, &status, sizeof(status)));
}

static bool op_wait(struct fuzz_thread *t)
{
	struct vgpu_ioc_wait wait = { .events = (uint32_t)pick(t, 4), .timeout_ms = (uint32_t)pick(t, 20) };

	return !ioctl(an_fd(t), VGPU_IOC_WAIT, an_argument(t, &wait, sizeof(wait)));
}

static bool op_kick(struct fuzz_thread *t)
{
	return !ioctl(an_fd(t), VGPU_IOC_KICK, any_number(t));
}

static bool op_alloc(struct fuzz_thread *t)
{
	struct vgpu_ioc_buffer buffer = { .bytes = one_in(t, 10) ? any_number(t) & ~(PAGE - 1) : some_pages(t) }, *argument;
	struct fuzz_buffer *slot = &t->world->buffers[pick(t, FUZZ_BUFFERS)];
	int fd = an_fd(t);

	if (buffer.bytes > 64 * MIB && !one_in(t, 20))
		buffer.bytes = PAGE;
	if (one_in(t, 30))
		buffer.mbz = (uint32_t)any_number(t);
	argument = an_argument(t, &buffer, sizeof(buffer));
	if (ioctl(fd, VGPU_IOC_BUFFER_ALLOC, argument))
		return false;
	if (argument == &buffer) {
		slot->fd = fd;
		slot->offset = buffer.mmap_offset;
		slot->bytes = buffer.bytes;
		slot->id = buffer.buffer;
	}
	return true;
}

/* Memory of the program's own, of the driver's, and what there is not. It goes away at any time. */
static bool op_pin(struct fuzz_thread *t)
{
	struct fuzz_map *map = a_map(t);
	struct fuzz_buffer *slot = &t->world->buffers[pick(t, FUZZ_BUFFERS)];
	struct vgpu_ioc_buffer buffer = { .address = (uint64_t)map->at, .bytes = map->bytes };
	int fd = an_fd(t);

	if (one_in(t, 2)) {
		size_t bytes = some_pages(t);
		char *own = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (own == MAP_FAILED)
			return false;
		map->bytes = bytes;
		map->at = own;
		buffer.address = (uint64_t)own;
		buffer.bytes = bytes;
	}
	if (one_in(t, 10))
		buffer.address = any_number(t);
	if (ioctl(fd, VGPU_IOC_BUFFER_PIN, an_argument(t, &buffer, sizeof(buffer))))
		return false;
	slot->fd = fd;
	slot->offset = (uint64_t)buffer.buffer * PAGE;
	slot->bytes = buffer.bytes;
	slot->id = buffer.buffer;
	return true;
}

static bool op_free(struct fuzz_thread *t)
{
	struct fuzz_buffer *known = a_buffer(t);
	struct vgpu_ioc_buffer buffer = { .buffer = one_in(t, 8) ? (uint32_t)any_number(t) : known->id };

	if (ioctl(one_in(t, 8) ? an_fd(t) : known->fd, VGPU_IOC_BUFFER_FREE, an_argument(t, &buffer, sizeof(buffer))))
		return false;
	if (!one_in(t, 4))
		known->id = 0;
	return true;
}

/* The same numbers with other sizes and directions, and numbers that there are not. */
static bool op_odd_ioctl(struct fuzz_thread *t)
{
	char bytes[512] = { 0 };
	size_t size = pick(t, sizeof(bytes));
	unsigned long request = _IOC(pick(t, 4), VGPU_IOC_TYPE, one_in(t, 4) ? pick(t, 256) : pick(t, 10), size);

	if (one_in(t, 3))
		for (size_t i = 0; i < size; i++)
			bytes[i] = (char)any_number(t);
	return !ioctl(an_fd(t), request, an_argument(t, bytes, size ? size : 1));
}

/* As a 32-bit program: arguments below 4 GiB, mostly. */
static bool op_ioctl_32(struct fuzz_thread *t)
{
	static const unsigned long requests[] = { VGPU_IOC_INFO, VGPU_IOC_STATUS, VGPU_IOC_CHANNEL, VGPU_IOC_KICK, VGPU_IOC_BUFFER_ALLOC,
						  VGPU_IOC_BUFFER_PIN, VGPU_IOC_BUFFER_FREE };
	unsigned int request = (unsigned int)requests[pick(t, sizeof(requests) / sizeof(requests[0]))];
	static void *low;
	long ret;

	if (!low)
		low = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	*(struct vgpu_ioc_buffer *)low = (struct vgpu_ioc_buffer){ .bytes = PAGE };
	__asm__ volatile("int $0x80"
			 : "=a"(ret)
			 : "a"(54l), "b"((long)an_fd(t)), "c"((long)request), "d"(one_in(t, 8) ? any_number(t) : (uint64_t)low)
			 : "memory", "r8", "r9", "r10", "r11", "cc");
	return (int)ret >= 0;
}

/* ---- Mappings ---- */

static bool op_mmap(struct fuzz_thread *t)
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

static bool op_munmap(struct fuzz_thread *t)
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

static bool op_mremap(struct fuzz_thread *t)
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

static bool op_advice(struct fuzz_thread *t)
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
static bool op_touch(struct fuzz_thread *t)
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
static bool op_kernel_access(struct fuzz_thread *t)
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

static bool op_userfaultfd(struct fuzz_thread *t)
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

/* ---- Waiting ---- */

static bool op_poll(struct fuzz_thread *t)
{
	struct pollfd fds[3];

	for (int i = 0; i < 3; i++)
		fds[i] = (struct pollfd){ .fd = an_fd(t), .events = (short)any_number(t) };
	return poll(fds, 1 + pick(t, 3), (int)pick(t, 5)) > 0;
}

static bool op_epoll(struct fuzz_thread *t)
{
	static const int ops[] = { EPOLL_CTL_ADD, EPOLL_CTL_ADD, EPOLL_CTL_MOD, EPOLL_CTL_DEL };
	struct epoll_event event = { .events = EPOLLIN | (one_in(t, 2) ? EPOLLET : 0) };
	struct fuzz_world *world = t->world;

	if (!world->epoll)
		world->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (one_in(t, 50)) {
		close(world->epoll);
		world->epoll = 0;
		return true;
	}
	if (one_in(t, 2))
		return epoll_wait(world->epoll, &event, 1, (int)pick(t, 3)) >= 0;
	return !epoll_ctl(world->epoll, ops[pick(t, 4)], an_fd(t), &event);
}

/* ---- Processes ---- */

/* A child that uses and leaves what it inherited; no lock of libc may be taken in it. */
static bool op_fork(struct fuzz_thread *t)
{
	pid_t pid = fork();

	if (pid < 0)
		return false;
	if (pid == 0) {
		for (unsigned int i = 0; i < 6; i++) {
			const struct fuzz_map *map = a_map(t);

			if (one_in(t, 2))
				op_kick(t);
			else
				munmap(map->at, PAGE);
			op_alloc(t);
			op_close(t);
		}
		if (one_in(t, 4))
			kill(getpid(), SIGKILL);
		_exit(0);
	}
	return waitpid(pid, NULL, 0) == pid;
}

/* Makes the next calls of this thread fail inside, at the n-th place that can fail. */
static bool op_fail_nth(struct fuzz_thread *t)
{
	static const unsigned int all = 1000;
	char text[16];
	int fd = open("/proc/thread-self/fail-nth", O_RDWR);
	bool good;

	if (fd < 0)
		return false;
	snprintf(text, sizeof(text), "%u", 1 + (unsigned int)pick(t, 24));
	good = write(fd, text, strlen(text)) > 0;
	if (one_in(t, 2))
		op_alloc(t);
	else if (one_in(t, 2))
		op_open(t);
	else
		fuzz_ops[pick(t, all) % fuzz_op_count].run(t);
	good = good && pwrite(fd, "0", 1, 0) == 1;
	close(fd);
	return good;
}

const struct fuzz_op fuzz_ops[] = {
	{ "open", 8, true, op_open },
	{ "close", 3, true, op_close },
	{ "dup", 3, true, op_dup },
	{ "send a descriptor", 2, true, op_send_fd },
	{ "receive a descriptor", 3, true, op_receive_fd },
	{ "other file calls", 2, true, op_file_calls },
	{ "INFO", 4, true, op_info },
	{ "STATUS", 2, true, op_status },
	{ "CHANNEL", 3, true, op_channel },
	{ "WAIT", 5, true, op_wait },
	{ "KICK", 6, true, op_kick },
	{ "BUFFER_ALLOC", 14, true, op_alloc },
	{ "BUFFER_PIN", 8, true, op_pin },
	{ "BUFFER_FREE", 12, true, op_free },
	{ "odd ioctls", 4, false, op_odd_ioctl },
	{ "32-bit ioctls", 4, false, op_ioctl_32 },
	{ "mmap", 14, true, op_mmap },
	{ "munmap", 10, true, op_munmap },
	{ "mremap", 4, true, op_mremap },
	{ "mprotect, mlock, madvise", 4, true, op_advice },
	{ "touch", 14, true, op_touch },
	{ "process_vm, futex, splice", 3, false, op_kernel_access },
	{ "userfaultfd", 1, false, op_userfaultfd },
	{ "poll", 6, true, op_poll },
	{ "epoll", 6, true, op_epoll },
	{ "fork", 1, true, op_fork },
	{ "fail-nth", 6, false, op_fail_nth },
};
const unsigned int fuzz_op_count = sizeof(fuzz_ops) / sizeof(fuzz_ops[0]);

static unsigned int an_op(struct fuzz_thread *t)
{
	unsigned int total = 0, choice;

	for (unsigned int i = 0; i < fuzz_op_count; i++)
		total += fuzz_ops[i].weight;
	choice = (unsigned int)pick(t, total);
	for (unsigned int i = 0;; i++) {
		if (choice < fuzz_ops[i].weight)
			return i;
		choice -= fuzz_ops[i].weight;
	}
}

void *fuzz_thread(void *world)
{
	struct fuzz_thread t = { .world = world };
	unsigned int number = __atomic_fetch_add(&t.world->threads, 1, __ATOMIC_RELAXED);

	t.random = t.world->seed ^ (uint64_t)(number + 1) * 0x2545f4914f6cdd1dull;
	for (;;) {
		unsigned int op = an_op(&t);
		bool good = fuzz_ops[op].run(&t);

		__atomic_fetch_add(&fuzz_counters[op].calls, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&fuzz_counters[op].good, good, __ATOMIC_RELAXED);
	}
}
