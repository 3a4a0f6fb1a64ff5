// SPDX-License-Identifier: GPL-2.0
/*
 * Two users do at once whatever the driver's file lets them do, in any order, with good and bad arguments: the grammar is the
 * table `ops`. Each user has several processes of several threads, which share descriptors, buffers and mappings and pass
 * descriptors to the other user; every process is killed after a while and a new one follows. All choices come from the seed;
 * what threads do at once is up to the scheduler. With fault injection in the kernel, calls are made to fail inside (fail-nth).
 * Run by root.
 *
 * usage: fuzz --seconds N --seed S [--processes N] [--threads N]
 */
#include "fuzz.h"

#include <getopt.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define MAX_PROCESSES 16

struct fuzz_counters *fuzz_counters;
int fuzz_sockets[2][2]; /* of each user: where descriptors come from the other one */

static volatile sig_atomic_t ended;

static void on_end(int signum)
{
	(void)signum;
	ended = 1;
}

/* One life of one process. */
static int live(unsigned int user, uint64_t seed, unsigned int threads)
{
	static struct fuzz_world world;
	uint64_t state = seed;
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 1); /* its own files in /proc are its own again */
	world.user = user;
	world.seed = seed;
	fuzz_catch_faults();
	for (unsigned int i = 1; i < threads; i++)
		pthread_create(&thread, NULL, fuzz_thread, &world);
	alarm(20); /* a thread may wait for the host for ten seconds */
	sleep_ms((long)(100 + fuzz_random(&state) % 6000));
	if (fuzz_random(&state) % 2)
		_exit(0);
	kill(getpid(), SIGKILL);
	return 0;
}

static pid_t start(unsigned int number, uint64_t seed, unsigned int generation, unsigned int threads)
{
	unsigned int user = number % 2;
	pid_t pid = fork();

	if (pid)
		return pid;
	if (setgid(FUZZ_FIRST_UID + user) || setuid(FUZZ_FIRST_UID + user))
		_exit(120);
	_exit(live(user, seed ^ ((uint64_t)generation << 32 | number) * 0x9e3779b97f4a7c15ull, threads));
}

/* Descriptors on their way from one user to the other would keep the channels of processes that are long gone. */
static void drop_descriptors(void)
{
	char bytes[64];

	for (int i = 0; i < 2; i++)
		while (recv(fuzz_sockets[i][1], bytes, sizeof(bytes), MSG_DONTWAIT) >= 0)
			;
}

static void print_counters(void)
{
	for (unsigned int i = 0; i < fuzz_op_count; i++)
		printf("# %-24s %9lu calls, %9lu succeeded\n", fuzz_ops[i].name, fuzz_counters[i].calls, fuzz_counters[i].good);
}

/* Every call of the grammar is reached, and those that can succeed do. */
static void check_counters(void)
{
	unsigned int never = 0;

	for (unsigned int i = 0; i < fuzz_op_count; i++)
		if (!fuzz_counters[i].calls || (fuzz_ops[i].can_succeed && !fuzz_counters[i].good)) {
			never++;
			tap_note("never %s: %s", fuzz_counters[i].calls ? "succeeded" : "called", fuzz_ops[i].name);
		}
	tap_ok(!never, "every call was made, and each that can succeed did (%u not)", never);
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "seconds", 1, NULL, 's' }, { "seed", 1, NULL, 'S' },
						 { "processes", 1, NULL, 'p' }, { "threads", 1, NULL, 't' }, { 0 } };
	unsigned int processes = 4, threads = 4, generation = 0;
	pid_t pids[MAX_PROCESSES] = { 0 };
	double seconds = 10, end, next_line;
	uint64_t seed = 1;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 's': seconds = atof(optarg); break;
		case 'S': seed = strtoull(optarg, NULL, 0); break;
		case 'p': processes = (unsigned int)atoi(optarg); break;
		case 't': threads = (unsigned int)atoi(optarg); break;
		default: return 2;
		}
	}
	tap_begin();
	if (geteuid() || !processes || processes > MAX_PROCESSES || !threads)
		tap_bail("root only; 1 to %d processes", MAX_PROCESSES);
	tap_note("seed %llu, %u processes of %u threads, %.0f s", (unsigned long long)seed, processes, threads, seconds);
	fuzz_counters = mmap(NULL, fuzz_op_count * sizeof(*fuzz_counters), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 2; i++)
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fuzz_sockets[i]))
			tap_bail("socketpair");
	signal(SIGTERM, on_end);
	fflush(stdout);
	end = now_s() + seconds;
	next_line = now_s() + 30;
	while (now_s() < end && !ended) {
		for (unsigned int i = 0; i < processes; i++) {
			int status;

			if (pids[i] && waitpid(pids[i], &status, WNOHANG) != pids[i])
				continue;
			drop_descriptors();
			pids[i] = start(i, seed, generation++, threads);
		}
		if (now_s() > next_line) {
			next_line += 30;
			tap_note("%u lives", generation);
		}
		sleep_ms(20);
	}
	for (unsigned int i = 0; i < processes; i++)
		if (pids[i])
			kill(pids[i], SIGKILL);
	for (unsigned int i = 0; i < processes; i++)
		tap_ok(!pids[i] || child_status(pids[i], 60) >= 0, "process %u ends when it is killed", i);
	tap_note("%u lives", generation);
	print_counters();
	if (seconds >= 5)
		check_counters();
	tap_end();
}
