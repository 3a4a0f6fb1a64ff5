/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * What the VF is and has used, for whoever looks on and needs no channel. It is about this VF alone: its own memory, its
 * own turns, its own channels. In a guest the driver asks for it with VGPU_CTRL_STATUS and answers it to VGPU_IOC_STATUS;
 * without a VM the channel socket answers it (VGPU_SOCK_STATUS). The rules are those of vgpu_abi.h.
 */
#ifndef VGPU_STATUS_H
#define VGPU_STATUS_H

#include "vgpu_abi.h"

struct vgpu_status_channel {
	__le64 id;         /* 0x00 [H] counts the VF's channels as they are opened, from 1; 0 = the end of the list */
	__le32 pid;        /* 0x08 [H] as its opener said */
	__le32 flags;      /* 0x0c [H] VGPU_STATUS_CONTEXT */
	__le64 vram_bytes; /* 0x10 [H] in use */
	__le64 gpu_ns;     /* 0x18 [H] counts up while it is on the GPU, as its executor says; where it began means nothing */
};
VGPU_ABI_SIZE(vgpu_status_channel, 32);
#define VGPU_STATUS_CONTEXT (1u << 0) /* more has come through it than questions about the GPU, since the last CONTEXT_RESET */

struct vgpu_status {
	__le32 bytes;           /* 0x00 [H] of this struct that the host has filled in; the rest is zero */
	__le32 vf_state;        /* 0x04 [H] VGPU_VF_* */
	__le64 now_ns;          /* 0x08 [H] the host's clock that event slots show */
	__le64 vram_bytes;      /* 0x10 [H] quota */
	__le64 vram_used_bytes; /* 0x18 [H] by all channels */
	__le32 gpu_percent;     /* 0x20 [H] part of the last second in which the VF had the GPU */
	__le32 capability;      /* 0x24 [H] compute capability times 10; 0 = not known */
	__le32 slice_us;        /* 0x28 [H] */
	__le32 weight;          /* 0x2c [H] */
	__u8 uuid[16];          /* 0x30 [H] */
	char name[64];          /* 0x40 [H] NUL padded: the VF's */
	char gpu_name[64];      /* 0x80 [H] the same: the GPU's model; empty = not known */
	__le32 cuda_version;    /* 0xc0 [H] of the driver behind it, as cuDriverGetVersion counts; 0 = it has none of its own */
	__le32 mbz0;            /* 0xc4 */
	__le64 mbz[7];          /* 0xc8 */
	struct vgpu_status_channel channel[VGPU_MAX_CHANNELS]; /* 0x100 those that are open, without gaps */
};
VGPU_ABI_SIZE(vgpu_status, 0x900);
VGPU_ABI_AT(vgpu_status, uuid, 0x30);
VGPU_ABI_AT(vgpu_status, gpu_name, 0x80);
VGPU_ABI_AT(vgpu_status, cuda_version, 0xc0);
VGPU_ABI_AT(vgpu_status, channel, 0x100);

/* Where it is in the control page, as of the last VGPU_CTRL_STATUS. */
#define VGPU_CTRL_PAGE_STATUS 0x400u
static_assert(offsetof(struct vgpu_ctrl_page, reserved) <= VGPU_CTRL_PAGE_STATUS &&
	      VGPU_CTRL_PAGE_STATUS + sizeof(struct vgpu_status) <= sizeof(struct vgpu_ctrl_page),
	      "struct vgpu_status is inside of vgpu_ctrl_page.reserved");

#endif
