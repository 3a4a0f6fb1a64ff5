// SPDX-License-Identifier: GPL-2.0
/* What calls of the guest driver cost, each the median of many: "figure value" lines. Speaks every ABI of the driver. */
#include "ring.h"

#define SAMPLES 600
#define CHANNELS 32
#define BUFFERS 15
#define BUFFER_BYTES (64 * MIB)
#define PUTS 200 /* less than what the ring holds */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), by_value);
	return values[count / 2];
}

static void or_bail(int error, const char *what)
{
	if (error)
		tap_bail("%s: %s", what, strerror(error));
}

static double open_us(void)
{
	double values[SAMPLES / 4];

	for (size_t i = 0; i < SAMPLES / 4; i++) {
		double start = now_s();
		int fd = device_open();

		values[i] = (now_s() - start) * 1e6;
		if (fd < 0)
			or_bail(errno, "open");
		close(fd);
		sleep_ms(20); /* the host takes the channel down */
	}
	return median(values, SAMPLES / 4);
}

/* The doorbell's call, and the time until the program is awake again. */
static void operation_us(struct ring *ring, double *doorbell, double *round_trip)
{
	double rung[SAMPLES], done[SAMPLES];

	for (size_t i = 0; i < SAMPLES; i++) {
		struct vgpu_cqe completion;
		double start = now_s();

		ring_put(ring, (struct vgpu_sqe){ .op = VGPU_OP_NOP });
		or_bail(device_kick(ring->fd), "doorbell");
		rung[i] = (now_s() - start) * 1e6;
		or_bail(ring_take(ring, &completion, 30), "completion");
		done[i] = (now_s() - start) * 1e6;
		sleep_ms(1);
	}
	*doorbell = median(rung, SAMPLES);
	*round_trip = median(done, SAMPLES);
}

/* An operation that joins others in the ring, without a doorbell. */
static double put_us(struct ring *ring)
{
	double values[SAMPLES / 20];

	for (size_t i = 0; i < SAMPLES / 20; i++) {
		struct vgpu_cqe completion;
		double start = now_s();

		for (size_t n = 0; n < PUTS; n++)
			ring_put(ring, (struct vgpu_sqe){ .op = VGPU_OP_NOP });
		values[i] = (now_s() - start) * 1e6 / PUTS;
		or_bail(device_kick(ring->fd), "doorbell");
		for (size_t n = 0; n < PUTS; n++)
			or_bail(ring_take(ring, &completion, 30), "completion");
	}
	return median(values, SAMPLES / 20);
}

/* A new buffer, mapped; every page is touched. */
static void *buffer_make(int fd, uint64_t bytes, struct vgpu_ioc_buffer *buffer)
{
	char *at;

	or_bail(buffer_alloc(fd, bytes, buffer), "buffer");
	at = buffer_map(fd, buffer, bytes);
	or_bail(at == MAP_FAILED ? errno : 0, "mmap");
	for (size_t i = 0; i < bytes; i += PAGE)
		at[i] = 1;
	return at;
}

static double buffer_us(int fd)
{
	double values[BUFFERS];

	for (size_t i = 0; i < BUFFERS; i++) {
		struct vgpu_ioc_buffer buffer;
		double start = now_s();
		void *at = buffer_make(fd, BUFFER_BYTES, &buffer);

		munmap(at, BUFFER_BYTES);
		or_bail(buffer_free(fd, buffer.buffer), "free");
		values[i] = (now_s() - start) * 1e6;
	}
	return median(values, BUFFERS);
}

/* Drivers that can't pin had the program's memory copied into a buffer and back. */
static void register_by_copy(int fd, void *own)
{
	struct vgpu_ioc_buffer buffer;
	void *at = buffer_make(fd, BUFFER_BYTES, &buffer);

	memcpy(at, own, BUFFER_BYTES);
	memcpy(own, at, BUFFER_BYTES);
	munmap(at, BUFFER_BYTES);
	or_bail(buffer_free(fd, buffer.buffer), "free");
}

static double register_us(int fd)
{
	void *own = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	double values[BUFFERS];

	or_bail(own == MAP_FAILED ? errno : 0, "mmap");
	for (size_t i = 0; i < BUFFERS; i++) {
		struct vgpu_ioc_buffer buffer = { .address = (uintptr_t)own, .bytes = BUFFER_BYTES };
		double start = now_s();

		if (!ioctl(fd, VGPU_IOC_BUFFER_PIN, &buffer))
			or_bail(buffer_free(fd, buffer.buffer), "free");
		else if (errno == ENOTTY)
			register_by_copy(fd, own);
		else
			or_bail(errno, "pin");
		values[i] = (now_s() - start) * 1e6;
	}
	munmap(own, BUFFER_BYTES);
	return median(values, BUFFERS);
}

static double channel_kib(void)
{
	struct ring rings[CHANNELS];
	int64_t before, after;

	sleep_ms(500);
	before = memory_available();
	for (size_t i = 0; i < CHANNELS; i++)
		or_bail(ring_open(&rings[i]), "channels");
	sleep_ms(500);
	after = memory_available();
	for (size_t i = 0; i < CHANNELS; i++)
		ring_close(&rings[i]);
	return (double)(before - after) / 1024 / CHANNELS;
}

int main(void)
{
	double doorbell, round_trip;
	struct ring ring;

	/* First: memory that others have just given back would count. */
	printf("memory per channel (KiB)\t%.1f\n", channel_kib());
	printf("open (us)\t%.2f\n", open_us());
	or_bail(ring_open(&ring), "channel");
	operation_us(&ring, &doorbell, &round_trip);
	printf("launch, with doorbell (us)\t%.2f\n", doorbell);
	printf("launch, wait, wake-up (us)\t%.2f\n", round_trip);
	printf("launch, no doorbell (us)\t%.4f\n", put_us(&ring));
	printf("64 MiB buffer, touched, freed (us)\t%.1f\n", buffer_us(ring.fd));
	printf("64 MiB registered, unregistered (us)\t%.1f\n", register_us(ring.fd));
	ring_close(&ring);
	return 0;
}
