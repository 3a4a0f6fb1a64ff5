// SPDX-License-Identifier: GPL-2.0
/*
 * Starts another kernel from this one, as `kexec -l && kexec -e` do. Run by root; does not return.
 *
 * usage: kexec KERNEL INITRD COMMAND_LINE
 */
#include "device.h"

#include <linux/reboot.h>
#include <sys/reboot.h>
#include <sys/syscall.h>

int main(int argc, char **argv)
{
	int kernel, initrd;

	if (argc != 4)
		return 2;
	kernel = open(argv[1], O_RDONLY);
	initrd = open(argv[2], O_RDONLY);
	if (kernel < 0 || initrd < 0)
		tap_bail("%s, %s: %s", argv[1], argv[2], strerror(errno));
	if (syscall(SYS_kexec_file_load, kernel, initrd, strlen(argv[3]) + 1, argv[3], 0ul))
		tap_bail("kexec_file_load: %s", strerror(errno));
	puts("starting");
	fflush(stdout);
	sleep_ms(200); /* so that the line above gets out */
	syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_KEXEC, NULL);
	tap_bail("reboot: %s", strerror(errno));
}
