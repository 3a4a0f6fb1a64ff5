// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory shared with the host: who holds it for how long, and how user space sees it.
 *
 * The host and user processes write the same pages at the same time, so they can't be synchronised:
 * DMA has to be coherent, as on x86 (Kconfig). Where the device reaches pages as they are, memory is
 * made of ordinary pages, and only their addresses for the device end with the binding. Elsewhere
 * (bounce buffers, confidential guests) it comes from the DMA API; when the driver is unbound,
 * ordinary pages with the same bytes take its place.
 */
#include <linux/cc_platform.h>
#include <linux/dma-mapping.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "vgpu.h"
#include "vgpu_compat.h"

/* Largest piece that is asked for, and how much one fault maps. */
#define VGPU_PIECE_MAX_BYTES SZ_2M
#define VGPU_FAULT_PAGES (VGPU_PIECE_MAX_BYTES >> PAGE_SHIFT)
#define VGPU_LIST_GFP (GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)
/* So many addresses for the device are made or ended at once, without being preempted. */
#define VGPU_MAP_PIECES 64
/* The host maps each piece by itself, and may have few mappings. */
#define VGPU_PINNED_PIECES 8192

/*
 * May pages of our own be mapped for good, or has their memory to come from the DMA API? The latter
 * holds for bounce buffers, so for confidential guests.
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

static void vgpu_mem_free(struct kref *ref);

void vgpu_mem_put(struct vgpu_mem *mem)
{
	kref_put(&mem->ref, vgpu_mem_free);
}

/* ---- Addresses for the device ---- */

/* While the device is in use: the list has a reference from now on. */
static void vgpu_mem_link(struct vgpu_mem *mem)
{
	spin_lock(&mem->vgpu->mem_lock);
	if (list_empty(&mem->link)) {
		list_add(&mem->link, &mem->vgpu->mems);
		kref_get(&mem->ref);
	}
	spin_unlock(&mem->vgpu->mem_lock);
}

/* Is the list's reference the caller's now? */
static bool vgpu_mem_unlink(struct vgpu_mem *mem)
{
	bool linked;

	spin_lock(&mem->vgpu->mem_lock);
	linked = !list_empty(&mem->link);
	list_del_init(&mem->link);
	spin_unlock(&mem->vgpu->mem_lock);
	return linked;
}

static int vgpu_mem_map_some(struct vgpu_mem *mem)
{
	struct device *dev = &mem->vgpu->pdev->dev;
	unsigned int end = min(mem->mapped + VGPU_MAP_PIECES, mem->piece_count);

	for (; mem->mapped < end; mem->mapped++) {
		struct vgpu_piece *piece = &mem->pieces[mem->mapped];

		piece->dma = dma_map_page_attrs(dev, piece->page, 0, piece->bytes,
						DMA_BIDIRECTIONAL,
						DMA_ATTR_SKIP_CPU_SYNC | DMA_ATTR_NO_WARN);
		if (dma_mapping_error(dev, piece->dma))
			return -ENOMEM;
	}
	return 0;
}

/* With vgpu_dev.direct. 0, or -ENOMEM, -EINTR and as vgpu_enter(); then some pieces may have addresses. */
static int vgpu_mem_map(struct vgpu_mem *mem)
{
	struct vgpu_dev *vgpu = mem->vgpu;
	int ret = 0;

	while (!ret && mem->mapped < mem->piece_count) {
		if (fatal_signal_pending(current))
			return -EINTR;
		ret = vgpu_enter(vgpu);
		if (ret)
			return ret;
		vgpu_mem_link(mem);
		ret = vgpu_mem_map_some(mem);
		vgpu_leave(vgpu);
		cond_resched();
	}
	return ret;
}

static void vgpu_mem_unmap_some(struct vgpu_mem *mem)
{
	unsigned int left = mem->mapped - min(mem->mapped, VGPU_MAP_PIECES);

	while (mem->mapped > left) {
		struct vgpu_piece *piece = &mem->pieces[--mem->mapped];

		dma_unmap_page_attrs(&mem->vgpu->pdev->dev, piece->dma, piece->bytes,
				     DMA_BIDIRECTIONAL, DMA_ATTR_SKIP_CPU_SYNC);
	}
}

