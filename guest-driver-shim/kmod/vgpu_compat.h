/* SPDX-License-Identifier: GPL-2.0-only */
/* What differs between kernels from 6.1 on. Nothing else asks for a version. */
#ifndef VGPU_COMPAT_H
#define VGPU_COMPAT_H

#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/version.h>

#if KERNEL_VERSION(6, 3, 0) > LINUX_VERSION_CODE
static inline void vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set, vm_flags_t clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#endif

#ifndef PCI_IRQ_INTX
#define PCI_IRQ_INTX PCI_IRQ_LEGACY
#endif

#if KERNEL_VERSION(6, 12, 0) > LINUX_VERSION_CODE
static inline void __iomem *vgpu_pcim_iomap(struct pci_dev *pdev, int bar)
{
	int ret = pcim_iomap_regions(pdev, BIT(bar), KBUILD_MODNAME);

	return ret ? IOMEM_ERR_PTR(ret) : pcim_iomap_table(pdev)[bar];
}
#else
#define vgpu_pcim_iomap(pdev, bar) pcim_iomap_region(pdev, bar, KBUILD_MODNAME)
#endif

#endif
