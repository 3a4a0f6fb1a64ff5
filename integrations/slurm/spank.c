// SPDX-License-Identifier: Apache-2.0
/*
 * SPANK plugin: --vgpu-weight, --vgpu-profile, --vgpu-vram and --vgpu-slice for srun, sbatch and salloc, and the environment
 * with which a plain CUDA program of a job's task runs on the VFs that the prolog made (README.md beside this file).
 *
 * The options travel to prologs as SPANK_VGPU_WEIGHT and so on. They come from users: the prolog checks them again.
 *
 * Source: slurm/spank.h and spank(7).
 */
#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/spank.h>

SPANK_PLUGIN(vgpud, 1)

enum { OPTIONS = 4, VALUE_BYTES = 64, LIST_BYTES = 8192, MOST_VFS = 64, NODE_BYTES = 256 };

static const char *runtime_dir = "/run/vgpud";
static const char *library_dir = VGPUD_LIBRARY_DIR;
static const char *spool_dir = "/var/spool/vgpud-slurm";
static const char *prolog = "/usr/libexec/vgpud/slurm/prolog";
static int mixed; /* nodes have GPUs of other types, too */
static char values[OPTIONS][VALUE_BYTES];

static int take_option(int option, const char *value, int remote);

static struct spank_option options[OPTIONS] = {
	{"vgpu-weight", "N", "[vgpud] weight of the job's VFs, 1 to 10000; a VF without one has 100", 1, 0, take_option},
	{"vgpu-profile", "NAME", "[vgpud] size of the job's VFs, like 1/4 (vgpuctl profiles)", 1, 1, take_option},
	{"vgpu-vram", "SIZE", "[vgpud] memory of each of the job's VFs, like 2GiB", 1, 2, take_option},
	{"vgpu-slice", "TIME", "[vgpud] fixed time slice of the job's VFs, like 2ms", 1, 3, take_option},
};

static const char *const control_names[OPTIONS] = {"VGPU_WEIGHT", "VGPU_PROFILE", "VGPU_VRAM", "VGPU_SLICE"};

/* What vgpuctl may be given for any of these; no more than that. */
static int is_plain(const char *value)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./_-";
	size_t length = strlen(value);

	return length > 0 && length < VALUE_BYTES && value[0] != '-' && strspn(value, allowed) == length;
}

static int take_option(int option, const char *value, int remote)
{
	if (value == NULL || !is_plain(value)) {
		slurm_error("vgpud: --%s: '%s' is no value for it: letters, digits and . / _ -", options[option].name,
			    value == NULL ? "" : value);
		return -1;
	}
	(void)remote;
	snprintf(values[option], VALUE_BYTES, "%s", value);
	return 0;
}

/* plugstack.conf: required vgpud_spank.so runtime=/run/vgpud lib=/usr/lib/x86_64-linux-gnu/vgpud spool=/var/spool/vgpud-slurm
 * prolog=/usr/libexec/vgpud/slurm/prolog; %n is the node's name. */
int slurm_spank_init(spank_t spank, int argc, char *argv[])
{
	for (int i = 0; i < argc; i++) {
		if (strncmp(argv[i], "runtime=", 8) == 0) {
			runtime_dir = argv[i] + 8;
		} else if (strncmp(argv[i], "lib=", 4) == 0) {
			library_dir = argv[i] + 4;
		} else if (strncmp(argv[i], "spool=", 6) == 0) {
			spool_dir = argv[i] + 6;
		} else if (strncmp(argv[i], "prolog=", 7) == 0) {
			prolog = argv[i] + 7;
		} else if (strcmp(argv[i], "mixed") == 0) {
			mixed = 1;
		} else {
			slurm_error("vgpud: plugstack.conf: '%s' is none of runtime=, lib=, spool=DIRECTORY, prolog=FILE and mixed", argv[i]);
			return -1;
		}
	}
	switch (spank_context()) {
	case S_CTX_LOCAL:
	case S_CTX_ALLOCATOR:
	case S_CTX_REMOTE:
		for (int i = 0; i < OPTIONS; i++)
			if (spank_option_register(spank, &options[i]) != ESPANK_SUCCESS)
				return -1;
		return 0;
	default:
		return 0;
	}
}

/* In slurmstepd or a task: the task's environment is not there yet in the former. 0, or -1. */
static int node_name(spank_t spank, char *out, int bytes)
{
	const char *own = getenv("SLURMD_NODENAME");

	if (spank_getenv(spank, "SLURMD_NODENAME", out, bytes) == ESPANK_SUCCESS)
		return 0;
	return own != NULL && snprintf(out, (size_t)bytes, "%s", own) < bytes ? 0 : -1;
}

