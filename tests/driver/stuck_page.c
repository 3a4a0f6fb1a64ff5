// SPDX-License-Identifier: GPL-2.0
/*
 * A page that never arrives, or is locked for ever: of a file of a FUSE server of the user's own, which does not answer.
 * Prints "stuck" when that is so, and stays until it is killed; its server is a process of its own, so that killing both ends the
 * wait.
 *
 * usage: stuck_page in | out | pin | workers
 *                                      in: an ioctl reads its argument there (BUFFER_FREE); out: it writes its answer there
 *                                      (INFO); pin: a buffer is made of the page, then the kernel writes it back;
 *                                      workers: buffers are made of two such pages, and another thread, which waits for its turn, gets a signal
 */
#include "device.h"

#include <linux/fuse.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define FILE_PATH "/tmp/stuck_page_file"
#define BUFFER_BYTES (1u << 17)
#define ANSWER_BYTES (2 * PAGE)
#define FILE_BYTES (2 * PAGE)

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		tap_bail("%s: %s", path, strerror(errno));
	close(fd);
}

/* A user namespace in which this user may mount. */
static void enter_namespaces(void)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	char map[64];

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		tap_bail("unshare: %s", strerror(errno));
	write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", uid);
	write_file("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "0 %u 1", gid);
	write_file("/proc/self/gid_map", map);
}

static int mount_file(void)
{
	int fuse = open("/dev/fuse", O_RDWR);
	char options[128];

	if (fuse < 0)
		tap_bail("/dev/fuse: %s", strerror(errno));
	close(open(FILE_PATH, O_CREAT | O_RDWR, 0666));
	snprintf(options, sizeof(options), "fd=%d,rootmode=100666,user_id=0,group_id=0", fuse);
	if (mount("stuck", FILE_PATH, "fuse", MS_NOSUID | MS_NODEV, options))
		tap_bail("mount: %s", strerror(errno));
	return fuse;
}

static bool reads_work;
/* Pages that the server has been asked for. */
static volatile int *reads;

/* Length of the answer to a request, 0 for none. */
static uint32_t answer(const struct fuse_in_header *in, char *out)
{
	struct fuse_out_header *header = (void *)out;
	void *body = header + 1;

	memset(out, 0, ANSWER_BYTES);
	header->unique = in->unique;
	header->len = sizeof(*header);
	switch (in->opcode) {
	case FUSE_INIT:
		*(struct fuse_init_out *)body = (struct fuse_init_out){ .major = 7, .minor = 31, .max_write = 4096,
									.max_readahead = 4096 };
		header->len += sizeof(struct fuse_init_out);
		break;
	case FUSE_GETATTR:
		*(struct fuse_attr_out *)body = (struct fuse_attr_out){
			.attr_valid = 100, .attr = { .ino = 1, .size = FILE_BYTES, .mode = 0100666, .nlink = 1 } };
		header->len += sizeof(struct fuse_attr_out);
		break;
	case FUSE_OPEN:
		header->len += sizeof(struct fuse_open_out);
		break;
	case FUSE_READ:
		if (!reads_work) {
			++*reads;
			puts("stuck");
			return 0;
		}
		header->len += PAGE; /* of zeroes */
		break;
	case FUSE_WRITE:
		puts("stuck");
		return 0;
	case FUSE_FORGET:
	case FUSE_INTERRUPT:
		return 0;
	default:
		header->error = -ENOSYS;
	}
	return header->len;
}

static void serve(int fuse)
{
	static char in[BUFFER_BYTES], out[ANSWER_BYTES];

	for (;;) {
		ssize_t n = read(fuse, in, sizeof(in));
		uint32_t length;

		if (n < 0)
			exit(0);
		length = answer((const void *)in, out);
		if (length && write(fuse, out, length) < 0)
			exit(1);
	}
}

/* The kernel writes the page back, and keeps it locked until the server has said that it is written. */
static void have_it_written(int fuse)
{
	struct {
		struct fuse_out_header header;
		struct fuse_notify_inval_inode_out range;
	} notice = {
		.header = { .len = sizeof(notice), .error = FUSE_NOTIFY_INVAL_INODE },
		.range = { .ino = 1, .len = PAGE },
	};

	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(write(fuse, &notice, sizeof(notice)) < 0);
	}
}

static void pin(int fd, void *page, int fuse)
{
	struct vgpu_ioc_buffer buffer = { .address = (uintptr_t)page, .bytes = PAGE };

	*(volatile char *)page = 1;
	printf("a buffer of a page of a file: %s\n", ioctl(fd, VGPU_IOC_BUFFER_PIN, &buffer) ? strerror(errno) : "made");
	have_it_written(fuse);
	for (;;)
		pause();
}

static int channel_fd;
static volatile int waited = -1;

static void *pin_stuck(void *page)
{
	struct vgpu_ioc_buffer buffer = { .address = (uintptr_t)page, .bytes = PAGE };

	ioctl(channel_fd, VGPU_IOC_BUFFER_PIN, &buffer);
	return NULL;
}

static void *wait_for_turn(void *arg)
{
	struct vgpu_ioc_buffer buffer;

	(void)arg;
	while (*reads < 2)
		sleep_ms(5);
	waited = buffer_alloc(channel_fd, PAGE, &buffer);
	return NULL;
}

static void on_signal(int number)
{
	(void)number;
}

/* Whoever waits for the two threads can be woken: by a signal, and so by the freezer before a suspend. A copy of a page is made when it is there. */
__attribute__((noreturn)) static void wait_for_workers(char *pages)
{
	struct sigaction action = { .sa_handler = on_signal };
	double end = now_s() + 30;
	pthread_t thread, stuck;

	tap_begin();
	sigaction(SIGUSR1, &action, NULL);
	/* Before Linux 6.5 none is made while the others wait: they have the process's memory locked. */
	pthread_create(&thread, NULL, wait_for_turn, NULL);
	for (int i = 0; i < 2; i++)
		pthread_create(&stuck, NULL, pin_stuck, pages + (size_t)i * PAGE);
	while (waited < 0 && now_s() < end) {
		pthread_kill(thread, SIGUSR1);
		sleep_ms(5);
	}
	tap_ok(waited == EINTR, "it is interrupted: %s", waited < 0 ? "no" : strerror(waited));
	tap_end();
}

int main(int argc, char **argv)
{
	bool out = argc > 1 && !strcmp(argv[1], "out");
	int fuse, fd, file;
	struct stat stat;
	pid_t server;
	void *page;

	setvbuf(stdout, NULL, _IOLBF, 0);
	channel_fd = fd = device_open_or_bail();
	reads = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	enter_namespaces();
	fuse = mount_file();
	reads_work = argc > 1 && !strcmp(argv[1], "pin");
	server = fork();
	if (server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fd);
		serve(fuse);
	}
	file = open(FILE_PATH, O_RDWR);
	if (fstat(file, &stat)) /* asks the server how long the file is */
		tap_bail("%s: %s", FILE_PATH, strerror(errno));
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (page == MAP_FAILED)
		tap_bail("map %s: %s", FILE_PATH, strerror(errno));
	if (reads_work)
		pin(fd, page, fuse);
	close(fuse);
	if (argc > 1 && !strcmp(argv[1], "workers"))
		wait_for_workers(mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0));
	ioctl(fd, out ? VGPU_IOC_INFO : VGPU_IOC_BUFFER_FREE, page);
	puts("the ioctl returned");
	return 1;
}
