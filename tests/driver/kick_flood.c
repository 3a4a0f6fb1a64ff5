// SPDX-License-Identifier: GPL-2.0
/* A program that rings its doorbell in a loop does not slow another one's calls. */
#include "ring.h"

#define SECONDS 3.0
/* Figures with the flood, in multiples of those without; the guest's processors are shared, so some slowdown is its right. */
#define MOST_SLOWDOWN 20.0
#define SLACK_MS 5.0

static int flood(void *arg)
{
	int fd = device_open_soon();

	(void)arg;
	while (!ioctl(fd, VGPU_IOC_KICK))
		;
	return errno;
}

static int ask_info(struct ring *ring)
{
	struct vgpu_ioc_info info;

	return ioctl(ring->fd, VGPU_IOC_INFO, &info) ? errno : 0;
}

static int run_nop(struct ring *ring)
{
	return ring_nop(ring, 30);
}

static int open_another(struct ring *ring)
{
	int fd = device_open_soon();

	(void)ring;
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static const struct {
	const char *what;
	int (*call)(struct ring *ring);
} calls[] = {
	{ "INFO", ask_info },
	{ "an operation and its wake-up", run_nop },
	{ "open and close", open_another },
};
#define CALLS (sizeof(calls) / sizeof(calls[0]))

/* The average of one call, a millisecond apart. */
static double measure_ms(struct ring *ring, int (*call)(struct ring *ring))
{
	double end = now_s() + SECONDS, spent = 0;
	unsigned int count = 0;

	while (now_s() < end) {
		double start = now_s();
		int error = call(ring);

		if (error)
			tap_bail("a call fails: %s", strerror(error));
		spent += now_s() - start;
		count++;
		sleep_ms(1);
	}
	return spent * 1e3 / count;
}

int main(void)
{
	double quiet[CALLS];
	struct ring ring;
	pid_t flooder;
	int error;

	tap_begin();
	error = ring_open(&ring);
	if (error)
		tap_bail("no channel: %s", strerror(error));
	for (size_t i = 0; i < CALLS; i++)
		quiet[i] = measure_ms(&ring, calls[i].call);
	flooder = spawn_as(0, flood, NULL);
	sleep_ms(500);
	for (size_t i = 0; i < CALLS; i++) {
		double flooded = measure_ms(&ring, calls[i].call);

		tap_ok(flooded <= quiet[i] * MOST_SLOWDOWN + SLACK_MS, "%s: %.3f ms, %.3f ms while another program floods",
		       calls[i].what, quiet[i], flooded);
	}
	kill(flooder, SIGKILL);
	waitpid(flooder, NULL, 0);
	tap_ok(!ring_nop(&ring, 30), "the channel works afterwards");
	tap_end();
}
