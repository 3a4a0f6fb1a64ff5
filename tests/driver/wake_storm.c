// SPDX-License-Identifier: GPL-2.0
/*
 * A hundred thousand epoll entries on one channel: the interrupts of another channel do not wake them, and a bystander that
 * sleeps a millisecond is not kept off its processor while they are woken.
 */
#include "ring.h"

#include <sys/epoll.h>

#define DUPLICATES 400
#define ENTRIES 100000
#define WINDOWS 9
#define WINDOW_S 0.5
#define MOST_SLOWDOWN 4.0
#define SLACK_MS 20.0

/* Registers up to ENTRIES epoll entries on `fd`; how many there are. */
static long watch(int fd, int *one_epoll)
{
	int fds[DUPLICATES], epoll = -1;
	long count = 0, per_epoll = 0;

	for (; per_epoll < DUPLICATES; per_epoll++)
		if ((fds[per_epoll] = dup(fd)) < 0)
			break;
	while (count < ENTRIES && (epoll = epoll_create1(0)) >= 0) {
		*one_epoll = epoll;
		for (long i = 0; i < per_epoll; i++) {
			struct epoll_event event = { .events = EPOLLIN | EPOLLET };

			if (epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event))
				return count;
			count++;
		}
	}
	return count;
}

/* Sleeps on processor 0, a millisecond each; `worst_ms` is the longest since it was set to 0. */
struct bystander {
	volatile bool stop;
	volatile double worst_ms;
};

static void *sleep_often(void *arg)
{
	struct bystander *bystander = arg;

	pin_to_cpu(0);
	while (!bystander->stop) {
		double start = now_s(), ms;

		sleep_ms(1);
		ms = (now_s() - start) * 1e3;
		if (ms > bystander->worst_ms)
			bystander->worst_ms = ms;
	}
	return NULL;
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* What is usual for the longest sleep within half a second while the channel completes operations. */
static double worst_sleep_ms(struct ring *ring, unsigned int *operations)
{
	struct bystander bystander = { 0 };
	double worst[WINDOWS];
	pthread_t thread;

	pthread_create(&thread, NULL, sleep_often, &bystander);
	*operations = 0;
	for (int i = 0; i < WINDOWS; i++) {
		double end = now_s() + WINDOW_S;

		bystander.worst_ms = 0;
		do {
			int error = ring_nop(ring, 60);

			if (error)
				tap_bail("an operation: %s", strerror(error));
			++*operations;
			sleep_ms(5);
		} while (now_s() < end);
		worst[i] = bystander.worst_ms;
	}
	bystander.stop = true;
	pthread_join(thread, NULL);
	qsort(worst, WINDOWS, sizeof(worst[0]), by_size);
	return worst[WINDOWS / 2];
}

int main(void)
{
	struct rlimit limit = { .rlim_cur = 0 };
	struct epoll_event events[8];
	double quiet, stormy;
	unsigned int operations;
	struct ring ring;
	int watched, epoll = -1, ready;
	long entries;

	tap_begin();
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (ring_open(&ring))
		tap_bail("no channel: %s", strerror(errno));
	watched = device_open_or_bail();
	quiet = worst_sleep_ms(&ring, &operations);
	entries = watch(watched, &epoll);
	tap_note("%ld epoll entries on a channel that is idle, then: %s", entries, strerror(errno));
	while (epoll_wait(epoll, events, 8, 0) > 0)
		; /* what their registration said */
	stormy = worst_sleep_ms(&ring, &operations);
	tap_ok(operations >= WINDOWS, "another channel did %u operations", operations);
	tap_ok(stormy <= quiet * MOST_SLOWDOWN + SLACK_MS,
	       "a bystander's sleep of 1 ms takes up to %.1f ms, %.1f ms without the entries", stormy, quiet);
	ready = epoll_wait(epoll, events, 8, 0);
	tap_ok(ready == 0 || (events[0].events & EPOLLERR),
	       "the idle channel has no events: %d (0x%x)", ready, ready > 0 ? events[0].events : 0);
	tap_end();
}
