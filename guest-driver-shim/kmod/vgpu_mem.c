// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory shared with the host: who holds it for how long, and how user space sees it.
 *
 * The host and user processes write the same pages at the same time, so they can't be synchronised:
 * DMA has to be coherent, as on x86 (Kconfig). Mappings are filled by faults only. That way taking
 * them away on removal can't miss one that is just being made.
 */
#include <linux/cc_platform.h>
#include <linux/dma-mapping.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "vgpu.h"
#include "vgpu_compat.h"

/* Largest piece that is asked for, and how much one fault maps. */
#define VGPU_PIECE_MAX_BYTES SZ_2M
#define VGPU_FAULT_PAGES (VGPU_PIECE_MAX_BYTES >> PAGE_SHIFT)
#define VGPU_LIST_GFP (GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/*
 * May pages of our own be mapped for good, or has their memory to come from the DMA API? The latter
 * holds for bounce buffers, so for confidential guests. It zeroes all twice.
 */
bool vgpu_mem_is_direct(struct device *dev)
{
	struct page *page = alloc_page(GFP_KERNEL);
	bool direct = false;
	dma_addr_t dma;

	if (!page)
		return false;
	dma = dma_map_page(dev, page, 0, PAGE_SIZE, DMA_BIDIRECTIONAL);
	if (!dma_mapping_error(dev, dma)) {
		direct = !dma_need_sync(dev, dma);
		dma_unmap_page(dev, dma, PAGE_SIZE, DMA_BIDIRECTIONAL);
	}
	__free_page(page);
	return direct;
}

static void vgpu_piece_free(struct vgpu_dev *vgpu, struct vgpu_piece *piece)
{
	struct device *dev = &vgpu->pdev->dev;

	if (piece->sgt) {
		dma_free_noncontiguous(dev, piece->bytes, piece->sgt, DMA_BIDIRECTIONAL);
		return;
	}
	dma_unmap_page_attrs(dev, piece->dma, piece->bytes, DMA_BIDIRECTIONAL,
			     DMA_ATTR_SKIP_CPU_SYNC);
	__free_pages(piece->page, get_order(piece->bytes));
}

static bool vgpu_piece_alloc(struct vgpu_dev *vgpu, struct vgpu_piece *piece, size_t bytes)
{
	struct device *dev = &vgpu->pdev->dev;

	piece->bytes = bytes;
	if (!vgpu->direct) {
		piece->sgt = dma_alloc_noncontiguous(dev, bytes, DMA_BIDIRECTIONAL, VGPU_GFP, 0);
		if (piece->sgt)
			piece->dma = sg_dma_address(piece->sgt->sgl);
		return piece->sgt;
	}
	piece->page = alloc_pages(VGPU_GFP, get_order(bytes));
	if (!piece->page)
		return false;
	piece->dma = dma_map_page_attrs(dev, piece->page, 0, bytes, DMA_BIDIRECTIONAL,
					DMA_ATTR_SKIP_CPU_SYNC | DMA_ATTR_NO_WARN);
	if (!dma_mapping_error(dev, piece->dma))
		return true;
	__free_pages(piece->page, get_order(bytes));
	return false;
}

/* The host has let go of the pages, and no mapping shows them. */
static void vgpu_mem_free_pages(struct vgpu_mem *mem)
{
	unsigned int i;

	lockdep_assert_held(&mem->vgpu->mem_lock);
	if (!mem->pieces)
		return;
	for (i = 0; i < mem->piece_count; i++)
		vgpu_piece_free(mem->vgpu, &mem->pieces[i]);
	kvfree(mem->pieces);
	mem->pieces = NULL;
	mem->vgpu->pinned_bytes -= mem->bytes;
	vgpu_user_uncharge(mem->user, mem->bytes);
}

static void vgpu_mem_free(struct kref *ref)
{
	struct vgpu_mem *mem = container_of(ref, struct vgpu_mem, ref);

	mutex_lock(&mem->vgpu->mem_lock);
	list_del(&mem->link);
	vgpu_mem_free_pages(mem);
	mutex_unlock(&mem->vgpu->mem_lock);
	kvfree(mem->pages);
	if (mem->stand_in)
		__free_pages(mem->stand_in, 1);
	kfree(mem);
}

void vgpu_mem_put(struct vgpu_mem *mem)
{
	kref_put(&mem->ref, vgpu_mem_free);
}

