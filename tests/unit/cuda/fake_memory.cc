// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/cuda/fake_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/cuda/fake_arrays.h"

namespace fake_cuda {

namespace {

constexpr Status kInvalidValue = 1, kOutOfMemory = 2, kAlreadyRegistered = 712, kNotRegistered = 713;

std::map<uint64_t, size_t> registered;  // bytes by address
std::map<uint64_t, size_t> mapped;
std::map<uint64_t, size_t> made;  // bytes by file

Status Tell(const std::string& what) {
  Note((what + "\n").c_str());
  return 0;
}
std::string Words(const char* what, uint64_t number) { return std::string(what) + " " + std::to_string(number); }

}  // namespace

Status RegisterHost(void* memory, size_t bytes, unsigned flags) {
  if (const Status status = knob("register"); status != 0) return status;
  if (flags != 3) return kInvalidValue;
  if (!registered.emplace(reinterpret_cast<uint64_t>(memory), bytes).second) return kAlreadyRegistered;
  return Tell(Words("register", bytes));
}

Status UnregisterHost(void* memory) {
  if (registered.erase(reinterpret_cast<uint64_t>(memory)) == 0) return kNotRegistered;
  return Tell("unregister");
}

uint64_t HostOf(uint64_t address) {
  for (const auto& [at, bytes] : registered)
    if (address - (at + kRegisteredAt) < bytes) return address - kRegisteredAt;
  return address;
}

Status AddressOfHost(uint64_t* address, void* memory, unsigned) {
  const auto at = reinterpret_cast<uint64_t>(memory);
  *address = registered.contains(at) ? at + kRegisteredAt : at;
  return 0;
}

Status ReserveAddresses(uint64_t* address, size_t bytes, size_t, uint64_t wish, unsigned long long) {
  *address = knob("elsewhere") != 0 ? wish + bytes : wish;
  return 0;
}

Status FreeAddresses(uint64_t, size_t bytes) { return Tell(Words("addresses given back:", bytes)); }

Status MakeMemory(uint64_t* memory, size_t bytes, const void*, unsigned long long) {
  size_t all = bytes;
  for (const auto& [file, its] : made) all += its;
  if (const size_t most = knob("card_mib"); most != 0 && all > most << 20) return kOutOfMemory;
  const int file = memfd_create("fake", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return kInvalidValue;
  *memory = static_cast<uint64_t>(file);
  made[*memory] = bytes;
  return Tell(Words("create", bytes));
}

// Whoever has it next sees what is in there.
Status EndMemory(uint64_t memory) {
  std::vector<char> bytes(made[memory]);
  const ssize_t n = pread(static_cast<int>(memory), bytes.data(), bytes.size(), 0);
  const bool clear = n == static_cast<ssize_t>(bytes.size()) &&
                     std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == 0; });
  close(static_cast<int>(memory));
  made.erase(memory);
  return Tell(clear ? "release" : "release with data");
}

Status MapMemory(uint64_t address, size_t bytes, size_t offset, uint64_t memory, unsigned long long) {
  void* const at = mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED_NOREPLACE,
                        static_cast<int>(memory), static_cast<off_t>(offset));
  if (at == MAP_FAILED) return kInvalidValue;
  mapped[address] = bytes;
  return Tell(Words("map", bytes));
}

Status UnmapMemory(uint64_t address, size_t bytes) {
  const auto it = mapped.find(address);
  if (it == mapped.end() || it->second != bytes) return kInvalidValue;
  mapped.erase(it);
  munmap(reinterpret_cast<void*>(address), bytes);
  return Tell(Words("unmap", bytes));
}

Status SetAccess(uint64_t address, size_t bytes, const void*, size_t) {
  if (const Status status = knob("access"); status != 0) return status;
  return mprotect(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE) == 0 ? 0 : kInvalidValue;
}

Status Granularity(size_t* bytes, const void*, int) {
  *bytes = knob("grain") != 0 ? knob("grain") : size_t{2} << 20;
  return 0;
}

Status DescribeHost(void*, size_t bytes, int fd, uint64_t offset) {
  return Tell(Words("described", bytes) + Words(" from", offset) + (fd >= 0 ? " of a file" : " of none"));
}

}  // namespace fake_cuda
