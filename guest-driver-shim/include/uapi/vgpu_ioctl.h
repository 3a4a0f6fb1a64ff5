/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * How a guest process talks to vgpu.ko. An open /dev/vgpuN asks about the VF; VGPU_IOC_CHANNEL makes it a channel to
 * one GPU context on the host, and close() (also by death) ends that.
 *   mmap(offset 0)                 the channel area of vgpu_abi.h, vgpu_ioc_info.channel_bytes long
 *   mmap(offset = buf.mmap_offset) a buffer, from its first byte on; the offset is a cookie below 2^31
 *   VGPU_IOC_WAIT                  sleeps until the device has interrupted. Set cq_need_wakeup first, look at the rings
 *                                  again, then sleep
 *   poll(POLLIN)                   ready while there are events that no VGPU_IOC_WAIT of this file has answered, or the
 *                                  channel is lost (POLLHUP)
 * A file belongs to the process that opened it: for a forked child ioctl and mmap fail with EBADF. EIO: the channel is
 * lost, by a reset, a suspend or the host. ENODEV: the device is gone. ENOTCONN: the file has no channel. A struct may be
 * longer than this header says, with its size in the command's number: what the driver does not know must be zero, and is
 * zero in answers. Mappings outlive the device: they are the program's memory.
 */
#ifndef VGPU_IOCTL_H
#define VGPU_IOCTL_H

#include <linux/ioctl.h>

#include "vgpu_abi.h"
#include "vgpu_status.h"

struct vgpu_ioc_info {
	__u32 abi_version;
	__u32 channel;       /* this file's, as the host numbers it */
	__u64 channel_bytes; /* length of the channel area; 0: the file has no channel */
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
	__u64 address;     /* alloc: 0. pin: in, page aligned, the program's own anonymous or shared memory */
	__u64 bytes;       /* in: multiple of 4096 */
	__u64 mmap_offset; /* alloc: out */
	__u32 buffer;      /* alloc, pin: out, free: in */
	__u32 mbz;
};
VGPU_ABI_SIZE(vgpu_ioc_buffer, 32);

struct vgpu_ioc_wait {
	__u32 events;     /* in: the count of events that is known; out: the present one, another one unless it failed */
	__u32 timeout_ms; /* in: ETIMEDOUT after so long */
};
VGPU_ABI_SIZE(vgpu_ioc_wait, 8);

#define VGPU_IOC_TYPE 0xbd
#define VGPU_IOC_INFO _IOR(VGPU_IOC_TYPE, 1, struct vgpu_ioc_info)
#define VGPU_IOC_STATUS _IOR(VGPU_IOC_TYPE, 2, struct vgpu_status) /* EOPNOTSUPP: an older host */
#define VGPU_IOC_CHANNEL _IOR(VGPU_IOC_TYPE, 3, struct vgpu_ioc_info) /* makes the file's channel, once */
#define VGPU_IOC_KICK _IO(VGPU_IOC_TYPE, 4)                           /* ring the channel's doorbell */
#define VGPU_IOC_WAIT _IOWR(VGPU_IOC_TYPE, 5, struct vgpu_ioc_wait)
#define VGPU_IOC_BUFFER_ALLOC _IOWR(VGPU_IOC_TYPE, 6, struct vgpu_ioc_buffer)
/*
 * The program's own pages as a buffer; they stay where they are until BUFFER_FREE or the channel's end. EOPNOTSUPP: the
 * device does not reach such memory in this guest. E2BIG: its pages lie in too many pieces.
 */
#define VGPU_IOC_BUFFER_PIN _IOWR(VGPU_IOC_TYPE, 7, struct vgpu_ioc_buffer)
#define VGPU_IOC_BUFFER_FREE _IOW(VGPU_IOC_TYPE, 8, struct vgpu_ioc_buffer) /* returns when the host let go */

#endif
