// SPDX-License-Identifier: Apache-2.0
// A program that uses a VF, as vgpud knows it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace vgpud::daemon {

struct ProcessReport {
  std::string vf;
  std::string gpu;
  std::string domain;         // that has the VF; empty: none
  std::string tenant;         // of the VF
  std::optional<uid_t> user;  // who owns the VF, else who made it; nothing: root, or a tenant
  uint32_t pid = 0;           // that the program has for itself: in its guest, its container, or on this host
  pid_t executor_pid = 0;     // of the process on this host that does its work
  bool has_context = false;   // false: it has only asked what the GPU is
  uint64_t vram_bytes = 0;    // that it holds
  uint64_t gpu_ns = 0;        // for which it was on the GPU
  uint64_t cpu_ns = 0;        // of processors of this host, for its work
};

}  // namespace vgpud::daemon