static int vgpu_mem_fill(struct vgpu_mem *mem)
{
	size_t bytes = VGPU_PIECE_MAX_BYTES;
	unsigned long page_count = 0, i;
	struct sg_page_iter at;
	u64 left = mem->bytes;

	while (left) {
		struct vgpu_piece *piece = &mem->pieces[mem->piece_count];
		int state = READ_ONCE(mem->vgpu->state);

		if (fatal_signal_pending(current))
			return -EINTR;
		if (state != VGPU_RUNNING)
			return state == VGPU_QUIET ? -EAGAIN : -ENODEV;
		if (mem->piece_count == VGPU_MAX_SEGMENTS || !bytes)
			return -ENOMEM;
		bytes = min_t(u64, rounddown_pow_of_two(left), bytes);
		if (!vgpu_piece_alloc(mem->vgpu, piece, bytes)) {
			/* What does not exist now is not asked for again. */
			bytes = bytes > PAGE_SIZE ? bytes / 2 : 0;
			continue;
		}
		mem->piece_count++;
		if (piece->sgt)
			for_each_sgtable_page(piece->sgt, &at, 0)
				mem->pages[page_count++] = sg_page_iter_page(&at);
		for (i = 0; piece->page && i < bytes >> PAGE_SHIFT; i++)
			mem->pages[page_count++] = piece->page + i;
		left -= bytes;
		cond_resched();
	}
	return 0;
}

static struct vgpu_mem *vgpu_mem_new(struct vgpu_dev *vgpu, struct vgpu_user *user, u64 bytes)
{
	unsigned long pages = bytes >> PAGE_SHIFT;
	unsigned long pieces = min_t(unsigned long, pages, VGPU_MAX_SEGMENTS);
	struct vgpu_mem *mem = kzalloc(sizeof(*mem), GFP_KERNEL_ACCOUNT);

	if (!mem)
		return NULL;
	kref_init(&mem->ref);
	mem->vgpu = vgpu;
	mem->user = user;
	mem->bytes = bytes;
	mem->pages = kvcalloc(pages, sizeof(*mem->pages), VGPU_LIST_GFP);
	mem->pieces = kvcalloc(pieces, sizeof(*mem->pieces), VGPU_LIST_GFP);
	if (mem->pages && mem->pieces)
		return mem;
	kvfree(mem->pieces);
	kvfree(mem->pages);
	kfree(mem);
	return NULL;
}

/**
 * vgpu_mem_alloc() - zeroed memory for the host and user space
 * @vgpu: the device that will access it
 * @user: who pays
 * @bytes: page aligned
 *
 * Return: the memory with one reference, or -ENOMEM (a limit, or there is none left), -EINTR,
 * -EAGAIN and -ENODEV as vgpu_enter(). Its pages may be touched inside vgpu_enter() only.
 */
struct vgpu_mem *vgpu_mem_alloc(struct vgpu_dev *vgpu, struct vgpu_user *user, u64 bytes)
{
	struct vgpu_mem *mem;
	int srcu, ret;

	ret = vgpu_user_charge(user, bytes);
	if (ret)
		return ERR_PTR(ret);
	mem = vgpu_mem_new(vgpu, user, bytes);
	if (!mem) {
		vgpu_user_uncharge(user, bytes);
		return ERR_PTR(-ENOMEM);
	}
	/* Removal waits for this section, so it finds all there is in the list. */
	srcu = srcu_read_lock(&vgpu->srcu);
	ret = vgpu_mem_fill(mem);
	mutex_lock(&vgpu->mem_lock);
	list_add(&mem->link, &vgpu->mems);
	vgpu->pinned_bytes += bytes;
	mutex_unlock(&vgpu->mem_lock);
	if (ret) {
		vgpu_mem_put(mem);
		mem = ERR_PTR(ret);
	}
	srcu_read_unlock(&vgpu->srcu, srcu);
	return mem;
}

/**
 * vgpu_mem_release() - give up the reference of a channel or buffer
 * @mem: its memory
 *
 * The host has let go of it, or nobody can ask the host. As long as that is so the host may still
 * write to it, and it is parked: until the function was reset or the driver is unbound.
 */
