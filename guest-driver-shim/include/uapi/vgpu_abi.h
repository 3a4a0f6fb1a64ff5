/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * The ABI of a vgpud virtual function (VF): PCI identity, BAR0 registers, the control page that the guest
 * kernel shares with vgpud-vf, and the channel memory that a guest CUDA process shares with its executor.
 *
 * Rules: fixed-width types, little-endian in memory and registers, natural alignment, explicit mbz padding that must be
 * zero, no pointers, append only. Everything in guest memory is hostile to the host: it is copied once, checked, then used.
 * Who writes a field stands behind it: [G] guest, [H] host.
 */
#ifndef VGPU_ABI_H
#define VGPU_ABI_H

#include <linux/types.h>

#ifndef __KERNEL__
#ifdef __cplusplus
#include <cstddef>
#else
#include <assert.h>
#include <stddef.h>
#endif
#endif

#define VGPU_ABI_SIZE(type, n) static_assert(sizeof(struct type) == (n), #type " size")
#define VGPU_ABI_AT(type, field, off) static_assert(offsetof(struct type, field) == (off), #type "." #field)

/*
 * Each side speaks a range of versions, and the newest that both know is used. The guest reads the host's range from
 * ABI_VERSION and ABI_NEWEST, and answers in DRIVER_VERSION and DRIVER_FEATURES. A new version is for what an old
 * side would misunderstand; all else gets a VGPU_FEATURE_ bit.
 */
#define VGPU_ABI_VERSION 1u
/* The oldest version that is still spoken, by this driver and this host. */
#define VGPU_ABI_OLDEST 1u

/* ---- PCI identity -------------------------------------------------------------------------------------- */

#define VGPU_PCI_VENDOR_ID 0x1af4u
#define VGPU_PCI_DEVICE_ID 0x10f0u
#define VGPU_PCI_CLASS 0x030200u /* 3D controller */
#define VGPU_BAR0_BYTES 0x10000u

/* ---- BAR0 registers: 4-byte aligned 32-bit accesses, 8-byte for the _LO/_HI pairs ----------------------- */

#define VGPU_REG_MAGIC 0x000        /* RO VGPU_MAGIC */
#define VGPU_REG_ABI_VERSION 0x004  /* RO the oldest version that the host speaks */
#define VGPU_REG_FEATURES_LO 0x008  /* RO VGPU_FEATURE_* */
#define VGPU_REG_FEATURES_HI 0x00c
#define VGPU_REG_MAX_CHANNELS 0x010 /* RO number of channels, <= VGPU_MAX_CHANNELS */
#define VGPU_REG_VF_STATE 0x014     /* RO VGPU_VF_* */
#define VGPU_REG_VRAM_LO 0x018      /* RO quota in bytes */
#define VGPU_REG_VRAM_HI 0x01c
#define VGPU_REG_SLICE_US 0x020     /* RO length of one time slice */
#define VGPU_REG_WEIGHT 0x024       /* RO 1..10000 */
#define VGPU_REG_ABI_NEWEST 0x028   /* RO the newest version that the host speaks; 0 = ABI_VERSION is the only one */
#define VGPU_REG_UUID 0x030         /* RO 16 bytes */
#define VGPU_REG_NAME 0x040         /* RO 64 bytes, NUL padded: the VF's name */
#define VGPU_REG_CTRL_ADDR_LO 0x100 /* RW guest address of struct vgpu_ctrl_page, page aligned; 0 = none */
#define VGPU_REG_CTRL_ADDR_HI 0x104
#define VGPU_REG_CTRL_KICK 0x108    /* WO any value: run the command in the control page now */
#define VGPU_REG_CTRL_SEQ 0x10c     /* RO count of commands run since the control page was set; reading it is a
                                     * fence: every earlier posted write has been served */
#define VGPU_REG_IRQ_STATUS 0x110   /* RO VGPU_IRQ_PENDING or 0; reading it lowers the interrupt line. 0 with MSI */
#define VGPU_REG_DRIVER_VERSION 0x118     /* RW the version that the guest has chosen */
#define VGPU_REG_DRIVER_FEATURES_LO 0x120 /* RW the features of VGPU_FEATURES_TRANSPORT that the guest will use */
#define VGPU_REG_DRIVER_FEATURES_HI 0x124
#define VGPU_REG_DOORBELL(ch) (0x1000 + 4 * (ch)) /* WO any value: the channel's executor has work */

#define VGPU_MAGIC 0x55504756u /* "VGPU" */
#define VGPU_MAX_CHANNELS 64u

