// SPDX-License-Identifier: Apache-2.0
// Memory of fake_driver.cc that the host shares, and that is mapped to addresses: files that this process maps. Each
// call leaves a note of what it has done (fake_arrays.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace fake_cuda {

using Status = uint32_t;

// The number that the environment has for a key, 0 without one: what is to go wrong (fake_driver.cc).
inline Status (*knob)(const char* key) = nullptr;

// Kernels have registered memory so far behind where the host has it.
inline constexpr uint64_t kRegisteredAt = uint64_t{1} << 46;

Status RegisterHost(void* memory, size_t bytes, unsigned flags);
Status UnregisterHost(void* memory);
// Where this process has what kernels have at `address`.
uint64_t HostOf(uint64_t address);
// Memory that is not registered is at its own address.
Status AddressOfHost(uint64_t* address, void* memory, unsigned flags);
Status ReserveAddresses(uint64_t* address, size_t bytes, size_t alignment, uint64_t wish, unsigned long long flags);
Status FreeAddresses(uint64_t address, size_t bytes);
Status MakeMemory(uint64_t* memory, size_t bytes, const void* told, unsigned long long flags);
Status EndMemory(uint64_t memory);
Status MapMemory(uint64_t address, size_t bytes, size_t offset, uint64_t memory, unsigned long long flags);
Status UnmapMemory(uint64_t address, size_t bytes);
Status SetAccess(uint64_t address, size_t bytes, const void* access, size_t count);
Status Granularity(size_t* bytes, const void* told, int option);
// As our own libcuda has it.
Status DescribeHost(void* memory, size_t bytes, int fd, uint64_t offset);

}  // namespace fake_cuda
