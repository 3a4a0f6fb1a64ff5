// SPDX-License-Identifier: Apache-2.0
// What vgpud and its clients agree on: where the control socket is and which values are accepted; the scheduler's
// knobs: vgpud/model/knobs.h. The requests themselves are HTTP/1.1 with JSON bodies: routes in
// vgpud/control/control.cc, fields in vgpud/control/json.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vgpud::control {

inline constexpr const char* kApiVersion = "vgpud/v1";
inline constexpr const char* kSystemRuntimeDir = "/run/vgpud";
inline constexpr const char* kRuntimeDirVariable = "VGPUD_RUNTIME_DIR";

inline constexpr uint64_t kMinVramBytes = uint64_t{1} << 20;
inline constexpr uint64_t kMaxVramBytes = uint64_t{1} << 40;
inline constexpr uint64_t kDefaultVramBytes = uint64_t{1} << 30;
// What a VF's programs may take of the host's memory beside VRAM: code of modules, local and shared memory and
// registers of resident blocks, queues, pinned buffers of programs on the host.
inline constexpr uint64_t kMinHostMemoryBytes = uint64_t{16} << 20;
inline constexpr uint64_t kMaxHostMemoryBytes = uint64_t{1} << 40;
// Code and queues do not grow with VRAM, state of blocks and pinned buffers do.
inline constexpr uint64_t DefaultHostMemoryBytes(uint64_t vram_bytes) { return (uint64_t{256} << 20) + vram_bytes / 2; }
inline constexpr uint32_t kMaxVfs = 1024;
inline constexpr size_t kMaxNameBytes = 31;
inline constexpr size_t kMaxBodyBytes = 64 * 1024;

// [a-z0-9][a-z0-9-]{0,30}
bool IsValidName(std::string_view name);
// $VGPUD_RUNTIME_DIR, else /run/vgpud for root, else $XDG_RUNTIME_DIR/vgpud, else /tmp/vgpud-<uid>.
std::string DefaultRuntimeDir();
// The same for a client that was told no directory: of an ordinary user's own vgpud if it serves there, else
// /run/vgpud if a vgpud serves there, else the former.
std::string RuntimeDirOfClient();
std::string ControlSocketPath(const std::string& runtime_dir);
// Beside it: for root and vgpud's own user alone, so that no crowd of others stands before them in the kernel's queue.
// Elsewhere it may be missing; it gives nobody more rights than the other one.
std::string OwnSocketPath(const std::string& control_socket);

}  // namespace vgpud::control
