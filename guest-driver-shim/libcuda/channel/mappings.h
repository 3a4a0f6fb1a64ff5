// SPDX-License-Identifier: Apache-2.0
// What this process has mapped where, as the kernel says it (/proc/thread-self/maps: /proc/self is empty once the first
// thread has ended), and the files behind it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "guest-driver-shim/libcuda/channel/os.h"

namespace vgpud::cuda {

struct Mapping {
  uint64_t begin = 0, end = 0;
  uint64_t offset = 0;  // in its file
  uint64_t inode = 0;   // 0: it shows no file
  uint64_t device = 0;  // of the file, as fstat has it
  std::string may;      // "rw-s" and the like
  std::string name;     // of its file, when it was mapped
  bool operator==(const Mapping&) const = default;
  bool is_stack() const { return name == "[stack]"; }
  bool is_shared() const { return may[3] == 's'; }
};
using OnPart = std::function<void(const Mapping&, uint64_t)>;
// Calls f(mapping, bytes) for each mapping that [at, at + bytes) has a part of, in order.
void ForEachMapping(uint64_t at, uint64_t bytes, const OnPart& f);
// Does what ForEachMapping does on kernels before 6.11, which list all mappings below `at` as well.
void ReadEachMapping(uint64_t at, uint64_t bytes, const OnPart& f);

// Advice, locks and protection keys that a program has set on a mapping, as far as the kernel reports them.
struct Treatment {
  uint32_t advice = 0;  // a bit for each row of the table in mappings.cc
  bool locked = false;
  int key = 0;  // of pkey_mprotect(2)
  bool operator==(const Treatment&) const = default;
  bool is_for_children() const;       // no MADV_DONTFORK
  bool is_empty_in_children() const;  // MADV_WIPEONFORK
};
// That of all of [at, at + bytes); nullopt: it is not the same everywhere. The kernel lists all mappings below for it.
std::optional<Treatment> ReadTreatment(uint64_t at, uint64_t bytes);
// That of the mapping of `at` in the text of a smaps; nullopt: it does not say. Allocates nothing.
std::optional<Treatment> TreatmentIn(std::string_view smaps, uint64_t at);
// Says the same of other memory, which children inherit as they did: `own` memory, or else a file's. False: it could
// not be locked, or not be given its key.
bool Treat(uint64_t at, uint64_t bytes, const Treatment& treatment, bool own);
// May this thread read and write memory of that key?
bool MayUse(int key);

// A file that other mappings may show as well.
struct ShownFile {
  uint64_t device = 0, inode = 0;
  uint64_t offset = 0;          // of what is asked about
  uint64_t begin = 0, end = 0;  // of the mapping
  std::string name;
  bool Is(int fd) const;
};
// The file that all of [at, at + bytes) shows in one piece, to be read and written; inode 0: it shows none.
ShownFile FileShown(uint64_t at, uint64_t bytes);
// That file, open for both: by its name, where it still has it, else by a descriptor of it that this process has. -1:
// there is no way to it.
OwnedFd OpenShown(const ShownFile& file);

}  // namespace vgpud::cuda
