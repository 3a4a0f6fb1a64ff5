// SPDX-License-Identifier: Apache-2.0
/*
 * First process of the guest image: runs commands that the host sends over virtio-serial ports, one command per
 * port at a time, and streams their output. The host side is tools/lib/vgpuguest/channel.py.
 *
 * Frame: type (1 byte), 3 zero bytes, length (u32 LE), payload of at most 64 KiB.
 *   host -> guest   H nonce            start over: end the running command; answered by H nonce + dev flag
 *                   Q path             answered by S size (u64; all ones = no such file)
 *                   P mode(u32) path   begin a file;  D bytes: more of it;  E: complete, answered by S 0
 *                   R uid(u32) argc(u32) strings (NUL-terminated: arguments, then environment): run
 *   guest -> host   O / E  stdout / stderr of the command
 *                   X code(u32)        exit code, 128 + n for signal n
 *                   F text             the request failed
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_FRAME 65536u
#define MAX_STRINGS 4096u
#define PORT_PREFIX "vgpu.cmd."
#define IDLE_POLL_MS 30 /* a port without a host can only be polled */
/*
 * The kernel hears of connections later than of data: a port whose next host is served already may look closed for a
 * moment. Only one that stays so has lost its host.
 */
#define POLLS_UNTIL_GONE 10

struct command {
	pid_t pid; /* 0 = none */
	int pidfd, out, err;
};

struct session {
	int port;
	int file; /* of P, -1 = none */
	char file_path[4096];
	struct command command;
	int lost_command; /* ended, as the host seemed gone */
	size_t have;
	char in[8 + MAX_FRAME + 1];
};

/* ---- The port ---- */

static int host_is_there(int port)
{
	struct pollfd p = { .fd = port, .events = POLLOUT };

	poll(&p, 1, 0);
	return !(p.revents & POLLHUP);
}

static void send_all(int port, const char *data, size_t length)
{
	while (length) {
		ssize_t n = write(port, data, length);

		if (n > 0) {
			data += n;
			length -= n;
			continue;
		}
		struct pollfd p = { .fd = port, .events = POLLOUT };

		if (!host_is_there(port))
			return;
		poll(&p, 1, 1000);
	}
}

static void send_frame(int port, char type, const void *data, uint32_t length)
{
	char frame[8 + MAX_FRAME] = { type };

	memcpy(frame + 4, &length, 4);
	memcpy(frame + 8, data, length);
	send_all(port, frame, 8 + length);
}

__attribute__((format(printf, 2, 3))) static void send_failure(int port, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	int n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	send_frame(port, 'F', text, n < (int)sizeof(text) ? n : (int)sizeof(text) - 1);
}

/* ---- The command ---- */

static void run_child(uint32_t uid, char **argv, char **envp, int out, int err)
{
	int null = open("/dev/null", O_RDONLY);

	setsid();
	dup2(null, 0);
	dup2(out, 1);
	dup2(err, 2);
	if (uid && (setgroups(0, NULL) || setgid(uid) || setuid(uid)))
		_exit(126);
	if (chdir("/tmp"))
		_exit(126);
	signal(SIGPIPE, SIG_DFL);
	execvpe(argv[0], argv, envp);
	dprintf(2, "%s: %s\n", argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

static void command_close(struct command *c)
{
	close(c->pidfd);
	close(c->out);
	close(c->err);
	memset(c, 0, sizeof(*c));
}

static void command_kill(struct command *c)
{
	if (!c->pid)
		return;
	kill(-c->pid, SIGKILL);
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	command_close(c);
}

static void start_command(struct session *s, char *data, uint32_t length)
{
	static char *strings[MAX_STRINGS + 2];
	uint32_t uid, argc, count = 0;
	int out[2], err[2];
	char *at = data + 8;

	if (length < 8 || data[length - 1] || s->command.pid) {
		send_failure(s->port, "bad run request");
		return;
	}
	memcpy(&uid, data, 4);
	memcpy(&argc, data + 4, 4);
	for (; at < data + length && count < MAX_STRINGS; at += strlen(at) + 1) {
		if (count == argc)
			strings[count++] = NULL;
		strings[count++] = at;
	}
	if (count == argc)
		strings[count++] = NULL;
	strings[count] = NULL;
	if (!argc || count <= argc || at < data + length || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC)) {
		send_failure(s->port, "bad run request");
		return;
	}
	pid_t pid = fork();

	if (pid == 0)
		run_child(uid, strings, strings + argc + 1, out[1], err[1]);
	close(out[1]);
	close(err[1]);
	if (pid < 0) {
		close(out[0]);
		close(err[0]);
		send_failure(s->port, "fork: %s", strerror(errno));
		return;
	}
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	fcntl(err[0], F_SETFL, O_NONBLOCK);
	s->command = (struct command){ .pid = pid, .pidfd = syscall(SYS_pidfd_open, pid, 0), .out = out[0], .err = err[0] };
}

/* Sends what there is; 0 when the stream has ended. */
static int forward(int port, char type, int fd)
{
	char data[16384];
	ssize_t n = read(fd, data, sizeof(data));

	if (n > 0)
		send_frame(port, type, data, n);
	return n > 0 || (n < 0 && errno == EAGAIN) ? (n > 0 ? 2 : 1) : 0;
}

static void finish_command(struct session *s)
{
	int status;
	uint32_t code;

	while (forward(s->port, 'O', s->command.out) == 2)
		;
	while (forward(s->port, 'E', s->command.err) == 2)
		;
	waitpid(s->command.pid, &status, 0);
	code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	command_close(&s->command);
	send_frame(s->port, 'X', &code, 4);
}

/* ---- Requests ---- */

static void on_hello(struct session *s, char *data, uint32_t length)
{
	char answer[17] = "";

	command_kill(&s->command);
	memcpy(answer, data, length < 16 ? length : 16);
	answer[16] = access("/dev/vgpu0", R_OK | W_OK) == 0;
	send_frame(s->port, 'H', answer, sizeof(answer));
}

static void on_query(struct session *s, char *data, uint32_t length)
{
	struct stat st;
	uint64_t size = UINT64_MAX;

	(void)length;
	if (!stat(data, &st))
		size = st.st_size;
	send_frame(s->port, 'S', &size, 8);
}

static void make_parents(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(path, 0755);
		*slash = '/';
	}
}