/* `out`: `pattern` with this node's name for %n. 0, or -1 when it is too long. */
static int node_dir(spank_t spank, const char *pattern, char *out, size_t bytes)
{
	char node[NODE_BYTES] = "";
	const char *mark = strstr(pattern, "%n");
	int length;

	if (mark == NULL) {
		length = snprintf(out, bytes, "%s", pattern);
	} else {
		if (node_name(spank, node, sizeof(node)) != 0)
			return -1;
		length = snprintf(out, bytes, "%.*s%s%s", (int)(mark - pattern), pattern, node, mark + 2);
	}
	return length < 0 || (size_t)length >= bytes ? -1 : 0;
}

/* Whether the job's last prolog or epilog on this node was a prolog, and has ended well (common.sh). */
static int is_made(spank_t spank, uint32_t job)
{
	char dir[PATH_MAX / 2], path[PATH_MAX], word[8] = "";
	FILE *file;

	if (node_dir(spank, spool_dir, dir, sizeof(dir)) != 0)
		return 0;
	snprintf(path, sizeof(path), "%s/%u.run", dir, job);
	file = fopen(path, "re");
	if (file == NULL)
		return 0;
	if (fgets(word, sizeof(word), file) == NULL)
		word[0] = '\0';
	fclose(file);
	return strncmp(word, "made ", 5) == 0;
}

/* Runs the prolog for a step of the job, with what slurmd would tell it; which VFs it asks slurmctld. Returns its exit status, or -1. */
static int run_prolog(spank_t spank, uint32_t job, uid_t user)
{
	char words[OPTIONS + 4][VALUE_BYTES + NODE_BYTES], conf[PATH_MAX + 16];
	char *argv[] = {(char *)prolog, NULL}, *envp[OPTIONS + 6];
	char node[NODE_BYTES] = "";
	int used = 0, status = 0;
	pid_t pid;

	if (node_name(spank, node, sizeof(node)) != 0)
		return -1;
	snprintf(words[0], sizeof(words[0]), "SLURM_JOB_ID=%u", job);
	snprintf(words[1], sizeof(words[1]), "SLURM_JOB_UID=%u", (unsigned int)user);
	snprintf(words[2], sizeof(words[2]), "SLURMD_NODENAME=%s", node);
	snprintf(words[3], sizeof(words[3]), "PATH=/usr/sbin:/usr/bin:/sbin:/bin");
	for (; used < 4; used++)
		envp[used] = words[used];
	for (int i = 0; i < OPTIONS; i++) {
		if (values[i][0] == '\0')
			continue;
		snprintf(words[used], sizeof(words[used]), "SPANK_%s=%s", control_names[i], values[i]);
		envp[used] = words[used];
		used++;
	}
	if (getenv("SLURM_CONF") != NULL) {
		snprintf(conf, sizeof(conf), "SLURM_CONF=%s", getenv("SLURM_CONF"));
		envp[used++] = conf;
	}
	envp[used] = NULL;
	if (posix_spawn(&pid, prolog, NULL, NULL, argv, envp) != 0)
		return -1;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/*
 * In slurmstepd, as root, before its tasks. slurmd runs no prolog for a job that it has seen not long ago, and a slurmctld that was killed
 * starts jobs again at once: whose VFs an epilog has ended has them made here.
 */
static void make_up_for_prolog(spank_t spank)
{
	uint32_t job = 0, step = 0;
	uid_t user = 0;

	if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS || spank_get_item(spank, S_JOB_STEPID, &step) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_UID, &user) != ESPANK_SUCCESS || step == SLURM_EXTERN_CONT)
		return;
	if (is_made(spank, job) || access(prolog, X_OK) != 0)
		return;
	slurm_info("vgpud: job %u begins without its prolog: it is run now", job);
	if (run_prolog(spank, job, user) != 0)
		slurm_error("vgpud: job %u: its prolog %s failed", job, prolog);
}

/* Where the job is asked for: what its prologs will be told. */
int slurm_spank_init_post_opt(spank_t spank, int argc, char *argv[])
{
	(void)argc;
	(void)argv;
	if (spank_context() == S_CTX_REMOTE)
		make_up_for_prolog(spank);
	if (spank_context() != S_CTX_LOCAL && spank_context() != S_CTX_ALLOCATOR)
		return 0;
	for (int i = 0; i < OPTIONS; i++) {
		if (values[i][0] == '\0')
			continue;
		if (spank_job_control_setenv(spank, control_names[i], values[i], 1) != ESPANK_SUCCESS) {
			slurm_error("vgpud: --%s could not be passed on", options[i].name);
			return -1;
		}
	}
	return 0;
}

