/* SPDX-License-Identifier: GPL-2.0-only */
/* What differs between the kernels that this driver is built for (6.1 and later). Nothing else asks for a version. */
#ifndef VGPU_COMPAT_H
#define VGPU_COMPAT_H

#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}
#endif

#ifndef PCI_IRQ_INTX
#define PCI_IRQ_INTX PCI_IRQ_LEGACY
#endif

/* Requests and maps a whole BAR for as long as the driver is bound; an ERR_PTR() when that fails. */
static inline void __iomem *vgpu_pcim_iomap(struct pci_dev *pdev, int bar)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
	int ret = pcim_iomap_regions(pdev, BIT(bar), KBUILD_MODNAME);

	return ret ? IOMEM_ERR_PTR(ret) : pcim_iomap_table(pdev)[bar];
#else
	return pcim_iomap_region(pdev, bar, KBUILD_MODNAME);
#endif
}

#endif