#define VGPU_IRQ_PENDING 1u

#define VGPU_FEATURE_BUFFERS (1ull << 0)       /* BUFFER_ADD / BUFFER_REMOVE work */
#define VGPU_FEATURE_TEXTURES (1ull << 1)      /* executors know TEXTURE_CREATE / TEXTURE_DESTROY */
#define VGPU_FEATURE_SEGMENT_PAGES (1ull << 2) /* VGPU_CTRL_SEGMENT_PAGES */
#define VGPU_FEATURE_EVENT_COUNTS (1ull << 3)  /* vgpu_ctrl_page.events */
#define VGPU_FEATURE_CLIENT_PID (1ull << 4)    /* vgpu_ctrl_cmd.client_pid */
#define VGPU_FEATURE_STATUS (1ull << 5)        /* VGPU_CTRL_STATUS, vgpu_status.h */
#define VGPU_FEATURE_BUSY (1ull << 6)          /* CHANNEL_CREATE answers EBUSY when there were too many of late: ask again
                                                * later. Without it the answer is late, and the guest's processor waits */
#define VGPU_FEATURE_BUSY_BUFFERS (1ull << 7)  /* the same of BUFFER_ADD */
#define VGPU_FEATURE_STREAM_QUERY (1ull << 16) /* executors know STREAM_QUERY */
#define VGPU_FEATURE_CLUSTERS (1ull << 17)     /* executors know vgpu_launch.cluster, vgpu_function_info.cluster */
#define VGPU_FEATURE_SHARED_BUFFERS (1ull << 18) /* BUF_ADDRESS, VGPU_LIMIT_BUFFER_PART, managed variables of MODULE_LOAD */
#define VGPU_FEATURE_STREAM_VALUES (1ull << 19) /* executors know WAIT_VALUE and WRITE_VALUE */
#define VGPU_FEATURE_FUNCTION_NAMES (1ull << 20) /* executors know MODULE_FUNCTION_NAME */
#define VGPU_FEATURE_MAPPED_MEMORY (1ull << 21) /* executors know MEM_CREATE, MEM_RELEASE, MEM_MAP, MEM_UNMAP */
#define VGPU_FEATURE_CLIENT_MEMORY (1ull << 22) /* a channel socket's: VGPU_SOCK_BUFFER_IMPORT works */
#define VGPU_FEATURE_SLOT_GATES (1ull << 23) /* executors know VGPU_SLOT_GATE */
#define VGPU_FEATURES_ALL \
	(VGPU_FEATURE_BUFFERS | VGPU_FEATURE_TEXTURES | VGPU_FEATURE_SEGMENT_PAGES | VGPU_FEATURE_EVENT_COUNTS | \
	 VGPU_FEATURE_CLIENT_PID | VGPU_FEATURE_STATUS | VGPU_FEATURE_BUSY | VGPU_FEATURE_BUSY_BUFFERS | \
	 VGPU_FEATURE_STREAM_QUERY | VGPU_FEATURE_CLUSTERS | VGPU_FEATURE_SHARED_BUFFERS | VGPU_FEATURE_STREAM_VALUES | \
	 VGPU_FEATURE_FUNCTION_NAMES | VGPU_FEATURE_MAPPED_MEMORY | VGPU_FEATURE_SLOT_GATES)
/* These bits are between the guest's driver and vgpud-vf. Programs learn of all others, whatever the driver knows. */
#define VGPU_FEATURES_TRANSPORT 0xfffdull

#define VGPU_VF_READY 1u  /* serving */
#define VGPU_VF_PARKED 2u /* taken out of the rotation after repeated hangs */

/* ---- Control page: guest kernel <-> vgpud-vf ------------------------------------------------------------ */

/*
 * The guest kernel fills `cmd`, writes CTRL_KICK, then reads CTRL_SEQ: when that read returns, `status` and the reply
 * fields are valid. Commands never wait for an executor; slow endings arrive in channel_state[] with the interrupt.
 */
#define VGPU_CTRL_CHANNEL_CREATE 1u  /* channel, seg_list, seg_count: the channel area's memory */
#define VGPU_CTRL_CHANNEL_DESTROY 2u /* channel; done when channel_state[channel] is VGPU_CHANNEL_FREE */
#define VGPU_CTRL_BUFFER_ADD 3u      /* channel, buffer, seg_list, seg_count: pinned host memory */
#define VGPU_CTRL_BUFFER_REMOVE 4u   /* channel, buffer; done when buffer_ack counts one more */
#define VGPU_CTRL_STATUS 5u          /* writes struct vgpu_status at VGPU_CTRL_PAGE_STATUS (vgpu_status.h) */

