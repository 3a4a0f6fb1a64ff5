// SPDX-License-Identifier: Apache-2.0
// Finding images in the program's memory, reading that memory without trusting it, and joining images.
#include "guest-driver-shim/libcuda/channel/image.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "guest-driver-shim/include/uapi/vgpu_abi.h"
#include "guest-driver-shim/libcuda/channel/os.h"

namespace vgpud::cuda {
namespace {

constexpr uint32_t kWrapperMagic = 0x466243b1;
constexpr uint32_t kFatbinMagic = 0xba55ed50;

struct Wrapper {
  uint32_t magic;
  uint32_t version;
  const void* data;
  const void* more;
};
struct FatbinHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t entry_bytes;
};

bool Fatbin(const void* image, const MemoryReader& read, ImageExtent* out) {
  FatbinHeader header;
  if (!read(&header, image, sizeof header) || header.magic != kFatbinMagic) return false;
  if (header.version != 1 || header.header_bytes < sizeof header || header.entry_bytes > kMaxImageBytes) return false;
  *out = {image, header.header_bytes + header.entry_bytes};
  return true;
}

// An ELF file ends where its last section, segment or table ends.
bool Elf(const void* image, const MemoryReader& read, ImageExtent* out) {
  Elf64_Ehdr header;
  if (!read(&header, image, sizeof header) || header.e_ident[EI_CLASS] != ELFCLASS64) return false;
  uint64_t end = sizeof header;
  const auto extend = [&end](uint64_t offset, uint64_t bytes) {
    if (offset > kMaxImageBytes || bytes > kMaxImageBytes) return false;
    end = std::max(end, offset + bytes);
    return end <= kMaxImageBytes;
  };
  if (header.e_shnum > 0 && header.e_shentsize != sizeof(Elf64_Shdr)) return false;
  if (header.e_phnum > 0 && header.e_phentsize != sizeof(Elf64_Phdr)) return false;
  if (!extend(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr))) return false;
  if (!extend(header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr))) return false;
  const auto* bytes = static_cast<const std::byte*>(image);
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    if (!read(&section, bytes + header.e_shoff + i * sizeof section, sizeof section)) return false;
    if (section.sh_type != SHT_NOBITS && !extend(section.sh_offset, section.sh_size)) return false;
  }
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!read(&segment, bytes + header.e_phoff + i * sizeof segment, sizeof segment)) return false;
    if (!extend(segment.p_offset, segment.p_filesz)) return false;
  }
  *out = {image, end};
  return true;
}

bool Text(const void* image, const MemoryReader& read, ImageExtent* out) {
  const auto* at = static_cast<const char*>(image);
  uint64_t length = 0;
  char page[4096];
  for (;;) {
    const uint64_t step = sizeof page - (reinterpret_cast<uintptr_t>(at) + length) % sizeof page;
    if (length > kMaxImageBytes || !read(page, at + length, step)) return false;
    if (const void* nul = memchr(page, 0, step)) {
      length += static_cast<uint64_t>(static_cast<const char*>(nul) - page);
      break;
    }
    length += step;
  }
  *out = {image, length};
  return length > 0;
}

bool One(const void* image, const MemoryReader& read, ImageExtent* out) {
  uint32_t magic = 0;
  if (image == nullptr || !read(&magic, image, 1)) return false;
  char first = 0;
  memcpy(&first, &magic, 1);
  // Text may be shorter than a magic number.
  const bool binary = first == 0x7f || first == 0x50;
  if (!binary) return Text(image, read, out);
  if (!read(&magic, image, sizeof magic)) return false;
  if (magic == kFatbinMagic) return Fatbin(image, read, out);
  if (memcmp(&magic, ELFMAG, SELFMAG) == 0) return Elf(image, read, out);
  return Text(image, read, out);
}

// The list ends with a null pointer.
bool Linked(const void* list, const MemoryReader& read, std::vector<ImageExtent>* out) {
  uint64_t total = 0;
  for (size_t n = 0; n <= kMaxLinkedImages; ++n) {
    const void* fatbin = nullptr;
    if (!read(&fatbin, static_cast<const void* const*>(list) + n, sizeof fatbin)) return false;
    if (fatbin == nullptr) return true;
    ImageExtent extent;
    if (!Fatbin(fatbin, read, &extent)) return false;
    total += extent.bytes;
    if (total > kMaxImageBytes) return false;
    out->push_back(extent);
  }
  return false;
}

// docs/fatbin.md
constexpr uint16_t kPtx = 1;
struct Entry {
  uint16_t kind;
  uint16_t version = 0x0101;
  uint32_t header_bytes = 64;
  uint64_t payload_bytes;
  uint32_t rest[8] = {};  // not compressed, for any architecture, no flags
  uint32_t most_registers = 0;
  uint32_t more[3] = {};
};
static_assert(sizeof(Entry) == 64);

