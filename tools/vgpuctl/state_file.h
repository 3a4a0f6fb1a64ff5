// SPDX-License-Identifier: Apache-2.0
// The file of vgpuctl export, apply and assert (TOML): what the GPU and VFs should be like.
//
//   [gpu]
//   policy = "reserve"
//   [gpu.NAME]      instead, where there are several
//   [vf.guest-a]
//   vram = "1GiB"
//   guarantee = "25%"
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "tools/vgpuctl/ask.h"

namespace vgpud::tools {

struct WantedVf {
  std::optional<uint64_t> vram_bytes;
  std::optional<uint64_t> host_memory_bytes;
  std::string profile;                   // that a new one is made with
  std::string gpu;                       // where it is; empty: anywhere
  std::string tenant;                    // whose it is; empty: whoever's
  std::string owner;                     // who may use its channel socket, in numbers; empty: whoever may
  CtlJson settings = CtlJson::object();  // as PATCH /v1/vfs/NAME takes them
};
struct WantedState {
  CtlJson gpu = CtlJson::object();      // of the only GPU, as PATCH /v1/gpu takes it
  std::map<std::string, CtlJson> gpus;  // the same by name
  std::map<std::string, WantedVf> vfs;
};
// "-": standard input. The error has a line for each thing that is wrong: file, line, what it is, what there is. Ranges
// are the daemon's business.
[[nodiscard]] Result<WantedState> ReadStateFile(const std::string& path);
[[nodiscard]] Result<WantedState> ParseState(const std::string& text, const std::string& path);
// What is, as such a file. `gpu`, `gpus`, `vfs`: the daemon's answers.
std::string StateText(const CtlJson& gpu, const CtlJson& vfs);
std::string StateTextOfAll(const CtlJson& gpus, const CtlJson& vfs);

}  // namespace vgpud::tools
