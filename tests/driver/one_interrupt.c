// SPDX-License-Identifier: GPL-2.0
/*
 * Two channels. The host has an event for the first and, with the same interrupt, ends the second. Who waits for the second only
 * is woken.
 */
#include "device.h"

int main(void)
{
	int eventful = device_open_or_bail(), ended = device_open_or_bail();
	struct pollfd p = { .fd = ended, .events = POLLIN };
	struct vgpu_ioc_info infos[2];
	double end;

	tap_begin();
	if (ioctl(eventful, VGPU_IOC_INFO, &infos[0]) || ioctl(ended, VGPU_IOC_INFO, &infos[1]))
		tap_bail("INFO: %s", strerror(errno));
	printf("channels %u %u\n", infos[0].channel, infos[1].channel);
	end = now_s() + 30;
	while (now_s() < end && !(p.revents & POLLHUP))
		poll(&p, 1, (int)((end - now_s()) * 1000) + 1);
	tap_ok(p.revents & POLLHUP, "poll() reports POLLHUP (0x%x)", (unsigned int)p.revents);
	close(eventful);
	close(ended);
	tap_end();
}