/* A new file gets its name only when it is complete, and never changes one that a process has open. */
static void on_put(struct session *s, char *data, uint32_t length)
{
	char partial[sizeof(s->file_path) + 8];
	uint32_t mode;

	if (length < 6 || length > sizeof(s->file_path)) {
		send_failure(s->port, "bad put request");
		return;
	}
	memcpy(&mode, data, 4);
	snprintf(s->file_path, sizeof(s->file_path), "%s", data + 4);
	make_parents(s->file_path);
	snprintf(partial, sizeof(partial), "%s.%d", s->file_path, getpid());
	s->file = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	if (s->file >= 0)
		fchmod(s->file, mode);
}

static void on_data(struct session *s, char *data, uint32_t length)
{
	if (s->file >= 0 && write(s->file, data, length) != (ssize_t)length) {
		close(s->file);
		s->file = -1;
	}
}

static void on_end(struct session *s, char *data, uint32_t length)
{
	char partial[sizeof(s->file_path) + 8];
	uint64_t zero = 0;

	(void)data;
	(void)length;
	snprintf(partial, sizeof(partial), "%s.%d", s->file_path, getpid());
	if (s->file < 0 || close(s->file) || rename(partial, s->file_path)) {
		unlink(partial);
		send_failure(s->port, "cannot write %s: %s (more guest memory?)", s->file_path, strerror(errno));
	} else {
		send_frame(s->port, 'S', &zero, 8);
	}
	s->file = -1;
}

static const struct {
	char type;
	void (*run)(struct session *s, char *data, uint32_t length);
} requests[] = {
	{ 'H', on_hello }, { 'Q', on_query }, { 'P', on_put }, { 'D', on_data }, { 'E', on_end }, { 'R', start_command },
};

static void take_frames(struct session *s)
{
	uint32_t length;

	while (s->have >= 8) {
		memcpy(&length, s->in + 4, 4);
		if (length > MAX_FRAME) {
			s->have = 0;
			send_failure(s->port, "bad frame");
			return;
		}
		if (s->have < 8 + length)
			return;
		char after = s->in[8 + length];

		s->in[8 + length] = 0;
		for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
			if (requests[i].type == s->in[0])
				requests[i].run(s, s->in + 8, length);
		s->in[8 + length] = after;
		s->have -= 8 + length;
		memmove(s->in, s->in + 8 + length, s->have);
	}
}

/* ---- Loops ---- */

static void reset_session(struct session *s)
{
	s->lost_command = s->command.pid != 0;
	command_kill(&s->command);
	if (s->file >= 0)
		close(s->file);
	s->file = -1;
	s->have = 0;
}

static void serve_port(const char *path)
{
	static struct session s = { .file = -1 };
	unsigned hung_up = 0; /* polls in a row */

	s.port = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (s.port < 0)
		_exit(1);
	for (;;) {
		struct pollfd p[4] = { { .fd = s.port, .events = POLLIN }, { .fd = -1 }, { .fd = -1 }, { .fd = -1 } };

		if (s.command.pid) {
			p[1] = (struct pollfd){ .fd = s.command.pidfd, .events = POLLIN };
			p[2] = (struct pollfd){ .fd = s.command.out, .events = POLLIN };
			p[3] = (struct pollfd){ .fd = s.command.err, .events = POLLIN };
		}
		poll(p, 4, -1);
		if (p[0].revents & POLLHUP) {
			if (++hung_up == POLLS_UNTIL_GONE)
				reset_session(&s);
			usleep(IDLE_POLL_MS * 1000);
			continue;
		}
		hung_up = 0;
		if (s.lost_command) /* the next host skips what comes before the answer to its H */
			send_failure(s.port, "the port was disconnected");
		s.lost_command = 0;
		if (p[0].revents & POLLIN) {
			ssize_t n = read(s.port, s.in + s.have, 8 + MAX_FRAME - s.have);

			if (n > 0) {
				s.have += n;
				take_frames(&s);
			}
			continue;
		}
		if (!s.command.pid)
			continue;
		if (p[2].revents & POLLIN)
			forward(s.port, 'O', s.command.out);
		if (p[3].revents & POLLIN)
			forward(s.port, 'E', s.command.err);
		if (p[1].revents & POLLIN)
			finish_command(&s);
		else if ((p[2].revents | p[3].revents) == POLLHUP)
			usleep(1000); /* the command closed its output and lives on */
	}
}

static void start_ports(void)
{
	DIR *dir = opendir("/sys/class/virtio-ports");
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		char path[512], name[64] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/name", entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (!fgets(name, sizeof(name), file))
			name[0] = 0;
		fclose(file);
		if (strncmp(name, PORT_PREFIX, strlen(PORT_PREFIX)))
			continue;
		snprintf(path, sizeof(path), "/dev/%s", entry->d_name);
		if (fork() == 0)
			serve_port(path);
	}
	closedir(dir);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	umask(022);
	start_ports();
	for (;;)
		if (waitpid(-1, NULL, 0) < 0)
			pause();
}
