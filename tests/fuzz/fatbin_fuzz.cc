// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: hostile fat binaries. Inputs that begin with a magic number are taken as they are; all others are
// choices out of which entries, parts, padding and compressed texts are made, with a few numbers wrong.
#include <lz4.h>
#include <zstd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "gpu/ptx/fatbin.h"
#include "guest-driver-shim/include/uapi/vgpu_abi.h"
#include "tests/fuzz/fuzz_bytes.h"
#include "tests/fuzz/hostile_run.h"

namespace {

using vgpud::FuzzBytes;

constexpr uint32_t kMagic = 0xBA55ED50;
constexpr uint64_t kLz4 = 0x2000, kZstd = 0x8000;

struct EntryHeader {
  uint16_t kind, version;
  uint32_t header_bytes;
  uint64_t payload_bytes;
  uint32_t compressed_bytes, options_offset;
  uint16_t minor, major;
  uint32_t sm, name_offset, name_bytes;
  uint64_t flags, mbz, text_bytes;
};
static_assert(sizeof(EntryHeader) == 64);

void Append(std::string& to, const void* from, size_t bytes) { to.append(static_cast<const char*>(from), bytes); }

std::string Compress(const std::string& text, uint64_t flags) {
  std::string out;
  if ((flags & kZstd) != 0) {
    out.resize(ZSTD_compressBound(text.size()));
    out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 1));
  } else if ((flags & kLz4) != 0) {
    out.resize(static_cast<size_t>(LZ4_compressBound(static_cast<int>(text.size()))));
    out.resize(static_cast<size_t>(
        LZ4_compress_default(text.data(), out.data(), static_cast<int>(text.size()), static_cast<int>(out.size()))));
  } else {
    return text;
  }
  return out;
}

std::string Fatbin(FuzzBytes& in, uint32_t depth);

std::string Entry(FuzzBytes& in, uint32_t depth) {
  EntryHeader header{};
  const bool part = depth == 0 && in.Chance(3);
  static constexpr uint16_t kKinds[] = {1, 1, 1, 2, 3};
  static constexpr uint32_t kSms[] = {50, 75, 75, 80, 0, 0xffffffff};
  static constexpr uint64_t kFlags[] = {0, kLz4, kZstd, kLz4 | kZstd, 0x100000, 0x200000, kZstd | 0x100000};
  header.kind = part ? uint16_t{VGPU_FATBIN_KIND_PART} : in.Of(kKinds);
  header.version = 0x101;
  header.header_bytes = sizeof header;
  header.sm = in.Of(kSms);
  header.flags = part ? 0 : in.Of(kFlags);
  std::string payload;
  if (part) {
    payload = Fatbin(in, depth + 1);
  } else {
    std::string text = ".version 7.0\n.target sm_75\n.address_size 64\n";
    const auto bytes = in.Take(in.Byte());
    Append(text, bytes.data(), bytes.size());
    for (uint32_t n = in.Pick(4) * in.Pick(200); n != 0; --n) text += ".entry k() { ret; }\n";
    header.text_bytes = text.size();
    payload = Compress(text, header.flags);
    if (header.flags != 0 && in.Chance(3) && !payload.empty())
      payload[in.Pick(static_cast<uint32_t>(payload.size()))] ^= static_cast<char>(1u << in.Pick(8));
  }
  header.compressed_bytes = static_cast<uint32_t>(payload.size());
  payload.resize((payload.size() + 7) / 8 * 8);
  header.payload_bytes = payload.size();
  if (in.Chance(4)) {
    switch (in.Pick(5)) {
      case 0:
        header.text_bytes = in.Number();
        break;
      case 1:
        header.compressed_bytes = static_cast<uint32_t>(in.Number());
        break;
      case 2:
        header.payload_bytes = in.Number();
        break;
      case 3:
        header.header_bytes = static_cast<uint32_t>(in.Number());
        break;
      default:
        header.flags = in.Number();
        break;
    }
  }
  std::string out;
  Append(out, &header, sizeof header);
  return out + payload;
}

std::string Fatbin(FuzzBytes& in, uint32_t depth) {
  std::string entries;
  for (uint32_t n = in.Pick(4); n != 0; --n) entries += Entry(in, depth);
  const uint32_t magic = in.Chance(32) ? static_cast<uint32_t>(in.Number()) : kMagic;
  const uint16_t version = in.Chance(32) ? in.Byte() : 1;
  const uint16_t header_bytes = in.Chance(32) ? static_cast<uint16_t>(in.Number()) : 16;
  const uint64_t bytes = in.Chance(16) ? in.Number() : entries.size();
  std::string out;
  Append(out, &magic, sizeof magic);
  Append(out, &version, sizeof version);
  Append(out, &header_bytes, sizeof header_bytes);
  Append(out, &bytes, sizeof bytes);
  out += entries;
  if (in.Chance(4)) out.append(in.Pick(12), '\0');
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzBytes in(data, size);
  std::string image;
  uint32_t magic = 0;
  if (size >= sizeof magic) std::memcpy(&magic, data, sizeof magic);
  if (magic == kMagic || magic == 0x1EE55A01 || magic == 0x466243B1 || magic == 0x464C457F) {
    image.assign(reinterpret_cast<const char*>(data), size);
  } else {
    for (uint32_t n = 1 + in.Pick(3); n != 0; --n) image += Fatbin(in, 0);
  }
  const auto texts = vgpud::ptx::SelectPtx(std::as_bytes(std::span(image)), 75);
  if (!texts) {
    vgpud::soft::CheckText(texts.error());
    return 0;
  }
  if (texts->empty()) std::abort();
  vgpud::soft::HostileMachine machine;
  machine.LoadAndRun(image, in, 100);
  return 0;
}