/* One piece of guest memory; both fields are multiples of 4096. */
struct vgpu_segment {
	__le64 addr;  /* [G] guest physical (bus) address */
	__le64 bytes; /* [G] */
};
VGPU_ABI_SIZE(vgpu_segment, 16);

#define VGPU_MAX_SEGMENTS 65536u

/*
 * With this flag the list of segments lies in single pages: VGPU_SEGMENTS_PER_PAGE of them, then one entry whose
 * `addr` is the next page and whose `bytes` is 0. Nothing follows the last segment.
 */
#define VGPU_CTRL_SEGMENT_PAGES (1u << 0)
#define VGPU_SEGMENTS_PER_PAGE 255u

struct vgpu_ctrl_cmd {
	__le32 op;        /* 0x00 [G] VGPU_CTRL_* */
	__le32 channel;   /* 0x04 [G] 0 .. MAX_CHANNELS-1, chosen by the guest among the free ones */
	__le32 buffer;    /* 0x08 [G] buffer id, 1 .. 2^31-1, chosen by the guest, unique within the channel */
	__le32 seg_count; /* 0x0c [G] 1 .. VGPU_MAX_SEGMENTS */
	__le64 seg_list;  /* 0x10 [G] guest address of struct vgpu_segment[seg_count], contiguous unless flags say so */
	__le32 flags;     /* 0x18 [G] VGPU_CTRL_SEGMENT_PAGES or 0 */
	__le32 client_pid; /* 0x1c [G] CHANNEL_CREATE: the process, for the host's log; needs VGPU_FEATURE_CLIENT_PID */
	__le64 mbz[3];    /* 0x20 room for what CHANNEL_CREATE and BUFFER_ADD need next */
	__le32 status;    /* 0x38 [H] 0 or a negative errno (Linux numbers), two's complement */
	__le32 mbz2;      /* 0x3c */
};
VGPU_ABI_SIZE(vgpu_ctrl_cmd, 64);
VGPU_ABI_AT(vgpu_ctrl_cmd, seg_list, 0x10);
VGPU_ABI_AT(vgpu_ctrl_cmd, status, 0x38);

#define VGPU_CHANNEL_FREE 0u    /* no such channel; its memory is the guest's again */
#define VGPU_CHANNEL_OPEN 1u    /* in use */
#define VGPU_CHANNEL_LOST 2u    /* its executor is gone; the guest must destroy the channel */
#define VGPU_CHANNEL_CLOSING 3u /* CHANNEL_DESTROY was taken, executor still going */

struct vgpu_ctrl_page {
	struct vgpu_ctrl_cmd cmd;                /* 0x000 */
	__le32 channel_state[VGPU_MAX_CHANNELS];  /* 0x040 [H] */
	__le32 buffer_ack[VGPU_MAX_CHANNELS];     /* 0x140 [H] BUFFER_REMOVEs completed per channel since its create */
	__le32 events[VGPU_MAX_CHANNELS];        /* 0x240 [H] counts up before the channel's interrupt */
	__u8 reserved[4096 - 0x340];             /* 0x340 of it 0x400 to 0xd00: struct vgpu_status */
};
VGPU_ABI_SIZE(vgpu_ctrl_page, 4096);
VGPU_ABI_AT(vgpu_ctrl_page, channel_state, 0x40);
VGPU_ABI_AT(vgpu_ctrl_page, buffer_ack, 0x140);
VGPU_ABI_AT(vgpu_ctrl_page, events, 0x240);

/* ---- Channel memory: one guest process <-> its executor ------------------------------------------------- */

/*
 * Layout of the channel area, every part at a fixed offset:
 *   header (1 page) | submission ring | completion ring | event slots | payload (the rest)
 * Ring indices are free-running __u32 counters; entry i lives at i & (ENTRIES - 1). Payload positions are
 * free-running __u64 byte counters; byte p lives at payload_offset + p % payload_bytes. A payload span never
 * wraps: the producer skips to the start of the payload instead (the skipped bytes count as used).
 */