std::vector<std::byte> MakeFatbin(uint16_t kind, const std::vector<std::vector<std::byte>>& payloads,
                                  uint32_t most_registers = 0) {
  FatbinHeader header{kFatbinMagic, 1, sizeof(FatbinHeader), 0};
  std::vector<std::byte> out(sizeof header);
  const auto append = [&out](const void* from, size_t bytes) {
    const auto* at = static_cast<const std::byte*>(from);
    out.insert(out.end(), at, at + bytes);
  };
  for (const auto& payload : payloads) {
    const Entry entry{.kind = kind, .payload_bytes = (payload.size() + 7) / 8 * 8, .most_registers = most_registers};
    append(&entry, sizeof entry);
    append(payload.data(), payload.size());
    out.resize(out.size() + entry.payload_bytes - payload.size());
  }
  header.entry_bytes = out.size() - sizeof header;
  memcpy(out.data(), &header, sizeof header);
  return out;
}

bool IsFatbin(const std::vector<std::byte>& image) {
  return image.size() >= sizeof kFatbinMagic && memcmp(image.data(), &kFatbinMagic, sizeof kFatbinMagic) == 0;
}

// Of pages that other processes can't be shown: of a device, in a guest. Less than a pipe takes.
bool ReadThroughPipe(void* to, const void* from, size_t bytes) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
  const OwnedFd out(ends[0]), in(ends[1]);
  return write(in.get(), from, bytes) == static_cast<ssize_t>(bytes) &&
         read(out.get(), to, bytes) == static_cast<ssize_t>(bytes);
}

}  // namespace

bool ReadOwnMemory(void* to, const void* from, uint64_t bytes) {
  auto* target = static_cast<std::byte*>(to);
  auto* source = static_cast<std::byte*>(const_cast<void*>(from));
  while (bytes > 0) {
    iovec local{target, bytes}, remote{source, bytes};
    const ssize_t n = process_vm_readv(gettid(), &local, 1, &remote, 1, 0);
    if (n < 0 && (errno == EPERM || errno == ENOSYS)) {
      memcpy(target, source, bytes);
      return true;
    }
    if (n <= 0) {
      if (n == 0 || errno != EFAULT) return false;
      const uint64_t piece = std::min<uint64_t>(bytes, 4096 - reinterpret_cast<uint64_t>(source) % 4096);
      if (!ReadThroughPipe(target, source, piece)) return false;
      target += piece;
      source += piece;
      bytes -= piece;
      continue;
    }
    target += n;
    source += n;
    bytes -= static_cast<uint64_t>(n);
  }
  return true;
}

bool IsMapped(const void* start, uint64_t bytes) {
  constexpr uint64_t kPage = 4096;
  const auto address = reinterpret_cast<uint64_t>(start);
  const uint64_t first = address & ~(kPage - 1);
  uint64_t end;
  if (bytes == 0 || __builtin_add_overflow(address, bytes, &end) || end > ~uint64_t{0} - kPage) return false;
  const uint64_t pages = (end - first + kPage - 1) / kPage;
  unsigned char resident[1024];
  for (uint64_t page = 0; pages > 2 && page < pages; page += sizeof resident) {  // two are the ends
    const uint64_t count = std::min<uint64_t>(pages - page, sizeof resident);
    if (mincore(reinterpret_cast<void*>(first + page * kPage), count * kPage, resident) == 0) continue;
    if (errno != EPERM && errno != ENOSYS) return false;
    break;  // a jail lets nobody ask
  }
  char byte;
  return ReadOwnMemory(&byte, start, 1) && ReadOwnMemory(&byte, reinterpret_cast<const void*>(end - 1), 1);
}

bool FindImages(const void* image, const MemoryReader& read, std::vector<ImageExtent>* out) {
  out->clear();
  Wrapper wrapper;
  // Text may be shorter than a wrapper.
  if (image != nullptr && read(&wrapper.magic, image, 1) && read(&wrapper, image, sizeof wrapper) &&
      wrapper.magic == kWrapperMagic) {
    if ((wrapper.version != 1 && wrapper.version != 2) || wrapper.data == nullptr) return false;
    if (wrapper.version == 2 && wrapper.more != nullptr && !Linked(wrapper.more, read, out)) return false;
    if (!out->empty()) return true;
    image = wrapper.data;
    uint32_t magic = 0;
    if (!read(&magic, image, sizeof magic)) return false;
    if (magic != kFatbinMagic && memcmp(&magic, ELFMAG, SELFMAG) != 0) return false;
  }
  out->emplace_back();
  return One(image, read, &out->front());
}

std::vector<std::byte> JoinImages(const std::vector<std::vector<std::byte>>& images, uint32_t most_registers) {
  std::vector<std::vector<std::byte>> parts;
  for (const auto& image : images) parts.push_back(IsFatbin(image) ? image : MakeFatbin(kPtx, {image}));
  return MakeFatbin(VGPU_FATBIN_KIND_PART, parts, most_registers);
}

}  // namespace vgpud::cuda