/* The host does not use it any more. From VGPU_GONE on removal does this. */
static void vgpu_mem_unmap(struct vgpu_mem *mem)
{
	struct vgpu_dev *vgpu = mem->vgpu;
	bool gone, more = true;

	while (more) {
		read_lock(&vgpu->access_lock);
		gone = vgpu->state == VGPU_GONE;
		if (!gone)
			vgpu_mem_unmap_some(mem);
		more = !gone && mem->mapped;
		read_unlock(&vgpu->access_lock);
		cond_resched();
	}
	if (!gone && vgpu_mem_unlink(mem))
		vgpu_mem_put(mem);
}

/* ---- Pages ---- */

static void vgpu_mem_free_pages(struct vgpu_mem *mem)
{
	unsigned long i;

	if (mem->owner) {
		unpin_user_pages_dirty_lock(mem->pages, mem->page_count, true);
		atomic64_sub(mem->page_count, &mem->owner->pinned_vm);
		mmdrop(mem->owner);
		return;
	}
	for (i = 0; i < mem->page_count; i++) {
		if (mem->pages[i])
			__free_page(mem->pages[i]);
		if (i % VGPU_FAULT_PAGES == 0)
			cond_resched();
	}
}

static void vgpu_mem_free_dma(struct vgpu_mem *mem)
{
	while (mem->mapped) {
		struct vgpu_piece *piece = &mem->pieces[--mem->mapped];

		dma_free_noncontiguous(&mem->vgpu->pdev->dev, piece->bytes, piece->sgt,
				       DMA_BIDIRECTIONAL);
	}
}

/*
 * Without vgpu_dev.direct the list has no reference: who frees memory takes it off, under @binding.
 * What removal has left there, as the device would not let go of it, nobody can give back any more.
 */
static void vgpu_mem_give_dma(struct vgpu_mem *mem)
{
	struct vgpu_dev *vgpu = mem->vgpu;

	down_read(&vgpu->binding);
	if (vgpu_mem_unlink(mem)) {
		if (vgpu->state != VGPU_GONE)
			vgpu_mem_free_dma(mem);
		mem->page_count = 0;
	}
	up_read(&vgpu->binding);
}

static void vgpu_mem_free(struct kref *ref)
{
	struct vgpu_mem *mem = container_of(ref, struct vgpu_mem, ref);

	if (!mem->vgpu->direct)
		vgpu_mem_give_dma(mem);
	vgpu_mem_free_pages(mem);
	kvfree(mem->pieces);
	kvfree(mem->pages);
	vgpu_user_uncharge(mem->user, mem->bytes);
	kfree(mem);
}

/* The host has let go of it, or never had it: gives up the channel's reference. */
void vgpu_mem_release(struct vgpu_mem *mem)
{
	if (mem->vgpu->direct)
		vgpu_mem_unmap(mem);
	vgpu_mem_put(mem);
}

/* ---- Making it ---- */

/* Charged to @user; the pages come next. */
static struct vgpu_mem *vgpu_mem_new(struct vgpu_dev *vgpu, struct vgpu_user *user, u64 bytes)
{
	unsigned long pages = bytes >> PAGE_SHIFT;
	struct vgpu_mem *mem;
	int ret = vgpu_user_charge(user, bytes);

	if (ret)
		return ERR_PTR(ret);
	mem = kzalloc(sizeof(*mem), GFP_KERNEL_ACCOUNT);
	if (!mem) {
		vgpu_user_uncharge(user, bytes);
		return ERR_PTR(-ENOMEM);
	}
	kref_init(&mem->ref);
	INIT_LIST_HEAD(&mem->link);
	mem->vgpu = vgpu;
	mem->user = user;
	mem->bytes = bytes;
	mem->pages = kvcalloc(pages, sizeof(*mem->pages), VGPU_LIST_GFP);
	mem->pieces = kvcalloc(min_t(unsigned long, pages, VGPU_MAX_SEGMENTS),
			       sizeof(*mem->pieces), VGPU_LIST_GFP);
	if (mem->pages && mem->pieces)
		return mem;
	vgpu_mem_put(mem);
	return ERR_PTR(-ENOMEM);
}

