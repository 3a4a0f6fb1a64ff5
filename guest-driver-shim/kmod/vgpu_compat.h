/* SPDX-License-Identifier: GPL-2.0-only */
/* What differs between kernels from 6.1 on. Nothing else asks for a version. */
#ifndef VGPU_COMPAT_H
#define VGPU_COMPAT_H

#include <linux/mm.h>
#include <linux/version.h>

#if KERNEL_VERSION(6, 3, 0) > LINUX_VERSION_CODE
static inline void vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set, vm_flags_t clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#endif

#endif
