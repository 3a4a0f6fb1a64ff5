// SPDX-License-Identifier: GPL-2.0-only
/* How user space sees the memory that it shares with the host. */
#include <linux/cc_platform.h>
#include <linux/mm.h>

#include "vgpu.h"
#include "vgpu_compat.h"

/* How much one fault maps. */
#define VGPU_FAULT_PAGES (SZ_2M >> PAGE_SHIFT)

static vm_fault_t vgpu_vm_insert(struct vm_fault *vmf, struct vgpu_mem *mem, unsigned long at)
{
	unsigned long in_vma = (vmf->vma->vm_end - vmf->address) >> PAGE_SHIFT;
	unsigned long want = min3(in_vma, mem->page_count - at, (unsigned long)VGPU_FAULT_PAGES);
	unsigned long left = want;
	int ret = vm_insert_pages(vmf->vma, vmf->address, mem->pages + at, &left);

	/* Another thread may have been here, or further on, already. */
	if (!ret || ret == -EBUSY || left < want)
		return VM_FAULT_NOPAGE;
	return ret == -ENOMEM ? VM_FAULT_OOM : VM_FAULT_SIGBUS;
}

/* Pages of the DMA API have no references of their own. After removal one may be missing. */
static vm_fault_t vgpu_vm_insert_dma(struct vm_fault *vmf, struct vgpu_mem *mem, unsigned long at)
{
	pgprot_t prot = vmf->vma->vm_page_prot;

	if (!mem->pages[at])
		return VM_FAULT_SIGBUS;
	/* Removal has replaced the shared pages. Confidential guests encrypt only the new ones. */
	if (list_empty_careful(&mem->link))
		prot = vm_get_page_prot(vmf->vma->vm_flags);
	return vmf_insert_pfn_prot(vmf->vma, vmf->address, page_to_pfn(mem->pages[at]), prot);
}

static vm_fault_t vgpu_vm_fault(struct vm_fault *vmf)
{
	struct vgpu_mem *mem = vmf->vma->vm_private_data;
	struct vgpu_dev *vgpu = mem->channel->vgpu;
	unsigned long at = vmf->pgoff - mem->cookie;
	vm_fault_t ret;

	if (at >= mem->page_count)
		return VM_FAULT_SIGBUS;
	if (vgpu->direct)
		return vgpu_vm_insert(vmf, mem, at);
	if (down_read_killable(&vgpu->binding))
		return VM_FAULT_NOPAGE; /* dying */
	ret = vgpu_vm_insert_dma(vmf, mem, at);
	up_read(&vgpu->binding);
	return ret;
}

static void vgpu_vm_open(struct vm_area_struct *vma)
{
	struct vgpu_mem *mem = vma->vm_private_data;

	kref_get(&mem->ref);
}

static void vgpu_vm_close(struct vm_area_struct *vma)
{
	vgpu_mem_put(vma->vm_private_data);
}

static const struct vm_operations_struct vgpu_vm_ops = {
	.open = vgpu_vm_open,
	.close = vgpu_vm_close,
	.fault = vgpu_vm_fault,
};

/**
 * vgpu_mem_mmap() - map the start of memory into user space
 * @mem: referenced by the caller for the time of the call
 * @vma: shared; forked children, who must not drive their parent's rings, do not inherit it
 *
 * Return: 0 or -EINVAL.
 */
int vgpu_mem_mmap(struct vgpu_mem *mem, struct vm_area_struct *vma)
{
	bool direct = mem->channel->vgpu->direct;

	if (!(vma->vm_flags & VM_SHARED) || vma->vm_flags & VM_EXEC || mem->owner ||
	    vma_pages(vma) > mem->page_count)
		return -EINVAL;
	if (!direct && cc_platform_has(CC_ATTR_GUEST_MEM_ENCRYPT))
		vma->vm_page_prot = pgprot_decrypted(vma->vm_page_prot);
	vm_flags_mod(vma, (direct ? VM_MIXEDMAP : VM_PFNMAP | VM_IO | VM_DONTDUMP) |
			  VM_DONTEXPAND | VM_DONTCOPY, VM_MAYEXEC);
	vma->vm_private_data = mem;
	vma->vm_ops = &vgpu_vm_ops;
	vgpu_vm_open(vma);
	return 0;
}