#define VGPU_SQ_ENTRIES 1024u
#define VGPU_CQ_ENTRIES 1024u
#define VGPU_EVENT_SLOTS 4096u
#define VGPU_GATES 256u
/* The gate of an event slot: the guest, not an EVENT_RECORD, raises the slot's generation then. */
#define VGPU_SLOT_GATE(slot) (VGPU_GATES + (slot))
#define VGPU_CHANNEL_SQ_OFFSET 0x1000u
#define VGPU_CHANNEL_CQ_OFFSET 0x11000u
#define VGPU_CHANNEL_EVENTS_OFFSET 0x21000u
#define VGPU_CHANNEL_PAYLOAD_OFFSET 0x31000u
#define VGPU_CHANNEL_MIN_BYTES (VGPU_CHANNEL_PAYLOAD_OFFSET + 0x10000u)
/* What vgpu.ko and channel.sock allocate when they can. */
#define VGPU_CHANNEL_BYTES (VGPU_CHANNEL_PAYLOAD_OFFSET + 0x200000u)
/* Longest payload span of one entry. */
#define VGPU_MAX_SPAN(payload_bytes) ((payload_bytes) / 2)

struct vgpu_channel_header {
	/* 0x00: constants, written by whoever creates the area (kernel module or vgpud-vf) before CHANNEL_CREATE */
	__le32 magic;         /* 0x00 [G] VGPU_MAGIC */
	__le32 abi_version;   /* 0x04 [G] */
	__le64 payload_bytes; /* 0x08 [G] multiple of 4096; the host uses min(this, what the area really has) */
	__le32 unused_pid;    /* 0x10 [G] 0; drivers before VGPU_FEATURE_CLIENT_PID: the process, for the host's log */
	__le32 mbz0[11];      /* 0x14 */
	/* 0x40: submission, guest's line */
	__le32 sq_tail;          /* 0x40 [G] entries produced */
	__le32 cq_head;          /* 0x44 [G] completions consumed */
	__le32 cq_need_wakeup;   /* 0x48 [G] 1: a thread sleeps, raise the interrupt with the next completion,
	                         *          event-slot update or state change */
	__le32 mbz1[13];         /* 0x4c */
	/* 0x80: host's line */
	__le32 sq_head;          /* 0x80 [H] entries consumed (copied out of the ring) */
	__le32 cq_tail;          /* 0x84 [H] completions produced */
	__le32 sq_need_wakeup;   /* 0x88 [H] 1: the executor sleeps, ring the doorbell after producing. Whoever rings
	                         *          takes it to 0 first, so that one ring wakes it, however much is produced */
	__le32 state;            /* 0x8c [H] VGPU_CHANNEL_OPEN once an executor serves it, VGPU_CHANNEL_LOST when it is gone */
	__le64 payload_released; /* 0x90 [H] payload bytes below this position are free again */
	__le32 sticky_error;     /* 0x98 [H] CUresult that poisons the context, 0 = none */
	__le32 printed;          /* 0x9c [H] bytes of kernel output that PRINT_READ can fetch */
	__le32 mbz2[8];          /* 0xa0 */
	/* 0xc0: text of the last error, for the human: NUL terminated, [H] */
	char error_text[512];   /* 0xc0 */
	__u8 reserved[0x800 - 0x2c0];
	/* 0x800: gates, see GATE_WAIT; the guest rings the doorbell after each write */
	__le64 gate[VGPU_GATES]; /* 0x800 [G] the highest generation that is open, 0 = none */
};
VGPU_ABI_SIZE(vgpu_channel_header, 4096);
VGPU_ABI_AT(vgpu_channel_header, sq_tail, 0x40);
VGPU_ABI_AT(vgpu_channel_header, sq_head, 0x80);
VGPU_ABI_AT(vgpu_channel_header, payload_released, 0x90);
VGPU_ABI_AT(vgpu_channel_header, sticky_error, 0x98);
VGPU_ABI_AT(vgpu_channel_header, printed, 0x9c);
VGPU_ABI_AT(vgpu_channel_header, error_text, 0xc0);
VGPU_ABI_AT(vgpu_channel_header, gate, 0x800);

/* One event slot; the guest chooses slots. One slot has one record at a time that has not been reached, or is a gate. */
struct vgpu_event_slot {
	__le64 generation;   /* [H] the highest EVENT_RECORD generation that has completed; 0 = none */
	__le64 timestamp_ns; /* [H] host clock at that completion; written before `generation` (release) */
};
VGPU_ABI_SIZE(vgpu_event_slot, 16);

