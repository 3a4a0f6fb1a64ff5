// SPDX-License-Identifier: GPL-2.0
/* One user takes what can be had; another one still gets a channel and memory. Run by root, which becomes both users. */
#include "device.h"

#define GREEDY 1000
#define MODEST 1001
#define PIECE (4 * MIB)
#define MODEST_BYTES (16 * MIB)
/* Numbers of users that one user has in his user namespaces. */
#define FIRST_NUMBER 100000
#define NUMBERS 30000
/* So few that hardly anybody comes between, so often that nobody does once. */
#define OPENS 10
#define ROUNDS 300

static int to_parent[2], from_parent[2];

static void say_ready(void)
{
	char byte = 0;

	if (write(to_parent[1], &byte, 1) != 1 || read(from_parent[0], &byte, 1) != 1)
		_exit(121);
}

static int take_channels(void *arg)
{
	unsigned int *taken = arg;

	while (*taken < 4096 && device_open() >= 0)
		++*taken;
	say_ready();
	return 0;
}

static int take_memory(void *arg)
{
	unsigned int *pieces = arg;
	struct vgpu_ioc_buffer buffer;

	for (int i = 0; i < 64; i++) {
		int fd = i ? device_open() : device_open_soon();

		if (fd < 0)
			break;
		while (!buffer_alloc(fd, PIECE, &buffer))
			++*pieces;
	}
	say_ready();
	return 0;
}

static int be_modest(void *arg)
{
	struct vgpu_ioc_buffer buffer;
	int fd = device_open_soon();

	(void)arg;
	return fd < 0 ? errno : buffer_alloc(fd, MODEST_BYTES, &buffer);
}

/* While GREEDY holds what `take` took: does MODEST get a channel and 16 MiB? Returns what was taken. */
static unsigned int test_share(int (*take)(void *arg), const char *what)
{
	unsigned int *taken = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t greedy = spawn_as(GREEDY, take, taken), modest;
	char byte = 0;
	int status;

	if (read(to_parent[0], &byte, 1) != 1)
		tap_bail("the greedy user said nothing");
	modest = spawn_as(MODEST, be_modest, NULL);
	status = child_status(modest, 60);
	tap_ok(status == 0, "one user has %u %s: another gets a channel and 16 MiB: %s", *taken, what,
	       status < 0 ? "it hangs" : strerror(status));
	kill(modest, SIGKILL);
	if (write(from_parent[1], &byte, 1) != 1)
		tap_bail("write");
	child_status(greedy, 60);
	return *taken;
}

/* What has been taken comes back when its owner is gone. */
static void test_returns(void)
{
	double end = now_s() + 30;
	int status;

	do {
		status = child_status(spawn_as(GREEDY, be_modest, NULL), 30);
	} while (status && now_s() < end);
	tap_ok(status == 0, "the first user may open again once its programs have ended: %s", strerror(status));
}

/* The shortest time of some for so many opens. */
static double open_time(void)
{
	double best = 1e9;

	for (int round = 0; round < ROUNDS; round++) {
		double began = now_s();

		for (int i = 0; i < OPENS; i++)
			close(open(device_path(), O_RDWR));
		if (now_s() - began < best)
			best = now_s() - began;
	}
	return best;
}

static int be_many(void *arg)
{
	struct rlimit files = { NUMBERS + 64, NUMBERS + 64 };
	int opened = 0;

	(void)arg;
	if (setrlimit(RLIMIT_NOFILE, &files))
		return 119;
	while (opened < NUMBERS && !setresuid((uid_t)(FIRST_NUMBER + opened), 0, 0) && open(device_path(), O_RDWR) >= 0)
		opened++;
	printf("# %d users have the device open\n", opened);
	fflush(stdout);
	say_ready();
	return 0;
}

/* One user who is many does not delay another one's open. */
static void test_many(void)
{
	double alone = open_time(), beside;
	pid_t many = spawn_as(0, be_many, NULL);
	char byte = 0;

	if (read(to_parent[0], &byte, 1) != 1)
		tap_bail("the many users said nothing");
	beside = open_time();
	tap_ok(beside < 2 * alone, "an open takes %.2f times as long beside %d other users", beside / alone, NUMBERS);
	if (write(from_parent[1], &byte, 1) != 1)
		tap_bail("write");
	child_status(many, 60);
}

int main(void)
{
	unsigned int pieces;

	tap_begin();
	if (geteuid())
		tap_bail("root only");
	if (pipe(to_parent) || pipe(from_parent))
		tap_bail("pipe");
	test_many();
	test_share(take_channels, "channels");
	test_returns();
	pieces = test_share(take_memory, "pieces of 4 MiB");
	tap_ok((int64_t)(pieces * PIECE) < meminfo("MemTotal") * 2 / 5, "one user pins less than 40 %% of memory: %lu of %lld MiB",
	       pieces * PIECE / MIB, (long long)meminfo("MemTotal") / (long long)MIB);
	test_returns();
	tap_end();
}
