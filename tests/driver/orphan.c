// SPDX-License-Identifier: GPL-2.0
/*
 * A program is killed that has a channel and a buffer, and another process lives that has the file too. What the program had is
 * given back at once, the other process can do nothing with the file, and others can use the device. Nobody else may use it.
 *
 * usage: orphan [HOLDERS]   that many times each
 */
#include "ring.h"

#include <sys/socket.h>
#include <sys/syscall.h>

#define PATIENCE 30.0

/* What the processes say to each other, and where. */
struct pipes {
	int ready[2]; /* the holder has the file: a byte */
	int ask[2]; /* try it: a byte */
	int answer[2]; /* bits of what it could do: a byte */
};

static uint64_t figure(const char *name)
{
	char path[256], text[64] = "";
	const char *device = strrchr(device_path(), '/');
	int fd;

	snprintf(path, sizeof(path), "/sys/class/vgpu%s/%s", device, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		tap_bail("%s: %s", path, strerror(errno));
	close(fd);
	return strtoull(text, NULL, 10);
}

static bool becomes(const char *name, uint64_t wanted, double seconds)
{
	double end = now_s() + seconds;

	while (figure(name) != wanted) {
		if (now_s() > end)
			return false;
		sleep_ms(5);
	}
	return true;
}

static bool take(int fd, char *byte)
{
	return read(fd, byte, 1) == 1;
}

static void give(int fd, char byte)
{
	if (write(fd, &byte, 1) != 1)
		_exit(111);
}

/* The process that has the file when its program is gone. */
static void hold(int fd, const struct pipes *pipes)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct vgpu_ioc_buffer buffer;
	char could = 0, any;

	close(pipes->ask[1]);
	give(pipes->ready[1], 1);
	if (!take(pipes->ask[0], &any))
		_exit(112);
	could |= ioctl(fd, VGPU_IOC_KICK) && errno == EBADF ? 0 : 1;
	could |= buffer_alloc(fd, PAGE, &buffer) == EBADF ? 0 : 2;
	could |= mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ? 0 : 4;
	could |= poll(&p, 1, 0) == 1 && (p.revents & POLLERR) ? 0 : 8;
	give(pipes->answer[1], could);
	take(pipes->ask[0], &any);
	_exit(0);
}

static void by_fork(int fd, const struct pipes *pipes)
{
	if (!fork())
		hold(fd, pipes);
}

/* Shares the table of descriptors: that one is not closed when the program ends. */
static void by_clone(int fd, const struct pipes *pipes)
{
	if (!syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0))
		hold(fd, pipes);
}

/* A process that was there before gets it sent. */
static void by_message(int fd, const struct pipes *pipes)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	char byte = 1;
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		_exit(113);
	if (!fork()) {
		close(fd);
		if (recvmsg(ends[1], &message, 0) != 1)
			_exit(114);
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
		hold(fd, pipes);
	}
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	if (sendmsg(ends[0], &message, 0) != 1)
		_exit(115);
}

static const struct way {
	const char *name;
	void (*leave)(int fd, const struct pipes *pipes);
} ways[] = {
	{ "a forked child", by_fork },
	{ "a child with the same table of descriptors", by_clone },
	{ "a process that got it in a message", by_message },
};

/* The program; it is killed. */
static void be_a_program(const struct way *way, const struct pipes *pipes)
{
	struct vgpu_ioc_buffer buffer;
	struct ring ring;

	if (ring_open(&ring) || ring_nop(&ring, PATIENCE) || buffer_alloc(ring.fd, 4 * MIB, &buffer) ||
	    buffer_map(ring.fd, &buffer, 4 * MIB) == MAP_FAILED)
		_exit(116);
	way->leave(ring.fd, pipes);
	for (;;)
		pause();
}

static void try_way(const struct way *way)
{
	struct pipes pipes;
	struct ring ring;
	char byte = 0;
	double began;
	bool answered, given_back;
	pid_t program;
	int error;

	if (!becomes("channels", 0, PATIENCE) || !becomes("pinned_bytes", 0, PATIENCE))
		tap_bail("somebody else uses the device");
	if (pipe(pipes.ready) || pipe(pipes.ask) || pipe(pipes.answer))
		tap_bail("pipe: %s", strerror(errno));
	program = fork();
	if (!program)
		be_a_program(way, &pipes);
	close(pipes.ready[1]);
	close(pipes.answer[1]);
	if (!tap_ok(take(pipes.ready[0], &byte), "%s has the file of a program", way->name))
		tap_bail("%s: the program ended with %d", way->name, child_status(program, 1));
	began = now_s();
	kill(program, SIGKILL);
	child_status(program, PATIENCE);
	given_back = becomes("pinned_bytes", 0, PATIENCE);
	tap_ok(given_back, "%s: what the program had is given back when it is killed (%.2f s)",
	       way->name, now_s() - began);
	give(pipes.ask[1], 1);
	answered = take(pipes.answer[0], &byte);
	tap_ok(answered && !byte, "%s can do nothing with the file (0x%x)", way->name, (unsigned char)byte);
	error = ring_open(&ring);
	if (tap_ok(!error && !ring_nop(&ring, PATIENCE), "%s has it, and the device works: %s", way->name, strerror(error)))
		ring_close(&ring);
	close(pipes.ask[1]);
	tap_ok(becomes("channels", 0, PATIENCE), "%s ends: the channel's number is free", way->name);
	close(pipes.ask[0]);
	close(pipes.ready[0]);
	close(pipes.answer[0]);
}

int main(int argc, char **argv)
{
	int times = argc > 1 ? atoi(argv[1]) : 1;

	tap_begin();
	signal(SIGPIPE, SIG_IGN);
	for (; times > 0; times--)
		for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
			try_way(&ways[i]);
	tap_end();
}
