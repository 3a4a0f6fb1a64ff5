// SPDX-License-Identifier: Apache-2.0
#include "gpu/ptx/fatbin.h"

#include <fmt/core.h>
#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/checked.h"
#include "gpu/ptx/target.h"
#include "guest-driver-shim/include/uapi/vgpu_abi.h"

namespace vgpud::ptx {
namespace {

constexpr uint32_t kMagic = 0xBA55ED50;
constexpr uint32_t kOldMagic = 0x1EE55A01;
constexpr uint32_t kWrapperMagic = 0x466243B1;
constexpr uint32_t kElfMagic = 0x464C457F;
constexpr uint16_t kVersion = 1;
constexpr uint64_t kMaxTextBytes = 256u << 20;  // decompressed, of all parts together
constexpr uint64_t kMaxEntryBytes = 64u << 20;  // of one, as in the parser
constexpr uint64_t kAlign = 8;

struct Header {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t entries_bytes;
};
static_assert(sizeof(Header) == 16);

struct EntryHeader {
  uint16_t kind;
  uint16_t version;
  uint32_t header_bytes;
  uint64_t payload_bytes;  // padded
  uint32_t compressed_bytes;
  uint32_t options_offset;
  uint16_t minor, major;
  uint32_t sm;
  uint32_t name_offset, name_bytes;
  uint64_t flags;
  uint32_t most_registers;  // of a part: VGPU_FATBIN_KIND_PART
  uint32_t mbz;
  uint64_t text_bytes;  // after decompression
};
static_assert(sizeof(EntryHeader) == 64);

enum Kind : uint16_t { kPtx = 1, kElf = 2, kPart = VGPU_FATBIN_KIND_PART };
enum Flags : uint64_t {
  kFlagLz4 = 0x2000,
  kFlagZstd = 0x8000,
  kFlagArchSpecific = 0x100000,    // sm_90a: runs on that sm only
  kFlagFamilySpecific = 0x200000,  // sm_100f: runs within its family only
};

struct Entry {
  EntryHeader header;
  std::span<const std::byte> payload;
  size_t offset;  // in the image, for messages
};

template <class T>
std::optional<T> ReadAt(std::span<const std::byte> bytes, size_t offset) {
  if (!Inside(offset, sizeof(T), bytes.size())) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

tl::unexpected<GpuError> Damaged(size_t offset, std::string_view what) {
  return GpuFail(CuStatus::kInvalidImage, fmt::format("fatbin damaged at byte {}: {}", offset, what));
}

// The entries of the one fatbin at `offset`; moves `offset` behind it.
GpuResult<void> ReadFatbin(std::span<const std::byte> image, size_t* offset, std::vector<Entry>* entries) {
  const auto header = ReadAt<Header>(image, *offset);
  if (!header) return Damaged(*offset, "cut off inside the header");
  if (header->magic != kMagic) return Damaged(*offset, fmt::format("magic {:#x}", header->magic));
  if (header->version != kVersion) return Damaged(*offset, fmt::format("version {}, only 1 is known", header->version));
  if (header->header_bytes < sizeof(Header)) return Damaged(*offset, "header size below 16");
  if (header->header_bytes > image.size() - *offset) return Damaged(*offset, "cut off inside the header");
  size_t at = *offset + header->header_bytes;
  if (header->entries_bytes > image.size() - at)
    return Damaged(*offset, fmt::format("{} bytes of entries, {} are there", header->entries_bytes, image.size() - at));
  const size_t end = at + header->entries_bytes;
  while (at < end) {
    const auto entry = ReadAt<EntryHeader>(image.first(end), at);
    if (!entry) return Damaged(at, "cut off inside an entry header");
    if (entry->header_bytes < sizeof(EntryHeader) || entry->header_bytes > end - at)
      return Damaged(at, fmt::format("entry header of {} bytes", entry->header_bytes));
    const size_t payload_at = at + entry->header_bytes;
    if (entry->payload_bytes > end - payload_at)
      return Damaged(at, fmt::format("entry of {} bytes, {} are there", entry->payload_bytes, end - payload_at));
    entries->push_back(Entry{*entry, image.subspan(payload_at, entry->payload_bytes), at});
    at = payload_at + entry->payload_bytes;
  }
  *offset = end;
  return {};
}

// Several fatbins may stand one behind the other, padded with zeros to 8 bytes.
GpuResult<std::vector<Entry>> ReadEntries(std::span<const std::byte> image) {
  std::vector<Entry> entries;
  size_t offset = 0;
  while (offset < image.size()) {
    if (auto read = ReadFatbin(image, &offset, &entries); !read) return tl::unexpected(std::move(read).error());
    const size_t aligned = std::min(image.size(), (offset + kAlign - 1) / kAlign * kAlign);
    const auto is_zero = [](std::byte b) { return b == std::byte{0}; };
    const auto padding = image.subspan(offset, aligned - offset);
    if (std::all_of(padding.begin(), padding.end(), is_zero)) offset = aligned;
    const auto rest = image.subspan(offset);
    if (rest.size() < kAlign && std::all_of(rest.begin(), rest.end(), is_zero)) break;
  }
  return entries;
}

Target TargetOf(const EntryHeader& entry) {
  if ((entry.flags & kFlagArchSpecific) != 0) return {entry.sm, Target::Reach::kExact};
  if ((entry.flags & kFlagFamilySpecific) != 0) return {entry.sm, Target::Reach::kFamily};
  return {entry.sm};
}

// Of two that both run: the one for the later capability; of one capability the text that asks for nothing special.
bool IsBetter(const Target& one, const Target& other) {
  return one.sm > other.sm || (one.sm == other.sm && one.reach < other.reach);
}

std::string WithoutNul(std::string text) {
  if (const size_t nul = text.find('\0'); nul != std::string::npos) text.resize(nul);
  return text;
}
std::string AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool DecompressZstd(std::span<const std::byte> from, std::string* to) {
  return ZSTD_decompress(to->data(), to->size(), from.data(), from.size()) == to->size();
}
bool DecompressLz4(std::span<const std::byte> from, std::string* to) {
  if (from.size() > LZ4_MAX_INPUT_SIZE) return false;
  const int written = LZ4_decompress_safe(reinterpret_cast<const char*>(from.data()), to->data(),
                                          MustFit<int>(from.size()), MustFit<int>(to->size()));
  return written >= 0 && static_cast<size_t>(written) == to->size();
}

// What the entry holds; `left`: bytes that may still be decompressed.
GpuResult<std::string> ContentOf(const Entry& entry, uint64_t* left) {
  const EntryHeader& header = entry.header;
  const bool is_zstd = (header.flags & kFlagZstd) != 0;
  const bool is_lz4 = (header.flags & kFlagLz4) != 0;
  if (!is_zstd && !is_lz4) return AsText(entry.payload);
  if (is_zstd && is_lz4) return Damaged(entry.offset, "entry is both LZ4 and zstd");
  if (header.compressed_bytes == 0 || header.compressed_bytes > entry.payload.size())
    return Damaged(entry.offset,
                   fmt::format("{} compressed bytes in an entry of {}", header.compressed_bytes, entry.payload.size()));
  if (header.text_bytes > *left || header.text_bytes > kMaxEntryBytes)
    return Damaged(entry.offset, fmt::format("{} bytes of code, the limit is {} for one entry and {} for all",
                                             header.text_bytes, kMaxEntryBytes, kMaxTextBytes));
  *left -= header.text_bytes;
  std::string text(header.text_bytes, '\0');
  const auto compressed = entry.payload.first(header.compressed_bytes);
  if (!(is_zstd ? DecompressZstd(compressed, &text) : DecompressLz4(compressed, &text)))
    return Damaged(entry.offset, fmt::format("{} data doesn't decompress to the {} bytes that the entry states",
                                             is_zstd ? "zstd" : "LZ4", header.text_bytes));
  return text;
}

GpuResult<std::string> TextOf(const Entry& entry, uint64_t* left) { return WithoutNul(TRY(ContentOf(entry, left))); }

std::string Describe(const Entry& entry) {
  const std::string_view kind = entry.header.kind == kPtx ? "PTX" : entry.header.kind == kElf ? "cubin" : "other";
  return fmt::format("{} for {}", kind, NameOf(TargetOf(entry.header)));
}

tl::unexpected<GpuError> NothingFor(const std::vector<Entry>& entries, uint32_t sm) {
  constexpr size_t kMaxListed = 16;
  std::string listed = entries.empty() ? "nothing" : "";
  for (size_t i = 0; i < std::min(entries.size(), kMaxListed); ++i)
    listed += (i == 0 ? "" : ", ") + Describe(entries[i]);
  if (entries.size() > kMaxListed) listed += fmt::format(" and {} more", entries.size() - kMaxListed);
  return GpuFail(CuStatus::kNoBinaryForGpu,
                 fmt::format("no PTX for sm_{0} or below, the image has: {1}; build with default flags or "
                             "-arch=compute_{0}",
                             sm, listed));
}

// With `.version`, behind nothing but spaces and comments.
bool BeginsAsPtx(std::string_view text) {
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n\f\v"), text.size()));
    const std::string_view end = text.starts_with("//") ? "\n" : text.starts_with("/*") ? "*/" : "";
    if (end.empty()) return text.starts_with(".version");
    const size_t at = text.find(end, 2);
    if (at == std::string_view::npos) return false;
    text.remove_prefix(at + end.size());
  }
}

GpuResult<std::string> SelectFromOther(std::span<const std::byte> image, uint32_t magic) {
  if (magic == kElfMagic)
    return GpuFail(
        CuStatus::kNoBinaryForGpu,
        "the image is a cubin (machine code), which only a GPU of NVIDIA runs; PTX is needed: build with PTX in "
        "it, or with NVRTC compile for a virtual architecture (compute_75) and take nvrtcGetPTX");
  if (magic == kWrapperMagic)
    return GpuFail(CuStatus::kInvalidImage, "the image is a fatbin wrapper; what it points to is needed");
  if (magic == kOldMagic) return GpuFail(CuStatus::kInvalidImage, "the image is a fatbin of the old form (CUDA < 5)");
  std::string text = WithoutNul(AsText(image));
  if (!BeginsAsPtx(text))
    return GpuFail(
        CuStatus::kInvalidImage,
        fmt::format("neither a fatbin nor PTX text, which begins with .version: starts with {:#010x}", magic));
  return text;
}

// The text of the best entry is added to `texts`, if there is one.
GpuResult<void> TakeBest(const std::vector<Entry>& entries, uint32_t sm, uint64_t* left,
                         std::vector<std::string>* texts) {
  const Entry* best = nullptr;
  for (const Entry& entry : entries) {
    const Target target = TargetOf(entry.header);
    const bool fits = entry.header.kind == kPtx && RunsOn(target, sm);
    if (fits && (best == nullptr || IsBetter(target, TargetOf(best->header)))) best = &entry;
  }
  if (best == nullptr) return {};
  auto text = TextOf(*best, left);
  if (!text) return tl::unexpected(std::move(text).error());
  texts->push_back(std::move(*text));
  return {};
}

}  // namespace

GpuResult<std::vector<Part>> PartsOf(std::span<const std::byte> image) {
  std::vector<Part> parts;
  if (ReadAt<uint32_t>(image, 0) != kMagic) return parts;
  const auto entries = TRY(ReadEntries(image));
  for (const Entry& entry : entries) {
    if (entry.header.kind != kPart) continue;
    const auto inner = TRY(ReadEntries(entry.payload));
    const bool has_machine_code =
        std::any_of(inner.begin(), inner.end(), [](const Entry& each) { return each.header.kind == kElf; });
    parts.push_back({entry.payload, has_machine_code, entry.header.most_registers});
  }
  return parts;
}

GpuResult<uint32_t> MostRegisters(std::span<const std::byte> image) {
  uint32_t most = 0;
  for (const Part& part : TRY(PartsOf(image)))
    if (part.most_registers != 0) most = most == 0 ? part.most_registers : std::min(most, part.most_registers);
  return most;
}

GpuResult<std::optional<uint8_t>> MachineCodeAbi(std::span<const std::byte> image) {
  constexpr size_t kAbiAt = 8;  // EI_ABIVERSION
  constexpr uint8_t kNotTold = 255;
  if (ReadAt<uint32_t>(image, 0) != kMagic) return std::nullopt;
  std::vector<Entry> entries = TRY(ReadEntries(image));
  for (const Entry& part : std::vector<Entry>(entries)) {
    if (part.header.kind != kPart) continue;
    const auto inner = TRY(ReadEntries(part.payload));
    entries.insert(entries.end(), inner.begin(), inner.end());
  }
  std::optional<uint8_t> highest;
  uint64_t left = kMaxTextBytes;
  for (const Entry& entry : entries) {
    if (entry.header.kind != kElf) continue;
    const auto code = ContentOf(entry, &left);
    const bool is_elf = code && code->size() > kAbiAt &&
                        code->starts_with(
                            "\x7f"
                            "ELF");
    highest = std::max(highest.value_or(0), is_elf ? static_cast<uint8_t>((*code)[kAbiAt]) : kNotTold);
  }
  return highest;
}

GpuResult<std::vector<std::string>> SelectPtx(std::span<const std::byte> image, uint32_t sm) {
  const auto magic = ReadAt<uint32_t>(image, 0);
  if (!magic)
    return GpuFail(CuStatus::kInvalidImage,
                   fmt::format("an image of {} bytes is neither fatbin nor PTX", image.size()));
  std::vector<std::string> texts;
  if (*magic != kMagic) {
    auto text = SelectFromOther(image, *magic);
    if (!text) return tl::unexpected(std::move(text).error());
    texts.push_back(std::move(*text));
    return texts;
  }
  uint64_t left = kMaxTextBytes;
  auto entries = ReadEntries(image);
  if (!entries) return tl::unexpected(std::move(entries).error());
  std::vector<Entry> seen;
  for (const Entry& entry : *entries) {
    if (entry.header.kind != kPart) continue;
    auto inner = ReadEntries(entry.payload);
    if (!inner) return tl::unexpected(std::move(inner).error());
    if (auto r = TakeBest(*inner, sm, &left, &texts); !r) return tl::unexpected(std::move(r).error());
    seen.insert(seen.end(), inner->begin(), inner->end());
  }
  if (seen.empty()) {
    if (auto r = TakeBest(*entries, sm, &left, &texts); !r) return tl::unexpected(std::move(r).error());
    seen = std::move(*entries);
  }
  if (texts.empty()) return NothingFor(seen, sm);
  return texts;
}

}  // namespace vgpud::ptx
