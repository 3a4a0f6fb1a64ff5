// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/channel/page_swap.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

#include "guest-driver-shim/libcuda/channel/os.h"
#include "guest-driver-shim/libcuda/channel/own_thread.h"

namespace vgpud::cuda {
namespace {

constexpr uint64_t kPage = 4096;

// Not memcpy: a sanitizer in the program would have it look whether each byte is in a block of the program's.
void Copy(void* to, const void* from, uint64_t bytes) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

void* Pointer(uint64_t address) { return reinterpret_cast<void*>(address); }

// Is the caller's stack there?
bool IsOnStack(uint64_t at, uint64_t bytes) {
  const auto here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  return here - at < bytes;
}

// Waits in the kernel, too, where the program may have that.
OwnedFd OpenFaults(uint64_t features) {
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
  for (const int more : {0, UFFD_USER_MODE_ONLY}) {
    OwnedFd fd(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | more)));
    if (!fd) continue;
    uffdio_api api{};
    api.api = UFFD_API;
    api.features = features;
    if (ioctl(fd.get(), UFFDIO_API, &api) == 0) return fd;
  }
  return OwnedFd();
}

bool Watch(int faults, uint64_t at, uint64_t bytes, uint64_t mode) {
  uffdio_register about{};
  about.range = {at, bytes};
  about.mode = mode;
  return ioctl(faults, UFFDIO_REGISTER, &about) == 0;
}

bool Protect(int faults, uint64_t at, uint64_t bytes, bool protect) {
  uffdio_writeprotect about{};
  about.range = {at, bytes};
  about.mode = protect ? UFFDIO_WRITEPROTECT_MODE_WP : 0;
  return ioctl(faults, UFFDIO_WRITEPROTECT, &about) == 0;
}

// A page that is not there yet can't be protected.
void Touch(uint64_t at, uint64_t bytes) {
  for (uint64_t page = at; page < at + bytes; page += kPage)
    __atomic_fetch_or(static_cast<unsigned char*>(Pointer(page)), 0, __ATOMIC_RELAXED);
}

bool Fill(int faults, uint64_t at, uint64_t bytes, const void* from) {
  for (uint64_t done = 0; done < bytes;) {
    uffdio_copy about{};
    about.dst = at + done;
    about.src = reinterpret_cast<uint64_t>(from) + done;
    about.len = bytes - done;
    if (ioctl(faults, UFFDIO_COPY, &about) == 0) return true;
    if (about.copy > 0) done += static_cast<uint64_t>(about.copy);
    if (errno != EAGAIN && about.copy <= 0) return false;
  }
  return true;
}

// Does the kernel tell that the watched pages have moved? `failed` is readable when they have not.
bool AwaitMoved(int faults, int failed) {
  for (;;) {
    pollfd p[2] = {{faults, POLLIN, 0}, {failed, POLLIN, 0}};
    if (poll(p, 2, -1) < 0 && errno != EINTR) return false;
    uffd_msg message{};
    if ((p[0].revents & POLLIN) != 0 && read(faults, &message, sizeof message) == sizeof message &&
        message.event == UFFD_EVENT_REMAP)
      return true;
    if ((p[1].revents & POLLIN) != 0) return false;
  }
}

// The kernel lists mappings in the order of their addresses, and says only in that list what was said of them. A page
// of a mapping that is moved below all others takes that along.
constexpr uint64_t kLowest = 64 << 10;  // that a program may use, on most systems
constexpr int kLowPages = 16;

void* ReserveLow() {
  for (int i = 0; i < kLowPages; ++i) {
    void* const wanted = Pointer(kLowest + i * kPage);
    void* const low =
        mmap(wanted, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (low == wanted) return low;
    if (low != MAP_FAILED) munmap(low, kPage);
  }
  return nullptr;
}

// Not by the C library's functions where they look whether the thread is to be cancelled: that is in memory, too.
bool Move(void* from, void* to, int more) {
  return syscall(SYS_mremap, from, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED | more, to) >= 0;
}

// Does this thread use the page whatever it does? Its stack here, and what the C library keeps for it.
bool IsOwnThreads(uint64_t page) {
  const auto near = [page](const void* what, uint64_t around) {
    return reinterpret_cast<uint64_t>(what) + around - page < kPage + 2 * around;
  };
  return near(__builtin_frame_address(0), 4 * kPage) || near(__builtin_thread_pointer(), 2 * kPage);
}

// Reads the treatment of one private page. Returns nullopt when the page must stay where it is.
std::optional<Treatment> TreatmentOfPage(uint64_t page) {
  if (IsOwnThreads(page)) return std::nullopt;
  const SignalsBlocked blocked;
  const OwnedFd faults = OpenFaults(0), smaps(open("/proc/thread-self/smaps", O_RDONLY | O_CLOEXEC));
  if (!faults || !smaps || !Watch(faults.get(), page, kPage, UFFDIO_REGISTER_MODE_MISSING)) return std::nullopt;
  void* const low = ReserveLow();
  if (low == nullptr) return std::nullopt;
  if (!Move(Pointer(page), low, MREMAP_DONTUNMAP)) {
    munmap(low, kPage);
    return std::nullopt;
  }
  char text[8192];
  const long bytes = syscall(SYS_read, smaps.get(), text, sizeof text);
  if (!Move(low, Pointer(page), 0)) {
    // Without its bytes the program can't go on: it would read zeros.
    if (!Fill(faults.get(), page, kPage, low)) abort();
    munmap(low, kPage);
  }
  return TreatmentIn({text, static_cast<size_t>(bytes > 0 ? bytes : 0)}, reinterpret_cast<uint64_t>(low));
}

}  // namespace

