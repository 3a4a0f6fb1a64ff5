/* SPDX-License-Identifier: Apache-2.0 */
/* What the library that programs are started with (in_front/device_files.c) asks of the device files. C and C++. */
#pragma once

#include <linux/ioctl.h>
#include <stdint.h>

/* The number of an open file: the same for all its descriptors. */
#define KERNEL_SIDE_WHICH_FILE _IOR('V', 1, uint64_t)

/* In front of an mmap: where in the file its pages are. A device decides that by what was said before; a file can't. */
struct kernel_side_map {
  uint64_t address, bytes; /* in */
  uint64_t offset;         /* out */
};
#define KERNEL_SIDE_MAP _IOWR('V', 2, struct kernel_side_map)
