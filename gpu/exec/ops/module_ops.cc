// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/ops/module_ops.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/checked.h"

namespace vgpud::exec {
namespace {

// Until the ring side looks at its link again.
constexpr size_t kPart = 1 << 20;

}  // namespace

EntryVerdict ModuleOps::Begin(RingEntry& entry) {
  const auto done = modules_.Begin(entry.sqe.args[0], entry.sqe.args[1], memory_);
  return done ? channel_.Reply(entry) : channel_.Reject(entry, done.error());
}

EntryVerdict ModuleOps::Data(RingEntry& entry) {
  const auto to = modules_.Place(entry.sqe.args[0], entry.sqe.args[1], entry.span.size());
  if (!to) return channel_.Reject(entry, to.error());
  const size_t at = entry.done_bytes;
  if (at == entry.span.size()) return channel_.Reply(entry);
  const size_t bytes = std::min(kPart, entry.span.size() - at);
  // Only the I/O thread takes an upload or the payload away.
  entry.copy = {to->subspan(at, bytes), entry.span.subspan(at, bytes)};
  entry.done_bytes += bytes;
  return EntryVerdict::kCopy;
}

bool ModuleOps::MayLoad(const RingEntry& entry) {
  return loader_.job() != nullptr || !modules_.Image(entry.sqe.args[0]) || loader_.MayLoad();
}

void ModuleOps::DropJob(uint64_t id) {
  loader_.End(true);
  modules_.EndUpload(id, nullptr);
}

bool ModuleOps::Undo(const RingEntry& entry) {
  const LoadJob* const job = loader_.job();
  if (job == nullptr) return true;
  if (!job->result) return false;
  if (entry.sqe.op == VGPU_OP_MODULE_LOAD) {
    DropJob(entry.sqe.args[0]);
  } else {
    loader_.End(false);
  }
  return true;
}

EntryVerdict ModuleOps::Load(RingEntry& entry) {
  const uint64_t id = entry.sqe.args[0];
  if (loader_.job() == nullptr) {
    const auto image = modules_.Image(id);
    if (!image) return channel_.Reject(entry, image.error());
    const GpuVa managed{entry.sqe.args[1]};
    const uint64_t managed_bytes = entry.sqe.args[2];
    if (managed_bytes != 0 && (Raw(managed) % 512 != 0 || !context_.gpu().Contains(managed, managed_bytes)))
      return channel_.Reject(entry, CuStatus::kInvalidValue,
                             fmt::format("MODULE_LOAD: {} bytes for managed variables at {:#x} are not shared",
                                         managed_bytes, Raw(managed)));
    LoadJob& job = loader_.BeginImage(*image);
    job.managed = managed;
    job.managed_bytes = managed_bytes;
    job.area = buffers_.UsersOf(managed, managed_bytes);
  }
  loader_.ServeVram();
  if (!loader_.IsOver()) return EntryVerdict::kWait;
  LoadJob& job = *loader_.job();
  const auto drop = [&](const GpuError& error) {
    const EntryVerdict verdict = channel_.Reject(entry, error);
    DropJob(id);
    return verdict;
  };
  if (channel_.poisoned()) return drop({channel_.sticky(), {}});
  if (!*job.result) return drop(job.result->error());
  const uint64_t need = job.vram == LoadJob::kYes ? 0 : (**job.result)->vram_bytes();
  switch (vram_.Reserve(need)) {
    case VramShare::Answer::kAsk:
      return EntryVerdict::kWait;
    case VramShare::Answer::kRefused:
      return drop({CuStatus::kOutOfMemory, fmt::format("MODULE_LOAD: globals of {} bytes exceed the VF's VRAM", need)});
    case VramShare::Answer::kGranted:
      break;
  }
  vram_.Use(need);
  std::unique_ptr<GpuModule> module = std::move(**job.result);
  loader_.End(false);
  const CompletionValues counts{module->function_count(), module->global_count(), module->managed_bytes()};
  modules_.EndUpload(id, std::move(module));
  return channel_.Reply(entry, counts);
}

EntryVerdict ModuleOps::Unload(RingEntry& entry) {
  const auto freed = modules_.Unload(entry.sqe.args[0]);
  if (!freed) return channel_.Reject(entry, freed.error());
  vram_.Return(*freed);
  return channel_.Reply(entry);
}

EntryVerdict ModuleOps::Function(RingEntry& entry) {
  const uint64_t name_bytes = entry.sqe.args[1];
  if (name_bytes > entry.span.size())
    return channel_.Reject(
        entry, CuStatus::kInvalidValue,
        fmt::format("MODULE_FUNCTION: name of {} bytes in a payload of {}", name_bytes, entry.span.size()));
  // The guest may write there while its kernel is loaded.
  const LoadJob* const begun = loader_.job();
  const std::string name =
      begun != nullptr ? begun->function : std::string(reinterpret_cast<const char*>(entry.span.data()), name_bytes);
  GpuModule* const module = modules_.Find(entry.sqe.args[0]);
  if (begun == nullptr && module != nullptr && module->NeedsLoading(name)) {
    LoadJob& job = loader_.Begin();
    job.module = module;
    job.function = name;
  }
  if (loader_.job() != nullptr) {
    if (!loader_.IsOver()) return EntryVerdict::kWait;
    const auto result = std::move(*loader_.job()->result);
    loader_.End(false);
    if (channel_.poisoned()) return channel_.Reject(entry, channel_.sticky(), {});
    if (!result) return channel_.Reject(entry, result.error());
  }
  const auto handle = modules_.Function(entry.sqe.args[0], name);
  if (!handle) return channel_.Reject(entry, handle.error());
  return ReplyFunction(entry, *handle);
}

EntryVerdict ModuleOps::ReplyFunction(RingEntry& entry, uint64_t handle) {
  const LoadedFunction& function = *modules_.FindFunction(handle);
  const FunctionInfo& info = *function.info;
  vgpu_function_info out{};
  out.param_count = MustFit<uint32_t>(info.params.size());
  out.param_bytes = info.param_bytes;
  out.static_shared_bytes = info.static_shared_bytes;
  out.const_bytes = info.const_bytes;
  out.local_bytes = info.local_bytes;
  out.registers = std::max(info.registers, 1u);
  out.max_threads = info.max_threads;
  out.max_dynamic_shared = function.max_dynamic_shared;
  out.ptx_version = info.ptx_version;
  out.binary_version = info.binary_version;
  // What no launch can have is told as what none can ask for.
  const auto part = [&](int d) { return std::min(info.cluster[d], 255u); };
  out.cluster = VGPU_CLUSTER(part(0), part(1), part(2));
  if (info.needs_cluster) out.flags = VGPU_FUNCTION_CLUSTER_MUST_BE_SET;
  const uint64_t bytes = sizeof out + info.params.size() * sizeof(vgpu_param);
  if (bytes > entry.span.size())
    return channel_.Reject(
        entry, CuStatus::kInvalidValue,
        fmt::format("MODULE_FUNCTION: the answer has {} bytes, the payload {}", bytes, entry.span.size()));
  std::byte* to = entry.span.data();
  std::memcpy(to, &out, sizeof out);
  to += sizeof out;
  for (const ParamInfo& param : info.params) {
    const vgpu_param wire{param.offset, param.bytes};
    std::memcpy(to, &wire, sizeof wire);
    to += sizeof wire;
  }
  return channel_.Reply(entry, {handle, bytes});
}

EntryVerdict ModuleOps::FunctionName(RingEntry& entry) {
  const GpuModule* module = modules_.Find(entry.sqe.args[0]);
  if (module == nullptr)
    return channel_.Reject(entry, CuStatus::kInvalidHandle,
                           fmt::format("MODULE_FUNCTION_NAME: no loaded module {}", entry.sqe.args[0]));
  const std::vector<std::string> names = module->FunctionNames();
  const uint64_t index = entry.sqe.args[1];
  if (index >= names.size()) return channel_.Reply(entry, {names.size(), 0});
  const std::string& name = names[index];
  std::memcpy(entry.span.data(), name.data(), std::min(name.size(), entry.span.size()));
  return channel_.Reply(entry, {names.size(), name.size()});
}

EntryVerdict ModuleOps::Global(RingEntry& entry) {
  const GpuModule* module = modules_.Find(entry.sqe.args[0]);
  if (module == nullptr)
    return channel_.Reject(entry, CuStatus::kInvalidHandle,
                           fmt::format("MODULE_GLOBAL: no loaded module {}", entry.sqe.args[0]));
  const std::string name(reinterpret_cast<const char*>(entry.span.data()), entry.span.size());
  const auto global = module->FindGlobal(name);
  if (!global) return channel_.Reject(entry, global.error());
  return channel_.Reply(entry, {Raw(global->address), global->bytes});
}

EntryVerdict ModuleOps::SetFunction(RingEntry& entry) {
  const auto [handle, attribute, value, unused] = entry.sqe.args;
  (void)unused;
  LoadedFunction* function = modules_.FindFunction(handle);
  if (function == nullptr)
    return channel_.Reject(entry, CuStatus::kInvalidHandle, fmt::format("FUNCTION_SET: no function {}", handle));
  if (attribute == VGPU_FUNC_ATTR_CARVEOUT) return channel_.Reply(entry);
  constexpr size_t kOptin = cuda_enum::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
  const auto attributes = context_.gpu().Info().attributes;
  const uint64_t optin = attributes.size() > kOptin ? static_cast<uint64_t>(std::max(attributes[kOptin], 0)) : 0;
  const uint64_t limit = std::max<uint64_t>(optin, Modules::kDefaultShared);
  const uint64_t own = function->info->static_shared_bytes;
  if (attribute != VGPU_FUNC_ATTR_MAX_DYNAMIC_SHARED || value > limit - std::min(limit, own))
    return channel_.Reject(
        entry, CuStatus::kInvalidValue,
        fmt::format("FUNCTION_SET of {}: attribute {} = {} (shared memory limit {} bytes, {} static)",
                    function->info->name, attribute, value, limit, own));
  function->max_dynamic_shared = MustFit<uint32_t>(value);
  return channel_.Reply(entry);
}

}  // namespace vgpud::exec
