// SPDX-License-Identifier: Apache-2.0
// Images on their way in, modules made of them, and what is known of their kernels and variables. Nothing here needs
// the GPU: copies are made in parts without the lock, the rest is a job for another thread (ModuleLoader).
#pragma once

#include "base/host_memory.h"
#include "gpu/exec/channel/channel.h"
#include "gpu/exec/channel/gpu_context.h"
#include "gpu/exec/memory/vram_share.h"
#include "gpu/exec/ops/buffers.h"
#include "gpu/exec/ops/module_loader.h"
#include "gpu/exec/ops/modules.h"

namespace vgpud::exec {

class ModuleOps {
 public:
  // All outlive it.
  ModuleOps(Channel& channel, GpuContext& context, VramShare& vram, HostMemory& memory, const Buffers& buffers,
            ModuleLoader& loader)
      : channel_(channel), context_(context), vram_(vram), memory_(memory), buffers_(buffers), loader_(loader) {}

  EntryVerdict Begin(RingEntry& entry);
  EntryVerdict Data(RingEntry& entry);
  EntryVerdict Load(RingEntry& entry);
  // May Load begin, or go on?
  bool MayLoad(const RingEntry& entry);
  EntryVerdict Unload(RingEntry& entry);
  EntryVerdict Function(RingEntry& entry);
  EntryVerdict FunctionName(RingEntry& entry);
  EntryVerdict Global(RingEntry& entry);
  EntryVerdict SetFunction(RingEntry& entry);

  // nullptr: no such handle.
  const LoadedFunction* FindFunction(uint64_t handle) { return modules_.FindFunction(handle); }
  // Forgets all modules: the context ends.
  void Clear() { modules_ = Modules(); }
  // There was no memory for what `entry` asks for: its job is undone. False: the job runs, and is waited for.
  bool Undo(const RingEntry& entry);

 private:
  void DropJob(uint64_t id);
  EntryVerdict ReplyFunction(RingEntry& entry, uint64_t handle);

  Channel& channel_;
  GpuContext& context_;
  VramShare& vram_;
  HostMemory& memory_;
  const Buffers& buffers_;
  ModuleLoader& loader_;
  Modules modules_;
};

template <auto Member>
inline constexpr auto kModule = &Do<&OpTopics::modules, Member>;
inline constexpr OpRow kModuleRows[] = {
    {VGPU_OP_MODULE_BEGIN, "MODULE_BEGIN", kModule<&ModuleOps::Begin>, {.args = 2, .keeps = true, .keeps_arg = 1}},
    {VGPU_OP_MODULE_DATA,
     "MODULE_DATA",
     kModule<&ModuleOps::Data>,
     {.args = 2, .payload = PayloadRule::kRequired, .unlocks = true}},
    {VGPU_OP_MODULE_LOAD,
     "MODULE_LOAD",
     kModule<&ModuleOps::Load>,
     {.args = 3, .exclusive = true, .keeps = true},
     nullptr,
     &Ask<&OpTopics::modules, &ModuleOps::MayLoad>},
    {VGPU_OP_MODULE_UNLOAD,
     "MODULE_UNLOAD",
     kModule<&ModuleOps::Unload>,
     {.args = 1, .exclusive = true, .needs_drain = true}},
    {VGPU_OP_MODULE_FUNCTION,
     "MODULE_FUNCTION",
     kModule<&ModuleOps::Function>,
     {.args = 2, .payload = PayloadRule::kRequired, .exclusive = true, .keeps = true}},
    {VGPU_OP_MODULE_FUNCTION_NAME,
     "MODULE_FUNCTION_NAME",
     kModule<&ModuleOps::FunctionName>,
     {.args = 2, .payload = PayloadRule::kRequired, .exclusive = true}},
    {VGPU_OP_MODULE_GLOBAL,
     "MODULE_GLOBAL",
     kModule<&ModuleOps::Global>,
     {.args = 1, .payload = PayloadRule::kRequired, .exclusive = true}},
    {VGPU_OP_FUNCTION_SET, "FUNCTION_SET", kModule<&ModuleOps::SetFunction>, {.args = 3, .exclusive = true}},
};

}  // namespace vgpud::exec