void vgpu_mem_release(struct vgpu_mem *mem)
{
	struct vgpu_dev *vgpu = mem->vgpu;
	int state;

	mutex_lock(&vgpu->mem_lock);
	state = READ_ONCE(vgpu->state);
	if (state == VGPU_DEAD || state == VGPU_QUIET) {
		list_move(&mem->link, &vgpu->parked);
		vgpu->parked_bytes += mem->bytes;
		mem = NULL;
	}
	mutex_unlock(&vgpu->mem_lock);
	if (mem)
		vgpu_mem_put(mem);
}

/* The function was reset or is cut off from memory: gives back what was parked. */
void vgpu_mems_unpark(struct vgpu_dev *vgpu)
{
	struct vgpu_mem *mem;

	do {
		mutex_lock(&vgpu->mem_lock);
		mem = list_first_entry_or_null(&vgpu->parked, struct vgpu_mem, link);
		if (mem) {
			list_move(&mem->link, &vgpu->mems);
			vgpu->parked_bytes -= mem->bytes;
		}
		mutex_unlock(&vgpu->mem_lock);
		if (mem)
			vgpu_mem_put(mem);
	} while (mem);
}

/*
 * The driver is about to be unbound: from VGPU_GONE on, mappings show a stand-in. That is zeroes,
 * and for a channel its last header, which says that it is lost.
 */
void vgpu_mems_make_stand_ins(struct vgpu_dev *vgpu)
{
	struct vgpu_mem *mem;

	mutex_lock(&vgpu->mem_lock);
	list_for_each_entry(mem, &vgpu->mems, link) {
		mem->stand_in = alloc_pages(GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN, 1);
		if (mem->stand_in && !mem->cookie)
			copy_highpage(mem->stand_in, mem->pages[0]);
	}
	mutex_unlock(&vgpu->mem_lock);
}

/* Frees all pages. No mapping shows them, and DMA memory may not outlive the driver's binding. */
void vgpu_mems_detach(struct vgpu_dev *vgpu)
{
	struct vgpu_mem *mem;

	mutex_lock(&vgpu->mem_lock);
	list_for_each_entry(mem, &vgpu->mems, link)
		vgpu_mem_free_pages(mem);
	mutex_unlock(&vgpu->mem_lock);
}

/* Maps the page and what follows it. */
static vm_fault_t vgpu_vm_insert(struct vm_fault *vmf, struct vgpu_mem *mem, unsigned long at)
{
	unsigned long in_vma = (vmf->vma->vm_end - vmf->address) >> PAGE_SHIFT;
	unsigned long in_mem = (mem->bytes >> PAGE_SHIFT) - at;
	unsigned long count = min3(in_vma, in_mem, (unsigned long)VGPU_FAULT_PAGES), i;
	vm_fault_t ret;

	for (i = 0; i < count; i++) {
		ret = vmf_insert_pfn(vmf->vma, vmf->address + i * PAGE_SIZE,
				     page_to_pfn(mem->pages[at + i]));
		if (ret != VM_FAULT_NOPAGE)
			return i ? VM_FAULT_NOPAGE : ret;
	}
	return VM_FAULT_NOPAGE;
}

static vm_fault_t vgpu_vm_fault(struct vm_fault *vmf)
{
	struct vgpu_mem *mem = vmf->vma->vm_private_data;
	unsigned long at = vmf->pgoff - mem->cookie;
	vm_fault_t ret = VM_FAULT_SIGBUS;
	int srcu = srcu_read_lock(&mem->vgpu->srcu);

	/* Pairs with vgpu_remove(): the stand-ins are there before this state. */
	if (smp_load_acquire(&mem->vgpu->state) != VGPU_GONE)
		ret = vgpu_vm_insert(vmf, mem, at);
	else if (mem->stand_in)
		/* Not encrypted where the pages shared with the host are. */
		ret = vmf_insert_pfn_prot(vmf->vma, vmf->address, page_to_pfn(mem->stand_in + !!at),
					  vm_get_page_prot(vmf->vma->vm_flags));
	srcu_read_unlock(&mem->vgpu->srcu, srcu);
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
	if (!(vma->vm_flags & VM_SHARED) || vma_pages(vma) > mem->bytes >> PAGE_SHIFT)
		return -EINVAL;
	if (cc_platform_has(CC_ATTR_GUEST_MEM_ENCRYPT))
		vma->vm_page_prot = pgprot_decrypted(vma->vm_page_prot);
	vm_flags_set(vma, VM_PFNMAP | VM_IO | VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY);
	vma->vm_private_data = mem;
	vma->vm_ops = &vgpu_vm_ops;
	vgpu_vm_open(vma);
	return 0;
}