/* Submission entry. args[] are op specific, see the table below; unused args must be zero. */
struct vgpu_sqe {
	__le32 op;           /* 0x00 [G] VGPU_OP_* */
	__le32 flags;        /* 0x04 [G] VGPU_SQE_*, unknown bits are CUDA_ERROR_INVALID_VALUE */
	__le64 seqno;        /* 0x08 [G] strictly increasing by 1 from 1 per channel */
	__le64 payload_pos;  /* 0x10 [G] free-running position of this entry's payload span */
	__le32 payload_len;  /* 0x18 [G] its length, 0 = none */
	__le32 stream;       /* 0x1c [G] stream id; VGPU_STREAM_* or an id given to STREAM_CREATE */
	__le64 args[4];      /* 0x20 [G] */
};
VGPU_ABI_SIZE(vgpu_sqe, 64);
VGPU_ABI_AT(vgpu_sqe, payload_pos, 0x10);
VGPU_ABI_AT(vgpu_sqe, args, 0x20);

#define VGPU_SQE_WANT_COMPLETION (1u << 0) /* answer with a completion entry when the operation is done */

/* Completion entry: one for each VGPU_SQE_WANT_COMPLETION entry, in order of completion. */
struct vgpu_cqe {
	__le64 seqno;    /* 0x00 [H] of the submission */
	__le32 status;   /* 0x08 [H] CUresult */
	__le32 mbz;      /* 0x0c */
	__le64 value[6]; /* 0x10 [H] op specific */
};
VGPU_ABI_SIZE(vgpu_cqe, 64);

#define VGPU_STREAM_LEGACY 0u     /* the legacy default stream (CUstream 0 and 1) */
#define VGPU_STREAM_PER_THREAD 2u /* base id; per-thread default streams are created streams with own ids */
#define VGPU_STREAM_FIRST 16u     /* ids >= this are chosen by the guest */
#define VGPU_STREAM_NON_BLOCKING 1u /* STREAM_CREATE flag: no implicit ordering with the legacy stream */

/*
 * Operations. "-> v0, v1" are completion values. Stream-ordered operations are marked [S]: they run when all
 * earlier work of their stream (and, as CUDA defines it, of the legacy stream) is done. The others run at once,
 * in ring order. Handles (modules, functions, streams, event slots) are chosen by the guest unless returned.
 *
 *  op               args                                            payload               completion
 *  NOP                                                                                     fence of the ring
 *  MEM_ALLOC        bytes                                                                   -> address
 *  MEM_FREE         address                                         waits for all work of the channel first
 *  MEM_INFO                                                                                 -> free, total
 *  MODULE_BEGIN     module, image bytes                             starts an upload
 *  MODULE_DATA      module, offset                                  image bytes
 *  MODULE_LOAD      module; VGPU_FATBIN_KIND_PART                                           -> functions, globals,
 *                   address, bytes: shared memory for its managed variables,                bytes that its managed
 *                   0, 0: they are device memory                                            variables take
 *  MODULE_UNLOAD    module                                          waits for all work of the channel first
 *  MODULE_FUNCTION  module, name bytes                              in: name; out: struct vgpu_function_info
 *                                                                   and its params        -> function, bytes out
 *  MODULE_GLOBAL    module                                          in: name              -> address, bytes
 *  FUNCTION_SET     function, VGPU_FUNC_ATTR_*, value
 *  STREAM_CREATE    stream id, flags, priority                      not refused (2: too many): -> stream id
 *  STREAM_DESTROY   stream id                                       its queued work still completes
 *  LAUNCH [S]       function                                        struct vgpu_launch + parameter bytes
 *  COPY_IN [S]      device address                                  bytes to copy to the device
 *  COPY_OUT [S]     device address                                  out: bytes copied from the device
 *  COPY_DEV [S]     destination, source, bytes
 *  BUF_IN [S]       device address, buffer id, offset, bytes        pinned host -> device
 *  BUF_OUT [S]      device address, buffer id, offset, bytes        device -> pinned host
 *  FILL [S]         address, value, element bytes (1|2|4), count
 *  EVENT_RECORD [S] slot, generation                                slot's generation is set when reached
 *  EVENT_WAIT [S]   slot, generation                                later work of the stream waits for it
 *  STREAM_SYNC [S]                                                  completion = all earlier work of the stream
 *  CONTEXT_SYNC                                                     completion = all earlier work of the channel
 *  DEVICE_INFO                                                      out: struct vgpu_device_info
 *  GATE_WAIT [S]    gate, generation                                later work of the stream waits until the guest
 *                                                                   opens the gate; out of the ring, so that neither
 *                                                                   a full ring nor an entry that waits holds it up.
 *                                                                   Below VGPU_GATES, or a VGPU_SLOT_GATE
 *  LIMIT_SET        VGPU_LIMIT_*, value                             CUDA_ERROR_INVALID_VALUE: too late to change it
 *  PRINT_READ                                                       out: text that kernels have written, the oldest
 *                                                                   first       -> bytes, VGPU_PRINT_*; works after
 *                                                                   a fault too
 *  CONTEXT_RESET    drops everything: work, memory, modules, streams, textures, errors; keeps the channel
 *  TEXTURE_CREATE                                                  struct vgpu_texture and its levels  -> handle
 *  TEXTURE_DESTROY  handle                                          waits for all work of the channel first
 *  STREAM_QUERY     stream id                                                               -> 0: all that was given to
 *                                                                   the stream itself is done, 1: not yet
 *  BUF_ADDRESS      buffer id                                                               -> address, bytes: where
 *                                                                   kernels, copies and fills reach the buffer, from
 *                                                                   now on and until BUFFER_REMOVE, across a
 *                                                                   CONTEXT_RESET as well. CUDA_ERROR_NOT_SUPPORTED:
 *                                                                   this GPU's kernels reach none
 *  WAIT_VALUE [S]   address, value, bytes (4|8), VGPU_WAIT_*        later work of the stream waits until the word there
 *                                                                   is as asked; the executor looks once a millisecond
 *  WRITE_VALUE [S]  address, value, bytes (4|8)                     one store; what was done before is seen before it
 *  MODULE_FUNCTION_NAME  module, index                              out: name of that kernel, as much as fits
 *                                                                   -> kernels of the module, bytes of the name; 0
 *                                                                   bytes: there is no such index
 *  MEM_CREATE       bytes                                           device memory without an address -> its number
 *  MEM_RELEASE      number                                          no part of it may be mapped
 *  MEM_MAP          number, offset, address, bytes                  gives a part of it an address; a part has one at a
 *                                                                   time (CUDA_ERROR_NOT_SUPPORTED)
 *  MEM_UNMAP        address, bytes                                  of whole MEM_MAPs; waits for all work of the channel
 *                                                                   first. The contents stay
 *  TENSOR_MAP                                                       in and out: struct vgpu_tensor_map_request
 */
