// SPDX-License-Identifier: GPL-2.0
/*
 * Threads of the lowest priority, many of them, that are somewhere in the driver whenever it is looked, and others that take their
 * processors away. They end when the device is gone.
 *
 * usage: idlers open|alloc|pin|close PROCESSES THREADS HOGS [always]
 *   open    channels are made and closed in a loop
 *   alloc   buffers whose answer can't be delivered: allocated and given back at once
 *   pin     shared memory of each process is a buffer, and its pages are locked for most of the time: threads copy them
 *   close   each thread has a channel, and closes it at the moment at which the device is gone
 */
#include "device.h"

#include <sys/prctl.h>

#define MOST_THREADS 512
#define SECONDS 60.0
#define PINNED (16 * PAGE)

static volatile bool stop;
static int shared_fd, pinned_memory;

static bool is_over(int error)
{
	return error == ENODEV || error == EIO || error == ENXIO;
}

static void *open_often(void *arg)
{
	(void)arg;
	while (!stop) {
		int fd = device_open();

		if (fd >= 0)
			close(fd);
		else if (is_over(errno) || errno == ENOENT)
			break;
	}
	return NULL;
}

static void *alloc_often(void *arg)
{
	uint64_t *argument = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned long request = VGPU_IOC_BUFFER_ALLOC;

	(void)arg;
	((struct vgpu_ioc_buffer *)argument)->bytes = 4 * PAGE;
	mprotect(argument, PAGE, PROT_READ);
	if (ioctl(shared_fd, request, argument) && errno == ENOTTY) {
		mprotect(argument, PAGE, PROT_READ | PROT_WRITE);
		argument[0] = 4 * PAGE; /* where drivers before VGPU_IOC_CHANNEL have it */
		argument[1] = 0;
		mprotect(argument, PAGE, PROT_READ);
		request = OLD_IOC_BUFFER_ALLOC;
	}
	while (!stop && ioctl(shared_fd, request, argument) && !is_over(errno))
		;
	return NULL;
}

/* Read, but not written: whoever gives such a page back after a device had it has to lock it, if he has not marked it before. */
static void pin_memory(void)
{
	struct vgpu_ioc_buffer buffer = { .bytes = PINNED };
	char *at;

	pinned_memory = memfd_create("pinned", MFD_CLOEXEC);
	if (ftruncate(pinned_memory, PINNED))
		tap_bail("memfd: %s", strerror(errno));
	at = mmap(NULL, PINNED, PROT_READ | PROT_WRITE, MAP_SHARED, pinned_memory, 0);
	for (size_t i = 0; at != MAP_FAILED && i < PINNED; i += PAGE)
		(void)*(volatile char *)(at + i);
	buffer.address = (uintptr_t)at;
	if (at == MAP_FAILED || ioctl(shared_fd, VGPU_IOC_BUFFER_PIN, &buffer))
		tap_bail("a buffer of shared memory: %s", strerror(errno));
}

/* The kernel locks the page while it copies it for a private mapping that is written to. */
static void *copy_pinned_often(void *arg)
{
	volatile char *at = mmap(NULL, PINNED, PROT_READ | PROT_WRITE, MAP_PRIVATE, pinned_memory, 0);

	(void)arg;
	while (!stop) {
		for (size_t i = 0; i < PINNED; i += PAGE)
			at[i] = 1;
		madvise((void *)at, PINNED, MADV_DONTNEED);
	}
	return NULL;
}

static void *close_at_the_end(void *arg)
{
	int fd = device_open(), error;

	(void)arg;
	while (!stop && fd >= 0 && (!(error = device_kick(fd)) || error == EIO))
		sleep_ms(1);
	if (fd >= 0)
		close(fd);
	return NULL;
}

static const struct {
	const char *name;
	void *(*run)(void *arg);
	void (*prepare)(void);
} kinds[] = {
	{ .name = "open", .run = open_often },
	{ .name = "alloc", .run = alloc_often },
	{ .name = "pin", .run = copy_pinned_often, .prepare = pin_memory },
	{ .name = "close", .run = close_at_the_end },
};

static int be_idle(size_t kind, int count, int ready)
{
	struct sched_param idle = { 0 };
	pthread_t threads[MOST_THREADS];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	shared_fd = device_open_or_bail();
	if (kinds[kind].prepare)
		kinds[kind].prepare();
	close(ready);
	pthread_setschedparam(pthread_self(), SCHED_IDLE, &idle);
	for (int i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, kinds[kind].run, NULL);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

/* Short sleeps and short work: idle threads get their processors, and lose them anywhere. `always`: they lose them, and hardly get them back. */
static void hog(int cpu, unsigned int seed, bool always)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin_to_cpu(cpu);
	for (;;) {
		struct timespec pause = { 0, (long)(rand_r(&seed) % 200000) };

		if (!always)
			nanosleep(&pause, NULL);
		for (volatile unsigned int i = rand_r(&seed) % 20000; i > 0; i--)
			;
	}
}

int main(int argc, char **argv)
{
	int processes = argc > 2 ? atoi(argv[2]) : 1, threads = argc > 3 ? atoi(argv[3]) : 1, hogs = argc > 4 ? atoi(argv[4]) : 0;
	double end = now_s() + SECONDS;
	bool always = argc > 5;
	int left = processes, ready[2];
	char none;

	if (pipe2(ready, O_CLOEXEC))
		tap_bail("pipe: %s", strerror(errno));
	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++)
		for (int i = 0; argc > 1 && !strcmp(argv[1], kinds[kind].name) && i < processes; i++)
			if (!fork())
				return be_idle(kind, threads > MOST_THREADS ? MOST_THREADS : threads, ready[1]);
	close(ready[1]);
	/* Its end: each process has what it needs. */
	if (read(ready[0], &none, 1))
		tap_bail("pipe: %s", strerror(errno));
	if (always)
		sleep_ms(1000); /* by then most threads have been anywhere; nothing depends on it */
	for (int i = 0; i < hogs; i++)
		if (!fork())
			hog(i % (int)sysconf(_SC_NPROCESSORS_ONLN), (unsigned int)i + 1, always);
	puts("ready");
	fflush(stdout);
	while (left > 0 && now_s() < end) {
		if (waitpid(-1, NULL, WNOHANG) > 0)
			left--;
		else
			sleep_ms(10);
	}
	printf("left %d\n", left);
	fflush(stdout);
	signal(SIGTERM, SIG_IGN);
	kill(0, SIGKILL);
	return 0;
}
