// SPDX-License-Identifier: Apache-2.0
// What cuInit and the primary context of NVIDIA's driver (550) need of a process, as seen of it: its threads have
// names, a context that is made takes files of its own; and after a reset every call says so until it is retained
// again.
#pragma once

#include <cstdint>

namespace fake_cuda {

using Status = uint32_t;

inline constexpr Status kContextIsDestroyed = 709, kOperatingSystem = 304;

// As cuInit: a thread of its own writes its name into its file of /proc.
Status NameAThread();
// As cuDevicePrimaryCtxRetain: it is there, once its thread and its files are.
Status MakeContextAgain();
// As cuDevicePrimaryCtxReset.
void DropContext();

inline bool has_context = false;

// The call, in a context.
template <auto call>
struct InContext;
template <class... Arguments, Status (*call)(Arguments...)>
struct InContext<call> {
  static Status Call(Arguments... arguments) { return has_context ? call(arguments...) : kContextIsDestroyed; }
};

// The environment when the library was loaded: "NAME=VALUE" lines.
const char* LoadedWith();

}  // namespace fake_cuda