/* Adds a path to a list with `between` between. 0, or -1 when there is no room. */
static int add_path(char *list, size_t bytes, const char *between, const char *path)
{
	size_t used = strlen(list);
	int length = snprintf(list + used, bytes - used, "%s%s", used == 0 ? "" : between, path);

	return length < 0 || (size_t)length >= bytes - used ? -1 : 0;
}

/*
 * The sockets of the VFs whose numbers on this node are in `numbers` ("2,3"). Returns how many there are; -1 and a message when
 * one of them is not there or the lists are too long.
 */
static int find_sockets(const char *dir, uint32_t job, const char *numbers, char *channels, char *devices)
{
	int found = 0;

	while (*numbers != '\0') {
		char path[PATH_MAX], *end;
		unsigned long number;

		errno = 0;
		number = strtoul(numbers, &end, 10);
		if (end == numbers || errno != 0 || (*end != ',' && *end != '\0') || found == MOST_VFS)
			return -1;
		numbers = *end == ',' ? end + 1 : end;
		snprintf(path, sizeof(path), "%s/vf/slurm-%u-%lu.channel.sock", dir, job, number);
		if (access(path, F_OK) != 0)
			return found == 0 ? 0 : -1;
		if (add_path(channels, LIST_BYTES, ",", path) != 0)
			return -1;
		snprintf(path, sizeof(path), "%s/vf/slurm-%u-%lu.sock", dir, job, number);
		if (add_path(devices, LIST_BYTES, ",", path) != 0)
			return -1;
		found++;
	}
	return found;
}

static int add_library_dir(spank_t spank)
{
	static char before[LIST_BYTES], all[LIST_BYTES];

	if (spank_getenv(spank, "LD_LIBRARY_PATH", before, sizeof(before)) == ESPANK_NOSPACE)
		return -1;
	snprintf(all, sizeof(all), "%s", library_dir);
	if (before[0] != '\0' && add_path(all, sizeof(all), ":", before) != 0)
		return -1;
	return spank_setenv(spank, "LD_LIBRARY_PATH", all, 1) == ESPANK_SUCCESS ? 0 : -1;
}

/* Why the prolog made nothing for the job. 0, or -1 when there is no such word. */
static int why_refused(spank_t spank, uint32_t job, char *out, int bytes)
{
	char dir[PATH_MAX / 2], path[PATH_MAX];
	FILE *file;
	int read;

	if (node_dir(spank, spool_dir, dir, sizeof(dir)) != 0)
		return -1;
	snprintf(path, sizeof(path), "%s/%u.refused", dir, job);
	file = fopen(path, "re");
	if (file == NULL)
		return -1;
	read = fgets(out, bytes, file) != NULL;
	fclose(file);
	if (!read)
		return -1;
	out[strcspn(out, "\n")] = '\0';
	return 0;
}

/* In the task, as its user: Slurm has said in CUDA_VISIBLE_DEVICES which of the node's GPUs are the task's. */
int slurm_spank_task_init(spank_t spank, int argc, char *argv[])
{
	static char channels[LIST_BYTES], devices[LIST_BYTES];
	char numbers[LIST_BYTES], dir[PATH_MAX / 2], why[LIST_BYTES];
	uint32_t job = 0;
	int found;

	(void)argc;
	(void)argv;
	if (spank_getenv(spank, "CUDA_VISIBLE_DEVICES", numbers, sizeof(numbers)) != ESPANK_SUCCESS)
		return 0;
	if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS || node_dir(spank, runtime_dir, dir, sizeof(dir)) != 0) {
		slurm_error("vgpud: which job or node this is can't be found out");
		return -1;
	}
	if (why_refused(spank, job, why, sizeof(why)) == 0) {
		slurm_error("vgpud: job %u has no VFs: %s", job, why);
		return -1;
	}
	found = find_sockets(dir, job, numbers, channels, devices);
	if (found == 0 && mixed)
		return 0;
	if (found <= 0) {
		slurm_error("vgpud: job %u: not all of the VFs %s are in %s: see the node's prolog log", job, numbers, dir);
		return -1;
	}
	/* All devices that the library finds are the task's, numbered from 0. */
	if (spank_setenv(spank, "VGPU_CHANNEL", channels, 1) != ESPANK_SUCCESS ||
	    spank_setenv(spank, "VGPU_VFIO_USER", devices, 1) != ESPANK_SUCCESS ||
	    spank_unsetenv(spank, "CUDA_VISIBLE_DEVICES") != ESPANK_SUCCESS || add_library_dir(spank) != 0) {
		slurm_error("vgpud: job %u: the task's environment could not be set", job);
		return -1;
	}
	return 0;
}
