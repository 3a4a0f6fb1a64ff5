// SPDX-License-Identifier: GPL-2.0
/*
 * One user has 128 threads of the lowest priority that allocate buffers, and as many busy processes that keep them off their processor: another
 * user on the other processor allocates, frees and opens about as fast as alone.
 *
 * usage: neighbours [seconds]    as root
 */
#include "device.h"

#include <sys/prctl.h>

#define ATTACKER 1000
#define VICTIM 1001
#define PROCESSES 4
#define THREADS 32
#define BUSY 16
#define BYTES (8 * MIB)
#define MOST_CALLS 4000
#define MOST_SLOWDOWN 10.0
#define SLACK_MS 40.0 /* the emulated processors share the machine with others */

struct figures {
	double p99_ms, worst_ms;
	size_t calls;
};

static int attack_fd;

static void *allocate(void *arg)
{
	struct sched_param lowest = { 0 };
	struct vgpu_ioc_buffer buffer;

	(void)arg;
	pthread_setschedparam(pthread_self(), SCHED_IDLE, &lowest);
	for (;;)
		if (!buffer_alloc(attack_fd, BYTES, &buffer))
			buffer_free(attack_fd, buffer.buffer);
	return NULL;
}

static int attack(void *arg)
{
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin_to_cpu(0);
	attack_fd = device_open_or_bail();
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread, NULL, allocate, NULL);
	if (write(*(int *)arg, "", 1) != 1)
		return 1;
	pause();
	return 0;
}

static int be_busy(void *arg)
{
	(void)arg;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin_to_cpu(0);
	while (getppid() != 1)
		;
	return 0;
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* What a user who asks for little waits for it. */
static int measure(void *arg)
{
	struct figures *figures = arg;
	double values[MOST_CALLS], end = now_s() + figures->worst_ms;
	int fd;

	pin_to_cpu(1);
	figures->calls = 0;
	fd = device_open_or_bail();
	while (now_s() < end && figures->calls < MOST_CALLS) {
		struct vgpu_ioc_buffer buffer;
		double start = now_s();
		int error = buffer_alloc(fd, PAGE, &buffer);

		values[figures->calls++] = (now_s() - start) * 1e3;
		if (error || buffer_free(fd, buffer.buffer))
			return 1;
		sleep_ms(2);
	}
	qsort(values, figures->calls, sizeof(values[0]), by_size);
	figures->p99_ms = values[figures->calls * 99 / 100];
	figures->worst_ms = values[figures->calls - 1];
	return 0;
}

static struct figures *figures_of(double seconds, const char *when)
{
	struct figures *figures = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;

	figures->worst_ms = seconds;
	status = child_status(spawn_as(VICTIM, measure, figures), seconds * 10 + 30);
	if (tap_ok(!status, "%s all calls come back and succeed (%d)", when, status))
		tap_note("%s: %zu allocations, 99 of 100 within %.2f ms, the longest %.2f ms", when, figures->calls, figures->p99_ms,
			 figures->worst_ms);
	else
		figures->p99_ms = 1e9;
	return figures;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 8;
	struct figures *alone, *beside;
	pid_t attackers[PROCESSES + BUSY];
	int ready[2];
	char byte;

	tap_begin();
	if (pipe(ready))
		tap_bail("pipe: %s", strerror(errno));
	alone = figures_of(seconds, "alone");
	for (int i = 0; i < PROCESSES; i++)
		attackers[i] = spawn_as(ATTACKER, attack, &ready[1]);
	for (int i = 0; i < PROCESSES; i++)
		if (read(ready[0], &byte, 1) != 1)
			tap_bail("the other user's programs do not begin");
	for (int i = 0; i < BUSY; i++)
		attackers[PROCESSES + i] = spawn_as(ATTACKER, be_busy, NULL);
	beside = figures_of(seconds, "beside them");
	for (int i = 0; i < PROCESSES + BUSY; i++)
		kill(attackers[i], SIGKILL);
	tap_ok(beside->p99_ms <= MOST_SLOWDOWN * alone->p99_ms + SLACK_MS, "99 of 100 take %.2f ms, alone %.2f ms", beside->p99_ms,
	       alone->p99_ms);
	tap_end();
}
