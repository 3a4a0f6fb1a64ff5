// SPDX-License-Identifier: GPL-2.0
/*
 * One thread allocates a buffer while another frees it by guessing its ID: BUFFER_ALLOC must not look at a buffer that others may
 * have freed already. A third thread takes the processor from the first one when its ioctl is about to end, and learns from
 * trial to trial when that is. Without KASAN, slub_debug=FZP makes memory that was freed show up as an ID that there is not;
 * preempt=full lets the first thread be preempted inside the driver.
 *
 * usage: buffer_race [seconds]
 */
#include "device.h"

#include <sys/eventfd.h>

#define ID_LIMIT (1u << 24) /* more than are allocated here */
#define BURST_S 0.02        /* for how long the allocating thread is kept from its processor: longer than BUFFER_FREE takes */

static int fd;
static int to_preempter, to_freer; /* eventfds */
static volatile bool finished;
static volatile uint32_t last_id;
static volatile unsigned long frees, overtaken;

/* The next IDs that a driver may choose: the lowest free one, or the one after the last. */
static bool free_guesses(void)
{
	for (uint32_t id = 1; id <= 4; id++)
		if (!buffer_free(fd, id))
			return true;
	for (uint32_t id = last_id + 1; id <= last_id + 4; id++)
		if (!buffer_free(fd, id))
			return true;
	return false;
}

static void *free_early(void *arg)
{
	uint64_t count;

	(void)arg;
	pin_to_cpu((int)sysconf(_SC_NPROCESSORS_ONLN) - 1);
	while (!eventfd_read(to_freer, &count)) {
		double end = now_s() + BURST_S;

		while (!finished && now_s() < end) {
			if (!free_guesses())
				continue;
			frees++;
			break;
		}
	}
	return NULL;
}

/* The delay goes up when it was too short and down when it was too long, so that it stays where the ioctl ends. */
static void *preempt(void *arg)
{
	double delay = 0.001;
	unsigned int seed = 1;
	uint64_t count;

	(void)arg;
	pin_to_cpu(0);
	while (!eventfd_read(to_preempter, &count)) {
		double jitter = 0.9 + 0.2 * (double)rand_r(&seed) / RAND_MAX, end;
		struct timespec pause = { 0, (long)(delay * jitter * 1e9) };

		nanosleep(&pause, NULL);
		if (finished) {
			delay *= 0.97;
			continue;
		}
		delay = delay < 0.2 ? delay * 1.03 : 0.001;
		overtaken++;
		eventfd_write(to_freer, 1);
		for (end = now_s() + BURST_S; now_s() < end;)
			;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	double end = now_s() + (argc > 1 ? atof(argv[1]) : 20);
	struct sched_param idle = { 0 };
	unsigned long allocs = 0;
	pthread_t freer, preempter;
	uint32_t wrong_id = 0;
	int error = 0;

	tap_begin();
	fd = device_open_or_bail();
	to_preempter = eventfd(0, EFD_CLOEXEC);
	to_freer = eventfd(0, EFD_CLOEXEC);
	pthread_create(&freer, NULL, free_early, NULL);
	pthread_create(&preempter, NULL, preempt, NULL);
	pin_to_cpu(0);
	pthread_setschedparam(pthread_self(), SCHED_IDLE, &idle);
	while (now_s() < end && !wrong_id) {
		struct vgpu_ioc_buffer buffer;

		finished = false;
		eventfd_write(to_preempter, 1);
		error = buffer_alloc(fd, PAGE, &buffer);
		finished = true;
		if (error == EIO || error == ENODEV)
			break;
		if (error)
			continue;
		allocs++;
		if (!buffer.buffer || buffer.buffer > ID_LIMIT) {
			wrong_id = buffer.buffer;
			break;
		}
		last_id = buffer.buffer;
		buffer_free(fd, buffer.buffer);
	}
	/* The other threads are not joined: one that waits for a buffer which is gone may take long. */
	tap_note("%lu buffers allocated, %lu times interrupted, %lu freed by the other thread", allocs, overtaken, frees);
	tap_ok(error != EIO && error != ENODEV, "the channel lives: %s", strerror(error));
	tap_ok(allocs > 20 && overtaken > 5, "the threads got somewhere");
	tap_ok(!wrong_id, "every buffer has an ID that there is (the wrong one: 0x%08x)", wrong_id);
	tap_end();
}