#define VGPU_OP_NOP 0u
#define VGPU_OP_MEM_ALLOC 1u
#define VGPU_OP_MEM_FREE 2u
#define VGPU_OP_MEM_INFO 3u
#define VGPU_OP_MODULE_BEGIN 4u
#define VGPU_OP_MODULE_DATA 5u
#define VGPU_OP_MODULE_LOAD 6u
#define VGPU_OP_MODULE_UNLOAD 7u
#define VGPU_OP_MODULE_FUNCTION 8u
#define VGPU_OP_MODULE_GLOBAL 9u
#define VGPU_OP_FUNCTION_SET 10u
#define VGPU_OP_STREAM_CREATE 11u
#define VGPU_OP_STREAM_DESTROY 12u
#define VGPU_OP_LAUNCH 13u
#define VGPU_OP_COPY_IN 14u
#define VGPU_OP_COPY_OUT 15u
#define VGPU_OP_COPY_DEV 16u
#define VGPU_OP_BUF_IN 17u
#define VGPU_OP_BUF_OUT 18u
#define VGPU_OP_FILL 19u
#define VGPU_OP_EVENT_RECORD 20u
#define VGPU_OP_EVENT_WAIT 21u
#define VGPU_OP_STREAM_SYNC 22u
#define VGPU_OP_CONTEXT_SYNC 23u
#define VGPU_OP_CONTEXT_RESET 24u
#define VGPU_OP_DEVICE_INFO 25u
#define VGPU_OP_GATE_WAIT 26u
#define VGPU_OP_LIMIT_SET 27u
#define VGPU_OP_PRINT_READ 28u
#define VGPU_OP_TEXTURE_CREATE 29u
#define VGPU_OP_TEXTURE_DESTROY 30u
#define VGPU_OP_STREAM_QUERY 31u
#define VGPU_OP_BUF_ADDRESS 32u
#define VGPU_OP_WAIT_VALUE 33u
#define VGPU_OP_WRITE_VALUE 34u
#define VGPU_OP_MODULE_FUNCTION_NAME 35u
#define VGPU_OP_MEM_CREATE 36u
#define VGPU_OP_MEM_RELEASE 37u
#define VGPU_OP_MEM_MAP 38u
#define VGPU_OP_MEM_UNMAP 39u
#define VGPU_OP_TENSOR_MAP 40u
#define VGPU_OP_COUNT 41u