static bool vgpu_piece_alloc(struct vgpu_piece *piece)
{
	piece->page = alloc_pages(VGPU_GFP, get_order(piece->bytes));
	if (piece->page)
		split_page(piece->page, get_order(piece->bytes));
	return piece->page;
}

static bool vgpu_piece_alloc_dma(struct vgpu_mem *mem, struct vgpu_piece *piece)
{
	struct vgpu_dev *vgpu = mem->vgpu;
	bool made = false;

	down_read(&vgpu->binding);
	if (vgpu->state == VGPU_RUNNING) {
		piece->sgt = dma_alloc_noncontiguous(&vgpu->pdev->dev, piece->bytes,
						     DMA_BIDIRECTIONAL, VGPU_GFP, 0);
		made = piece->sgt;
	}
	if (made) {
		piece->dma = sg_dma_address(piece->sgt->sgl);
		mem->mapped++;
		spin_lock(&vgpu->mem_lock);
		if (list_empty(&mem->link))
			list_add(&mem->link, &vgpu->mems);
		spin_unlock(&vgpu->mem_lock);
	}
	up_read(&vgpu->binding);
	return made;
}

static void vgpu_mem_take_pages(struct vgpu_mem *mem, struct vgpu_piece *piece)
{
	struct sg_page_iter at;
	unsigned long i;

	if (piece->sgt)
		for_each_sgtable_page(piece->sgt, &at, 0)
			mem->pages[mem->page_count++] = sg_page_iter_page(&at);
	else
		for (i = 0; i < piece->bytes >> PAGE_SHIFT; i++)
			mem->pages[mem->page_count++] = piece->page + i;
}

static int vgpu_mem_fill(struct vgpu_mem *mem)
{
	size_t bytes = VGPU_PIECE_MAX_BYTES;
	u64 left = mem->bytes;

	while (left) {
		struct vgpu_piece *piece = &mem->pieces[mem->piece_count];

		if (fatal_signal_pending(current))
			return -EINTR;
		if (READ_ONCE(mem->vgpu->state) != VGPU_RUNNING)
			return -EAGAIN;
		if (mem->piece_count == VGPU_MAX_SEGMENTS || !bytes)
			return -ENOMEM;
		bytes = min_t(u64, rounddown_pow_of_two(left), bytes);
		piece->bytes = bytes;
		if (!(mem->vgpu->direct ? vgpu_piece_alloc(piece) :
					  vgpu_piece_alloc_dma(mem, piece))) {
			/* What does not exist now is not asked for again. */
			bytes = bytes > PAGE_SIZE ? bytes / 2 : 0;
			continue;
		}
		mem->piece_count++;
		vgpu_mem_take_pages(mem, piece);
		left -= bytes;
		cond_resched();
	}
	return 0;
}

static int vgpu_mem_pin_pages(struct vgpu_mem *mem, u64 address)
{
	unsigned long pages = mem->bytes >> PAGE_SHIFT;

	mem->owner = current->mm;
	mmgrab(mem->owner);
	while (mem->page_count < pages) {
		int want = min_t(unsigned long, pages - mem->page_count, VGPU_FAULT_PAGES);
		int got;

		if (fatal_signal_pending(current))
			return -EINTR;
		got = pin_user_pages_fast(address + (mem->page_count << PAGE_SHIFT), want,
					  FOLL_WRITE | FOLL_LONGTERM,
					  mem->pages + mem->page_count);
		if (got <= 0)
			return got ? got : -EFAULT;
		mem->page_count += got;
		atomic64_add(got, &mem->owner->pinned_vm);
		cond_resched();
	}
	return 0;
}

/* The pages as the fewest pieces. */
static int vgpu_mem_make_pieces(struct vgpu_mem *mem)
{
	unsigned long i;

	for (i = 0; i < mem->page_count; i++) {
		struct vgpu_piece *last = mem->pieces + mem->piece_count - 1;

		if (i && page_to_pfn(mem->pages[i]) ==
			 page_to_pfn(last->page) + (last->bytes >> PAGE_SHIFT)) {
			last->bytes += PAGE_SIZE;
			continue;
		}
		if (mem->piece_count == VGPU_PINNED_PIECES)
			return -E2BIG;
		last[1].page = mem->pages[i];
		last[1].bytes = PAGE_SIZE;
		mem->piece_count++;
	}
	return 0;
}

