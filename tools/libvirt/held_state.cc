// SPDX-License-Identifier: Apache-2.0
#include "tools/libvirt/held_state.h"

#include <cstdint>

namespace vgpud::tools {
namespace {

// VDI 1.1, as QEMU's block/vdi.c reads it: all numbers little-endian, a header of 512 bytes, then one block map entry.
constexpr size_t kSectorBytes = 512;
constexpr uint32_t kSignature = 0xbeda107f, kVersion = 0x00010001, kHeaderBytes = 0x190, kDynamic = 1;
constexpr uint32_t kDiskBytes = 1U << 20, kNoBlock = 0xffffffff;

}  // namespace

std::string HeldStateImage() {
  std::string out = "<<< QEMU VM Virtual Disk Image >>>\n";
  const auto number = [&](uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(value >> shift & 0xff));
  };
  out.resize(64);
  for (const uint32_t value : {kSignature, kVersion, kHeaderBytes, kDynamic, 0U}) number(value);
  out.resize(out.size() + 256);  // description
  // Where map and data are; geometry; sector size; unused; disk size; block size; extra; blocks; allocated
  for (const uint32_t value : {512U, 1024U, 0U, 0U, 0U, 512U, 0U, kDiskBytes, 0U, kDiskBytes, 0U, 1U, 0U})
    number(value);
  out.append(16, '\1').append(16, '\2');  // identity of the image and of its snapshot
  out.resize(kSectorBytes);
  number(kNoBlock);
  out.resize(2 * kSectorBytes);
  return out;
}

}  // namespace vgpud::tools
