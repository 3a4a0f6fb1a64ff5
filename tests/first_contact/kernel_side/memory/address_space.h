// SPDX-License-Identifier: Apache-2.0
// The addresses of a GPU's kernels and copies: which memory is where. One for each process, for all cards that it uses.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "tests/first_contact/kernel_side/memory/memory.h"

namespace vgpud::kernel_side {

class AddressSpace {
 public:
  // Replaces what is mapped there.
  void Map(uint64_t begin, uint64_t bytes, std::shared_ptr<Memory> memory, uint64_t offset);
  void Unmap(uint64_t begin, uint64_t bytes);
  // False: there is an address where nothing is mapped.
  bool Read(uint64_t at, std::span<std::byte> to) const;
  bool Write(uint64_t at, std::span<const std::byte> from) const;

 private:
  struct Range {
    uint64_t bytes;
    std::shared_ptr<Memory> memory;
    uint64_t offset;
  };
  // Calls step(memory, offset, begin, bytes) for each part of [at, at + bytes) until one is false or not there.
  template <class Step>
  bool Each(uint64_t at, uint64_t bytes, Step step) const;

  std::map<uint64_t, Range> ranges_;  // by where they begin
};

}  // namespace vgpud::kernel_side
