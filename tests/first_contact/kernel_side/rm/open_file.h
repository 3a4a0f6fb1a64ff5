// SPDX-License-Identifier: Apache-2.0
// A device file that a program has open, and which files there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/first_contact/kernel_side/memory/address_space.h"

namespace vgpud::kernel_side {

// The order of the files in the mount; one for each card comes behind.
enum Node : size_t { kControlNode, kUvmNode, kUvmToolsNode, kFirstCardNode };
std::vector<std::string> NodeNames(uint32_t cards);

struct OpenFile {
  size_t node = 0;
  // What the next mmap of it maps.
  std::shared_ptr<StoredMemory> mapped;
  uint64_t mapped_offset = 0;
  // Of unified memory: the addresses of its process.
  std::shared_ptr<AddressSpace> space;
};
using OpenFiles = std::map<uint64_t, OpenFile>;

}  // namespace vgpud::kernel_side