std::optional<Treatment> TreatmentOf(uint64_t at, uint64_t bytes) {
  std::vector<uint64_t> pages;
  ForEachMapping(at, bytes, [&](const Mapping& m, uint64_t) { pages.push_back(std::max(m.begin, at)); });
  std::optional<Treatment> all;
  for (const uint64_t page : pages) {
    const auto one = TreatmentOfPage(page);
    if (!one) return ReadTreatment(at, bytes);
    if (all && *all != *one) return std::nullopt;
    all = one;
  }
  return all.value_or(Treatment{});
}

bool CanReplacePages() { return OpenFaults(UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_EVENT_REMAP).get() >= 0; }

bool IsOwnMemory(uint64_t at, uint64_t bytes) {
  if (IsOnStack(at, bytes)) return false;
  uint64_t own = 0;
  ForEachMapping(at, bytes, [&](const Mapping& m, uint64_t part) {
    if (m.may == "rw-p" && m.inode == 0 && !m.is_stack()) own += part;
  });
  return own == bytes;
}

uint64_t BytesShown(uint64_t at, uint64_t bytes, const void* other) {
  const auto there = reinterpret_cast<uint64_t>(other);
  Mapping of_other;
  ForEachMapping(there, kPage, [&](const Mapping& m, uint64_t) { of_other = m; });
  uint64_t same = 0;
  ForEachMapping(at, bytes, [&](const Mapping& m, uint64_t part) {
    // Where the file's byte 0 would be.
    const uint64_t shift = (m.begin - m.offset) - at, shift_of_other = (of_other.begin - of_other.offset) - there;
    if (m.is_shared() && m.inode == of_other.inode && m.device == of_other.device && shift == shift_of_other)
      same += part;
  });
  return same;
}

bool ReplacePages(uint64_t at, uint64_t bytes, void* other, bool (*put)(void* context), void* context) {
  const SignalsBlocked blocked;
  const OwnedFd faults = OpenFaults(UFFD_FEATURE_PAGEFAULT_FLAG_WP);
  if (!faults || !Watch(faults.get(), at, bytes, UFFDIO_REGISTER_MODE_WP)) return false;
  Touch(at, bytes);
  if (!Protect(faults.get(), at, bytes, true)) return false;
  Copy(other, Pointer(at), bytes);
  const bool done = put(context);
  if (!done) Protect(faults.get(), at, bytes, false);
  return done;
}

bool RestorePages(uint64_t at, uint64_t bytes, const void* other) {
  if (IsOnStack(at, bytes)) return false;
  const SignalsBlocked blocked;
  const OwnedFd faults = OpenFaults(UFFD_FEATURE_EVENT_REMAP);
  const OwnedFd failed(eventfd(0, EFD_CLOEXEC));
  if (!faults || !failed) return false;
  void* const fresh = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (fresh == MAP_FAILED) return false;
  if (!Watch(faults.get(), reinterpret_cast<uint64_t>(fresh), bytes, UFFDIO_REGISTER_MODE_MISSING)) {
    munmap(fresh, bytes);
    return false;
  }
  // From the moment at which the fresh pages are there whoever uses them waits; whoever has moved them, until it is
  // heard of.
  std::thread mover;
  const bool started = StartThread(&mover, [&] {
    if (mremap(fresh, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, Pointer(at)) != MAP_FAILED) return;
    munmap(fresh, bytes);
    const uint64_t one = 1;
    (void)!write(failed.get(), &one, sizeof one);
  });
  if (!started) {
    munmap(fresh, bytes);
    return false;
  }
  const bool moved = AwaitMoved(faults.get(), failed.get());
  const bool filled = moved && Fill(faults.get(), at, bytes, other);
  mover.join();
  // Without its bytes the program can't go on: it would read zeros.
  if (moved && !filled) abort();
  return moved;
}

}  // namespace vgpud::cuda