/* Addresses of MEM_MAP, and what all its sizes and places are multiples of. */
#define VGPU_MAPPED_VA 0x780000000000ull
#define VGPU_MAPPED_BYTES (1ull << 40)
#define VGPU_MAPPED_GRAIN (1ull << 21)
/* An image of fatbins that are to be linked: a fatbin whose entries of this kind hold one whole fatbin each. Bytes 48 to
 * 51 of the header of such an entry: the most registers of a thread (CU_JIT_MAX_REGISTERS), 0 = any. */
#define VGPU_FATBIN_KIND_PART 0x7670u

#define VGPU_LIMIT_PRINTF_FIFO 1u /* = CU_LIMIT_PRINTF_FIFO_SIZE; the host may keep less */
#define VGPU_LIMIT_MALLOC_HEAP 2u /* = CU_LIMIT_MALLOC_HEAP_SIZE; fixed once a kernel that allocates was launched */
/* 0 .. VGPU_BUFFER_PARTS-1: in which part of the addresses of buffers those that are added from now on begin. The
 * devices of one process each use another, so that a process can have all buffers at the addresses of kernels. */
#define VGPU_LIMIT_BUFFER_PART 3u
/* The same of the addresses of device memory, before there is any: no two devices of a process have the same then. Not
 * that of MEM_MAP, whose addresses the guest chooses. CUDA_ERROR_NOT_SUPPORTED: the GPU's driver chooses addresses. */
#define VGPU_LIMIT_VRAM_PART 4u
#define VGPU_BUFFER_PARTS 16u

#define VGPU_WAIT_GEQ 0u /* word - value, signed, is not negative */
#define VGPU_WAIT_EQ 1u
#define VGPU_WAIT_AND 2u /* word & value is not 0 */
#define VGPU_WAIT_NOR 3u /* ~(word | value) is not 0 */

#define VGPU_PRINT_STDOUT 0u
#define VGPU_PRINT_STDERR 1u

/*
 * Errors. A failed operation with WANT_COMPLETION carries its CUresult in the completion. A failed posted
 * operation that does not poison the context is reported in `status` of the next completion of the channel
 * that would have been 0. A fault (700, 715, 716, 717, 719, ...) sets sticky_error, fails everything queued and
 * later with that code, until CONTEXT_RESET. The sentence that explains it stands in error_text.
 */

#define VGPU_FUNC_ATTR_MAX_DYNAMIC_SHARED 8u /* = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
#define VGPU_FUNC_ATTR_CARVEOUT 9u           /* = ..._PREFERRED_SHARED_MEMORY_CARVEOUT, a hint */

struct vgpu_launch {
	__le32 grid[3];        /* 0x00 */
	__le32 block[3];       /* 0x0c */
	__le32 dynamic_shared; /* 0x18 bytes */
	__le32 param_bytes;    /* 0x1c that follow this struct */
	__le32 flags;          /* 0x20 VGPU_LAUNCH_* */
	__le32 cluster;        /* 0x24 VGPU_CLUSTER: blocks of a cluster, 0 = the launch does not say */
};
VGPU_ABI_SIZE(vgpu_launch, 40);
/* Three numbers of blocks, each at most 255. */
#define VGPU_CLUSTER(x, y, z) ((x) | (y) << 8 | (z) << 16)
#define VGPU_LAUNCH_COOPERATIVE (1u << 0) /* all blocks resident at once; CUDA error 720 when they do not fit */

struct vgpu_param {
	__le32 offset; /* in the parameter buffer */
	__le32 bytes;
};
VGPU_ABI_SIZE(vgpu_param, 8);

/*
 * Answer of DEVICE_INFO. attribute[i] is the value of CUdevice_attribute i, of the last ones what is named here; PCI
 * address and UUID come from the transport.
 */
#define VGPU_DEVICE_ATTRIBUTES 256u
#define VGPU_ATTRIBUTE_TENSOR_MAPS_BY_HOST 252u /* 1: TENSOR_MAP works, and kernels read no others */
#define VGPU_ATTRIBUTE_MANAGED_IN_TURNS 253u /* 1: the host may use managed memory only while nothing runs; \
                                              * HOST_NATIVE_ATOMIC_SUPPORTED is then the device's own */
#define VGPU_ATTRIBUTE_MAPPABLE_MEMORY 254u /* 1: MEM_CREATE works */
#define VGPU_ATTRIBUTE_SHARED_BUFFERS 255u /* 1: BUF_ADDRESS works */
struct vgpu_device_info {
	char name[128];
	__le64 total_memory;
	__s32 attribute[VGPU_DEVICE_ATTRIBUTES];
};
VGPU_ABI_SIZE(vgpu_device_info, 1160);