/**
 * vgpu_mem_alloc() - zeroed memory for the host and user space
 * @vgpu: the device that will access it
 * @user: who pays
 * @bytes: page aligned
 *
 * Return: the memory with one reference, for vgpu_mem_release(), or -ENOMEM (a limit, or there is
 * none left), -EINTR, -ERESTARTSYS, -EAGAIN and -ENODEV as vgpu_enter().
 */
struct vgpu_mem *vgpu_mem_alloc(struct vgpu_dev *vgpu, struct vgpu_user *user, u64 bytes)
{
	struct vgpu_mem *mem = vgpu_mem_new(vgpu, user, bytes);
	int ret;

	if (IS_ERR(mem))
		return mem;
	ret = vgpu_user_begin_work(user);
	if (!ret) {
		ret = vgpu_mem_fill(mem);
		if (!ret && vgpu->direct)
			ret = vgpu_mem_map(mem);
		vgpu_user_end_work(user);
	}
	if (!ret)
		return mem;
	vgpu_mem_release(mem);
	return ERR_PTR(ret);
}

/**
 * vgpu_mem_pin() - memory of the current process for the host
 * @vgpu: the device that will access it
 * @user: who pays
 * @address: page aligned
 * @bytes: page aligned
 *
 * Return: as vgpu_mem_alloc(), or -EOPNOTSUPP (the device can't reach it), -EFAULT (not the
 * process's own memory), -E2BIG (too many pieces).
 */
struct vgpu_mem *vgpu_mem_pin(struct vgpu_dev *vgpu, struct vgpu_user *user, u64 address, u64 bytes)
{
	struct vgpu_mem *mem;
	int ret;

	if (!vgpu->direct)
		return ERR_PTR(-EOPNOTSUPP);
	mem = vgpu_mem_new(vgpu, user, bytes);
	if (IS_ERR(mem))
		return mem;
	ret = vgpu_user_begin_work(user);
	if (!ret) {
		ret = vgpu_mem_pin_pages(mem, address);
		if (!ret)
			ret = vgpu_mem_make_pieces(mem);
		if (!ret)
			ret = vgpu_mem_map(mem);
		vgpu_user_end_work(user);
	}
	if (!ret)
		return mem;
	vgpu_mem_release(mem);
	return ERR_PTR(ret);
}

/* ---- The driver is unbound ---- */

static void vgpu_mem_copy_pages(struct vgpu_mem *mem)
{
	unsigned long i;

	for (i = 0; i < mem->page_count; i++) {
		struct page *page = alloc_page(GFP_KERNEL | __GFP_NOWARN);

		if (page)
			copy_highpage(page, mem->pages[i]);
		mem->pages[i] = page;
		cond_resched();
	}
	vgpu_mem_free_dma(mem);
}

static struct vgpu_mem *vgpu_mems_take(struct vgpu_dev *vgpu)
{
	struct vgpu_mem *mem;

	spin_lock(&vgpu->mem_lock);
	mem = list_first_entry_or_null(&vgpu->mems, struct vgpu_mem, link);
	if (mem)
		list_del_init(&mem->link);
	spin_unlock(&vgpu->mem_lock);
	return mem;
}

/**
 * vgpu_mems_detach() - end what binds memory to the device
 * @vgpu: in VGPU_GONE; the device does not use memory any more, but for ordinary pages it may
 *
 * With vgpu_dev.direct the list's reference is ours now. Without it @binding is held for writing, and
 * whoever frees memory waits for that first.
 */
void vgpu_mems_detach(struct vgpu_dev *vgpu)
{
	struct vgpu_mem *mem;

	while ((mem = vgpu_mems_take(vgpu))) {
		if (!vgpu->direct) {
			vgpu_mem_copy_pages(mem);
			continue;
		}
		while (mem->mapped) {
			vgpu_mem_unmap_some(mem);
			cond_resched();
		}
		vgpu_mem_put(mem);
	}
}

/* ---- User space ---- */

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
