// SPDX-License-Identifier: GPL-2.0-only
/* How user space sees the memory that it shares with the host. */
#include <linux/cc_platform.h>
#include <linux/mm.h>

#include "vgpu.h"
#include "vgpu_compat.h"

/* How much one fault maps. */
#define VGPU_FAULT_PAGES (SZ_2M >> PAGE_SHIFT)

/* So many of the pages from @at on are put there at once. */
static unsigned long vgpu_vm_count(struct vm_fault *vmf, struct vgpu_mem *mem, unsigned long at)
{
	unsigned long in_vma = (vmf->vma->vm_end - vmf->address) >> PAGE_SHIFT;

	return at < mem->page_count ?
		       min3(in_vma, mem->page_count - at, (unsigned long)VGPU_FAULT_PAGES) : 0;
}

static vm_fault_t vgpu_vm_insert(struct vm_fault *vmf, struct vgpu_mem *mem, unsigned long at)
{
	unsigned long want = vgpu_vm_count(vmf, mem, at), left = want;
	int ret = want ? vm_insert_pages(vmf->vma, vmf->address, mem->pages + at, &left) : -EFAULT;

	/* Another thread may have been here, or further on, already. */
	if (!ret || ret == -EBUSY || left < want)
		return VM_FAULT_NOPAGE;
	return ret == -ENOMEM ? VM_FAULT_OOM : VM_FAULT_SIGBUS;
}

/* Pages of the DMA API have no references of their own. After removal one may be missing. */
static vm_fault_t vgpu_vm_insert_dma(struct vm_fault *vmf, struct vgpu_mem *mem, unsigned long at)
{
	unsigned long count = vgpu_vm_count(vmf, mem, at), i;
	/* What removal has put there is encrypted where the pages shared with the host were not. */
	pgprot_t prot = mem->mapped ? vmf->vma->vm_page_prot :
				      vm_get_page_prot(vmf->vma->vm_flags);
	vm_fault_t ret = VM_FAULT_SIGBUS;

	for (i = 0; i < count && mem->pages[at + i]; i++) {
		ret = vmf_insert_pfn_prot(vmf->vma, vmf->address + i * PAGE_SIZE,
					  page_to_pfn(mem->pages[at + i]), prot);
		if (ret != VM_FAULT_NOPAGE)
			break;
	}
	return i ? VM_FAULT_NOPAGE : ret;
}

static vm_fault_t vgpu_vm_fault(struct vm_fault *vmf)
{
	struct vgpu_mem *mem = vmf->vma->vm_private_data;
	unsigned long at = vmf->pgoff - mem->cookie;
	vm_fault_t ret;

	if (mem->vgpu->direct)
		return vgpu_vm_insert(vmf, mem, at);
	down_read(&mem->vgpu->binding);
	ret = vgpu_vm_insert_dma(vmf, mem, at);
	up_read(&mem->vgpu->binding);
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
	if (!(vma->vm_flags & VM_SHARED) || vma->vm_flags & VM_EXEC || mem->owner ||
	    vma_pages(vma) > mem->bytes >> PAGE_SHIFT)
		return -EINVAL;
	if (!mem->vgpu->direct && cc_platform_has(CC_ATTR_GUEST_MEM_ENCRYPT))
		vma->vm_page_prot = pgprot_decrypted(vma->vm_page_prot);
	vm_flags_mod(vma, (mem->vgpu->direct ? VM_MIXEDMAP : VM_PFNMAP | VM_IO | VM_DONTDUMP) |
			  VM_DONTEXPAND | VM_DONTCOPY, VM_MAYEXEC);
	vma->vm_private_data = mem;
	vma->vm_ops = &vgpu_vm_ops;
	vgpu_vm_open(vma);
	return 0;
}
