/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * The VF's channel socket: the way to a VF without a VM. AF_UNIX SOCK_SEQPACKET, one connection = one channel,
 * closing it ends the channel. The client sends a request, the server answers each with one reply; file
 * descriptors travel as SCM_RIGHTS. All memory is allocated (and size-sealed) by the server, but for what clients
 * import where VGPU_FEATURE_CLIENT_MEMORY says that they may.
 *
 * kick and call are the client's ends of connected AF_UNIX SOCK_SEQPACKET sockets. To ring the doorbell, send one byte
 * on kick with MSG_DONTWAIT; a full queue has rung already. call is readable when the device has interrupted: receive
 * with MSG_DONTWAIT until there is nothing more, then look at the rings. What is sent says "look", not how often. Kicks
 * beyond the VF's budget are served later.
 */
#ifndef VGPU_CHANNEL_SOCK_H
#define VGPU_CHANNEL_SOCK_H

#include "vgpu_abi.h"
#include "vgpu_ioctl.h"
#include "vgpu_status.h"

#define VGPU_SOCK_OPEN 1u         /* bytes = abi version; reply: info + fds {channel area, kick, call} */
#define VGPU_SOCK_BUFFER_ALLOC 2u /* bytes; reply: buffer id + fd {memory} */
#define VGPU_SOCK_BUFFER_FREE 3u  /* buffer; reply when the executor let go */
#define VGPU_SOCK_STATUS 4u       /* any time, before OPEN too; reply: vgpu_sock_status. Hosts that do not know it: -ENOSYS */
#define VGPU_SOCK_BUFFER_IMPORT 5u /* bytes, offset + fd {memory of tmpfs or hugetlbfs, open for both}; reply: buffer id */

struct vgpu_sock_request {
	__u32 op;
	__u32 buffer;
	__u64 bytes;
	__u32 client_pid; /* OPEN: for logs */
	__u32 mbz;
	__u64 offset; /* BUFFER_IMPORT: in the file; else 0 */
};
VGPU_ABI_SIZE(vgpu_sock_request, 32);

struct vgpu_sock_reply {
	__u32 op;      /* of the request */
	__s32 status;  /* 0 or negative errno */
	__u32 buffer;
	__u32 mbz;
	struct vgpu_ioc_info info; /* OPEN only, else zero */
};
VGPU_ABI_SIZE(vgpu_sock_reply, 152);

/* The reply to STATUS when it is not refused: later hosts may send more. */
struct vgpu_sock_status {
	__u32 op;
	__s32 status; /* 0 */
	__u64 mbz;
	struct vgpu_status vf;
};
VGPU_ABI_SIZE(vgpu_sock_status, 0x910);

#endif