/* Answer of MODULE_FUNCTION; struct vgpu_param[param_count] follows. */
struct vgpu_function_info {
	__le32 param_count;          /* 0x00 */
	__le32 param_bytes;          /* 0x04 whole parameter buffer */
	__le32 static_shared_bytes;  /* 0x08 */
	__le32 const_bytes;          /* 0x0c */
	__le32 local_bytes;          /* 0x10 per thread */
	__le32 registers;            /* 0x14 per thread, >= 1 */
	__le32 max_threads;          /* 0x18 per block, for this function */
	__le32 max_dynamic_shared;   /* 0x1c bytes allowed without FUNCTION_SET */
	__le32 ptx_version;          /* 0x20 e.g. 75 */
	__le32 binary_version;       /* 0x24 e.g. 75 */
	__le32 cluster;              /* 0x28 VGPU_CLUSTER: blocks of a cluster that it was built for, 0 = any */
	__le32 flags;                /* 0x2c VGPU_FUNCTION_* */
};
VGPU_ABI_SIZE(vgpu_function_info, 48);
#define VGPU_FUNCTION_CLUSTER_MUST_BE_SET (1u << 0) /* a launch has to say how many blocks a cluster has */

/*
 * Payload of TEXTURE_CREATE: a texture or surface object over memory of this channel, struct vgpu_texture_level[levels]
 * follows. The handle in the answer is what kernels pass to tex, suld, sust, ... Every texel must be inside one live
 * allocation or module variable. The numbers of formats and modes are those of cuda.h.
 */
#define VGPU_TEXTURE_BUFFER 0u /* linear memory, one dimension; reads beyond it are zero */
#define VGPU_TEXTURE_1D 1u
#define VGPU_TEXTURE_2D 2u
#define VGPU_TEXTURE_3D 3u
#define VGPU_TEXTURE_CUBE 4u /* layers = 6 per cube */

#define VGPU_TEXTURE_SURFACE (1u << 0)       /* suld, sust, sured; the sampling fields must be zero */
#define VGPU_TEXTURE_LAYERED (1u << 1)
#define VGPU_TEXTURE_LINEAR (1u << 2)        /* filter between texels */
#define VGPU_TEXTURE_MIP_LINEAR (1u << 3)    /* filter between levels */
#define VGPU_TEXTURE_NORMALIZED (1u << 4)    /* coordinates 0..1 */
#define VGPU_TEXTURE_READ_FLOAT (1u << 5)    /* 8 and 16 bit integers are read as 0..1 or -1..1 */
#define VGPU_TEXTURE_SRGB (1u << 6)
#define VGPU_TEXTURE_ALL_FLAGS 0x7fu
#define VGPU_TEXTURE_MAX_LEVELS 17u

struct vgpu_texture {
	__le32 shape;       /* 0x00 VGPU_TEXTURE_* */
	__le32 flags;       /* 0x04 VGPU_TEXTURE_*, unknown bits are CUDA_ERROR_INVALID_VALUE */
	__le32 width;       /* 0x08 texels */
	__le32 height;      /* 0x0c 1 where there is none */
	__le32 depth;       /* 0x10 1 where there is none */
	__le32 layers;      /* 0x14 1 where there is none */
	__le32 format;      /* 0x18 CUarray_format */
	__le32 channels;    /* 0x1c 1, 2 or 4 */
	__le32 levels;      /* 0x20 1..VGPU_TEXTURE_MAX_LEVELS */
	__le32 address[3];  /* 0x24 CUaddress_mode of each axis */
	__le32 lod_bias;    /* 0x30 this and the next two: bits of a float */
	__le32 lod_min;     /* 0x34 */
	__le32 lod_max;     /* 0x38 */
	__le32 mbz;         /* 0x3c */
	__le32 border[4];   /* 0x40 bits of each channel */
};
VGPU_ABI_SIZE(vgpu_texture, 0x50);
VGPU_ABI_AT(vgpu_texture, levels, 0x20);
VGPU_ABI_AT(vgpu_texture, border, 0x40);

struct vgpu_texture_level {
	__le64 address;
	__le64 pitch; /* bytes between rows */
	__le64 slice; /* bytes between layers, faces, depth slices */
};
VGPU_ABI_SIZE(vgpu_texture_level, 24);

#endif
