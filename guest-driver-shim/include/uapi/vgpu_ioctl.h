/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * How a guest process talks to vgpu.ko: open("/dev/vgpuN") makes a channel, close() (also by death) ends it.
 *   mmap(offset 0)                 the channel area of vgpu_abi.h, info.channel_bytes long
 *   mmap(offset = buf.mmap_offset) a pinned buffer, from its first byte on; the offset is a cookie below 2^31
 *   poll(POLLIN)                   ready when the device has interrupted since the last poll, or the channel is lost
 *                                  (POLLHUP). Set cq_need_wakeup first, re-check the rings, then sleep.
 * A file belongs to the process that opened it: for a forked child ioctl and mmap fail with EBADF. EIO: the channel is
 * lost, by a reset, a suspend or the host. ENODEV: the device is gone. A struct may be longer than this header says,
 * with its size in the command's number: what the driver does not know must be zero, and is zero in answers.
 */
#ifndef VGPU_IOCTL_H
#define VGPU_IOCTL_H

#include <linux/ioctl.h>

#include "vgpu_abi.h"

struct vgpu_ioc_info {
	__u32 abi_version;
	__u32 channel;       /* index of this file's channel */
	__u64 channel_bytes; /* length of the channel area */
	__u64 vram_bytes;    /* quota */
	__u64 features;
	__u32 slice_us;
	__u32 weight;
	__u32 pci_domain;    /* true PCI address of the VF in this guest */
	__u32 pci_bus;
	__u32 pci_device;
	__u32 mbz;
	__u8 uuid[16];
	char name[64];
};
VGPU_ABI_SIZE(vgpu_ioc_info, 136);

struct vgpu_ioc_buffer {
	__u64 bytes;       /* in: multiple of 4096 */
	__u32 buffer;      /* alloc: out, free: in */
	__u32 mbz;
	__u64 mmap_offset; /* alloc: out */
};
VGPU_ABI_SIZE(vgpu_ioc_buffer, 24);

#define VGPU_IOC_INFO _IOR('V', 1, struct vgpu_ioc_info)
#define VGPU_IOC_KICK _IO('V', 2)                             /* ring this channel's doorbell */
#define VGPU_IOC_BUFFER_ALLOC _IOWR('V', 3, struct vgpu_ioc_buffer)
#define VGPU_IOC_BUFFER_FREE _IOW('V', 4, struct vgpu_ioc_buffer) /* after munmap; returns when the host let go */

#endif
