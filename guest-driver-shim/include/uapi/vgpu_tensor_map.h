/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * A tensor map as the program's libcuda makes it (cuTensorMapEncodeTiled) and kernels of the soft GPU read it: 128 bytes
 * that programs treat as opaque and copy where they like. A kernel may change it with tensormap.replace and a program may
 * write anything into it, so every field is hostile wherever it is used. Only for devices whose attribute
 * CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED is 1: another driver's kernels do not know this layout.
 */
#ifndef VGPU_TENSOR_MAP_H
#define VGPU_TENSOR_MAP_H

#include "vgpu_abi.h"

#define VGPU_TENSOR_MAP_MAGIC 0x314d5456u /* "VTM1" */
#define VGPU_TENSOR_MAP_RANK 5u

struct vgpu_tensor_map {
	__le32 magic;      /* 0x00 VGPU_TENSOR_MAP_MAGIC */
	__u8 type;         /* 0x04 VGPU_TENSOR_* */
	__u8 rank_minus_1; /* 0x05 0..4 */
	__u8 interleave;   /* 0x06 0, the only one there is */
	__u8 swizzle;      /* 0x07 VGPU_SWIZZLE_* */
	__u8 atomicity;    /* 0x08 VGPU_ATOM_*, of VGPU_SWIZZLE_128 */
	__u8 fill;         /* 0x09 what is outside of the tensor: 0 = zero, 1 = not a number */
	__u8 mbz[6];       /* 0x0a */
	__le64 address;    /* 0x10 of the tensor, a multiple of 16 */
	__le64 size[VGPU_TENSOR_MAP_RANK];           /* 0x18 elements, 1..2^32; of dimensions that there are not: anything */
	__le64 stride[VGPU_TENSOR_MAP_RANK - 1];     /* 0x40 bytes from one element of dimension 1, 2 ... to the next, multiples of 16 */
	__le16 box[VGPU_TENSOR_MAP_RANK];            /* 0x60 elements, 1..256 */
	__u8 element_stride[VGPU_TENSOR_MAP_RANK];   /* 0x6a 1..8; that of dimension 0 does not count */
	__u8 mbz2[17];                               /* 0x6f */
};
VGPU_ABI_SIZE(vgpu_tensor_map, 128);
VGPU_ABI_AT(vgpu_tensor_map, address, 0x10);
VGPU_ABI_AT(vgpu_tensor_map, size, 0x18);
VGPU_ABI_AT(vgpu_tensor_map, stride, 0x40);
VGPU_ABI_AT(vgpu_tensor_map, box, 0x60);
VGPU_ABI_AT(vgpu_tensor_map, element_stride, 0x6a);

/* Types of elements, as tensormap.replace numbers them. */
#define VGPU_TENSOR_U8 0u
#define VGPU_TENSOR_U16 1u
#define VGPU_TENSOR_U32 2u
#define VGPU_TENSOR_S32 3u
#define VGPU_TENSOR_U64 4u
#define VGPU_TENSOR_S64 5u
#define VGPU_TENSOR_F16 6u
#define VGPU_TENSOR_F32 7u
#define VGPU_TENSOR_F32_FTZ 8u
#define VGPU_TENSOR_F64 9u
#define VGPU_TENSOR_BF16 10u
#define VGPU_TENSOR_TF32 11u
#define VGPU_TENSOR_TF32_FTZ 12u
#define VGPU_TENSOR_B4X16 13u     /* four bits each, without gaps */
#define VGPU_TENSOR_B4X16_P64 14u /* the same; in shared memory 16 of them in 16 bytes */
#define VGPU_TENSOR_B6X16_P32 15u /* six bits each; in shared memory 16 of them in 16 bytes */
#define VGPU_TENSOR_TYPES 16u

/* Which bits of a shared address are changed, so that columns lie in different banks. */
#define VGPU_SWIZZLE_NONE 0u
#define VGPU_SWIZZLE_32 1u
#define VGPU_SWIZZLE_64 2u
#define VGPU_SWIZZLE_128 3u
#define VGPU_ATOM_16 0u /* bytes that stay together */
#define VGPU_ATOM_32 1u
#define VGPU_ATOM_32_FLIP_8 2u /* and the halves of 16 bytes change places in every other row */
#define VGPU_ATOM_64 3u

/*
 * TENSOR_MAP: what cuTensorMapEncodeTiled and its like were given, and the map as the driver of the GPU makes it, whose
 * layout nobody else knows. Numbers are CUDA's; what a call does not have is 0.
 */
#define VGPU_TENSOR_MAP_TILED 0u
#define VGPU_TENSOR_MAP_IM2COL 1u
#define VGPU_TENSOR_MAP_IM2COL_WIDE 2u
#define VGPU_TENSOR_MAP_REPLACE 3u /* the address in `map` */
struct vgpu_tensor_map_request {
	__le32 kind;              /* 0x00 VGPU_TENSOR_MAP_* */
	__le32 type;              /* 0x04 */
	__le32 rank;              /* 0x08 1..5 */
	__le32 interleave;        /* 0x0c */
	__le32 swizzle;           /* 0x10 */
	__le32 promotion;         /* 0x14 */
	__le32 fill;              /* 0x18 */
	__le32 mode;              /* 0x1c of IM2COL_WIDE */
	__le64 address;           /* 0x20 */
	__le64 size[5];           /* 0x28 */
	__le64 stride[4];         /* 0x50 */
	__le32 box[5];            /* 0x70 of IM2COL: channels of a pixel, pixels of a column */
	__le32 element_stride[5]; /* 0x84 */
	__s32 lower[3];           /* 0x98 corners of IM2COL; of IM2COL_WIDE the first */
	__s32 upper[3];           /* 0xa4 */
	__u8 map[128];            /* 0xb0 */
};
VGPU_ABI_SIZE(vgpu_tensor_map_request, 304);

#endif
