// SPDX-License-Identifier: GPL-2.0
/* Memory shared with the host: allocation in chunks, DMA mapping, mapping into user space. */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/version.h>

#include "vgpu.h"

#define VGPU_CHUNK_MAX_ORDER 9

static void vgpu_mem_free(struct kref *ref)
{
	struct vgpu_mem *mem = container_of(ref, struct vgpu_mem, ref);
	unsigned int i;

	/* Still known to the device: leaking is the only safe thing. */
	if (WARN_ON_ONCE(mem->dma_dev))
		return;
	for (i = 0; i < mem->chunk_count; i++)
		__free_pages(mem->chunks[i].page, mem->chunks[i].order);
	kvfree(mem->chunks);
	kfree(mem);
}

void vgpu_mem_get(struct vgpu_mem *mem)
{
	kref_get(&mem->ref);
}

void vgpu_mem_put(struct vgpu_mem *mem)
{
	kref_put(&mem->ref, vgpu_mem_free);
}

void vgpu_mem_dma_unmap(struct vgpu_mem *mem)
{
	unsigned int i;

	if (!mem->dma_dev)
		return;
	for (i = 0; i < mem->chunk_count; i++)
		dma_unmap_page(mem->dma_dev, mem->chunks[i].dma, PAGE_SIZE << mem->chunks[i].order,
			       DMA_BIDIRECTIONAL);
	mem->dma_dev = NULL;
}

void *vgpu_mem_start(struct vgpu_mem *mem)
{
	return page_address(mem->chunks[0].page);
}

dma_addr_t vgpu_mem_dma(struct vgpu_mem *mem)
{
	return mem->chunks[0].dma;
}

static struct page *vgpu_alloc_chunk(unsigned long pages_left, unsigned int *order)
{
	unsigned int o = min_t(unsigned int, ilog2(pages_left), *order);
	struct page *page;

	for (;; o--) {
		gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;

		if (o)
			gfp |= __GFP_NORETRY;
		page = alloc_pages(gfp, o);
		if (page || !o)
			break;
	}
	/* What did not exist a moment ago is not asked for again. */
	*order = o;
	return page;
}

static int vgpu_mem_fill(struct vgpu_mem *mem, struct device *dev)
{
	unsigned long left = mem->bytes >> PAGE_SHIFT;
	unsigned long capacity = min_t(unsigned long, left, VGPU_MAX_SEGMENTS);
	unsigned int largest = VGPU_CHUNK_MAX_ORDER;

	mem->chunks = kvcalloc(capacity, sizeof(*mem->chunks), GFP_KERNEL_ACCOUNT);
	if (!mem->chunks)
		return -ENOMEM;
	mem->dma_dev = dev;
	while (left) {
		struct vgpu_chunk chunk = {};
		unsigned int order = largest;

		if (fatal_signal_pending(current))
			return -EINTR;
		if (mem->chunk_count == capacity)
			return -ENOMEM;
		chunk.page = vgpu_alloc_chunk(left, &order);
		if (!chunk.page)
			return -ENOMEM;
		chunk.order = order;
		if (order < largest && order < ilog2(left))
			largest = order;
		chunk.dma = dma_map_page(dev, chunk.page, 0, PAGE_SIZE << order, DMA_BIDIRECTIONAL);
		if (dma_mapping_error(dev, chunk.dma)) {
			__free_pages(chunk.page, order);
			return -EIO;
		}
		mem->chunks[mem->chunk_count++] = chunk;
		left -= 1ul << order;
		cond_resched();
	}
	return 0;
}

struct vgpu_mem *vgpu_mem_alloc(struct device *dev, u64 bytes)
{
	struct vgpu_mem *mem = kzalloc(sizeof(*mem), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!mem)
		return ERR_PTR(-ENOMEM);
	kref_init(&mem->ref);
	mem->bytes = bytes;
	ret = vgpu_mem_fill(mem, dev);
	if (ret) {
		vgpu_mem_dma_unmap(mem);
		vgpu_mem_put(mem);
		return ERR_PTR(ret);
	}
	return mem;
}

static void vgpu_vma_open(struct vm_area_struct *vma)
{
	vgpu_mem_get(vma->vm_private_data);
}

static void vgpu_vma_close(struct vm_area_struct *vma)
{
	vgpu_mem_put(vma->vm_private_data);
}

static const struct vm_operations_struct vgpu_vm_ops = {
	.open = vgpu_vma_open,
	.close = vgpu_vma_close,
};

/* A forked child must not drive its parent's rings. */
static void vgpu_vma_not_inherited(struct vm_area_struct *vma)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_set(vma, VM_DONTCOPY);
#else
	vma->vm_flags |= VM_DONTCOPY;
#endif
}

/* Maps the start of `mem`. The caller holds a reference for the time of the call. */
int vgpu_mem_mmap(struct vgpu_mem *mem, struct vm_area_struct *vma)
{
	unsigned long bytes = vma->vm_end - vma->vm_start;
	unsigned long at = 0;
	unsigned int i;

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (bytes > mem->bytes)
		return -EINVAL;
	for (i = 0; i < mem->chunk_count && at < bytes; i++) {
		unsigned long piece = min_t(unsigned long, PAGE_SIZE << mem->chunks[i].order, bytes - at);
		int ret = remap_pfn_range(vma, vma->vm_start + at, page_to_pfn(mem->chunks[i].page), piece,
					  vma->vm_page_prot);

		if (ret)
			return ret;
		at += piece;
	}
	vgpu_vma_not_inherited(vma);
	vma->vm_private_data = mem;
	vma->vm_ops = &vgpu_vm_ops;
	vgpu_vma_open(vma);
	return 0;
}
