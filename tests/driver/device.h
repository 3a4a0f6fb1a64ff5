/* SPDX-License-Identifier: GPL-2.0 */
/* What the test programs share: the device as an ordinary program uses it, time, memory, processes. */
#ifndef DEVICE_H
#define DEVICE_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "vgpu_ioctl.h"

#include "tap.h"

#define PAGE 4096ul
#define MIB (1ul << 20)

static inline const char *device_path(void)
{
	const char *path = getenv("VGPU_DEVICE");

	return path ? path : "/dev/vgpu0";
}

/* -1 and errno when the channel can't be opened. */
static inline int device_open(void)
{
	return open(device_path(), O_RDWR | O_CLOEXEC);
}

static inline double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline void sleep_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

/* The same, but waits for channels that were closed a moment ago and are still being taken down. */
static inline int device_open_soon(void)
{
	double end = now_s() + 30;
	int fd;

	while ((fd = device_open()) < 0 && (errno == EMFILE || errno == EBUSY) && now_s() < end)
		sleep_ms(10);
	return fd;
}

static inline int device_open_or_bail(void)
{
	int fd = device_open_soon();

	if (fd < 0)
		tap_bail("open %s: %s", device_path(), strerror(errno));
	return fd;
}

/* 0, or the errno. */
static inline int buffer_alloc(int fd, uint64_t bytes, struct vgpu_ioc_buffer *buffer)
{
	memset(buffer, 0, sizeof(*buffer));
	buffer->bytes = bytes;
	return ioctl(fd, VGPU_IOC_BUFFER_ALLOC, buffer) ? errno : 0;
}

static inline int buffer_free(int fd, uint32_t id)
{
	struct vgpu_ioc_buffer buffer = { .buffer = id };

	return ioctl(fd, VGPU_IOC_BUFFER_FREE, &buffer) ? errno : 0;
}

static inline void *buffer_map(int fd, const struct vgpu_ioc_buffer *buffer, size_t bytes)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)buffer->mmap_offset);
}

static inline void pin_to_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* A figure of /proc/meminfo in bytes. */
static inline int64_t meminfo(const char *name)
{
	char text[8192];
	int fd = open("/proc/meminfo", O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);
	char *at;

	close(fd);
	text[n > 0 ? n : 0] = 0;
	at = strstr(text, name);
	return at ? atoll(at + strlen(name) + 1) * 1024 : -1;
}

static inline int64_t memory_available(void)
{
	return meminfo("MemAvailable");
}

/* What everybody waits for: the kernel gives memory back a little after the last close. True within `seconds`. */
static inline bool memory_returns(int64_t wanted, double seconds)
{
	double end = now_s() + seconds;

	while (memory_available() < wanted) {
		if (now_s() > end)
			return false;
		sleep_ms(20);
	}
	return true;
}

/* The child's exit status, 128 + n for signal n; -1 when it has not ended within `seconds`. */
static inline int child_status(pid_t pid, double seconds)
{
	double end = now_s() + seconds;
	int status;

	for (;;) {
		pid_t got = waitpid(pid, &status, WNOHANG);

		if (got == pid)
			return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
		if (got < 0 || now_s() > end)
			return -1;
		sleep_ms(5);
	}
}

/* Runs `run(arg)` in a new process of user `uid` (root only; 0 = the caller's). */
static inline pid_t spawn_as(uid_t uid, int (*run)(void *arg), void *arg)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid)
		return pid;
	if (uid && (setgid(uid) || setuid(uid)))
		_exit(120);
	_exit(run(arg));
}

#endif
