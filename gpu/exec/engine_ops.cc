// SPDX-License-Identifier: Apache-2.0
// The table of all operations, and the handlers of those that run at once, in ring order.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "base/checked.h"
#include "gpu/capability/late_mapping.h"
#include "gpu/capability/tensor_map_maker.h"
#include "gpu/exec/channel_engine.h"
#include "guest-driver-shim/include/uapi/vgpu_tensor_map.h"

namespace vgpud::exec {

using enum PayloadRule;

struct ChannelEngine::Ops {
  static constexpr OpRow kRows[] = {
      {VGPU_OP_NOP, "NOP", &ChannelEngine::DoNop, {.no_context = true}},
      {VGPU_OP_MEM_ALLOC, "MEM_ALLOC", &ChannelEngine::DoMemAlloc, {.args = 1, .exclusive = true, .keeps = true}},
      {VGPU_OP_MEM_FREE, "MEM_FREE", &ChannelEngine::DoMemFree, {.args = 1, .exclusive = true, .needs_drain = true}},
      {VGPU_OP_MEM_INFO, "MEM_INFO", &ChannelEngine::DoMemInfo, {}},
      {VGPU_OP_MODULE_BEGIN, "MODULE_BEGIN", &ChannelEngine::DoModuleBegin, {.args = 2, .keeps = true}},
      {VGPU_OP_MODULE_DATA,
       "MODULE_DATA",
       &ChannelEngine::DoModuleData,
       {.args = 2, .payload = kRequired, .unlocks = true}},
      {VGPU_OP_MODULE_LOAD, "MODULE_LOAD", &ChannelEngine::DoModuleLoad, {.args = 3, .exclusive = true, .keeps = true}},
      {VGPU_OP_MODULE_UNLOAD,
       "MODULE_UNLOAD",
       &ChannelEngine::DoModuleUnload,
       {.args = 1, .exclusive = true, .needs_drain = true}},
      {VGPU_OP_MODULE_FUNCTION,
       "MODULE_FUNCTION",
       &ChannelEngine::DoModuleFunction,
       {.args = 2, .payload = kRequired, .exclusive = true, .keeps = true}},
      {VGPU_OP_MODULE_GLOBAL,
       "MODULE_GLOBAL",
       &ChannelEngine::DoModuleGlobal,
       {.args = 1, .payload = kRequired, .exclusive = true}},
      {VGPU_OP_FUNCTION_SET, "FUNCTION_SET", &ChannelEngine::DoFunctionSet, {.args = 3, .exclusive = true}},
      {VGPU_OP_STREAM_CREATE, "STREAM_CREATE", &ChannelEngine::DoStreamCreate, {.args = 3, .keeps = true}},
      {VGPU_OP_STREAM_DESTROY, "STREAM_DESTROY", &ChannelEngine::DoStreamDestroy, {.args = 1}},
      {VGPU_OP_LAUNCH,
       "LAUNCH",
       &ChannelEngine::DoLaunch,
       {.args = 1, .payload = kRequired, .payload_least = sizeof(vgpu_launch), .needs_gpu = true, .keeps = true}},
      {VGPU_OP_COPY_IN,
       "COPY_IN",
       &ChannelEngine::DoCopyIn,
       {.args = 1, .payload = kOptional, .needs_gpu = true, .keeps = true}},
      {VGPU_OP_COPY_OUT,
       "COPY_OUT",
       &ChannelEngine::DoQueue,
       {.args = 1, .payload = kOptional, .needs_gpu = true, .keeps = true}},
      {VGPU_OP_COPY_DEV, "COPY_DEV", &ChannelEngine::DoQueue, {.args = 3, .needs_gpu = true, .keeps = true}},
      {VGPU_OP_BUF_IN, "BUF_IN", &ChannelEngine::DoBuffer, {.args = 4, .needs_gpu = true, .keeps = true}},
      {VGPU_OP_BUF_OUT, "BUF_OUT", &ChannelEngine::DoBuffer, {.args = 4, .needs_gpu = true, .keeps = true}},
      {VGPU_OP_FILL, "FILL", &ChannelEngine::DoFill, {.args = 4, .needs_gpu = true, .keeps = true}},
      {VGPU_OP_EVENT_RECORD, "EVENT_RECORD", &ChannelEngine::DoEvent, {.args = 2, .keeps = true}},
      {VGPU_OP_EVENT_WAIT, "EVENT_WAIT", &ChannelEngine::DoEvent, {.args = 2, .keeps = true}},
      {VGPU_OP_STREAM_SYNC, "STREAM_SYNC", &ChannelEngine::DoQueue, {.keeps = true}},
      {VGPU_OP_CONTEXT_SYNC, "CONTEXT_SYNC", &ChannelEngine::DoContextSync, {}},
      {VGPU_OP_CONTEXT_RESET,
       "CONTEXT_RESET",
       &ChannelEngine::DoContextReset,
       {.exclusive = true, .after_fault = true}},
      {VGPU_OP_DEVICE_INFO,
       "DEVICE_INFO",
       &ChannelEngine::DoDeviceInfo,
       {.payload = kRequired, .payload_least = sizeof(vgpu_device_info), .exclusive = true, .no_context = true}},
      {VGPU_OP_GATE_WAIT, "GATE_WAIT", &ChannelEngine::DoGate, {.args = 2, .keeps = true}},
      {VGPU_OP_LIMIT_SET, "LIMIT_SET", &ChannelEngine::DoLimitSet, {.args = 2, .exclusive = true, .no_context = true}},
      {VGPU_OP_PRINT_READ,
       "PRINT_READ",
       &ChannelEngine::DoPrintRead,
       {.payload = kRequired, .exclusive = true, .after_fault = true}},
      {VGPU_OP_TEXTURE_CREATE,
       "TEXTURE_CREATE",
       &ChannelEngine::DoTextureCreate,
       {.payload = kRequired, .payload_least = sizeof(vgpu_texture), .exclusive = true, .keeps = true}},
      {VGPU_OP_TEXTURE_DESTROY,
       "TEXTURE_DESTROY",
       &ChannelEngine::DoTextureDestroy,
       {.args = 1, .exclusive = true, .needs_drain = true}},
      {VGPU_OP_STREAM_QUERY, "STREAM_QUERY", &ChannelEngine::DoStreamQuery, {.args = 1}},
      {VGPU_OP_BUF_ADDRESS, "BUF_ADDRESS", &ChannelEngine::DoBufferAddress, {.args = 1, .exclusive = true}},
      {VGPU_OP_WAIT_VALUE, "WAIT_VALUE", &ChannelEngine::DoValue, {.args = 4, .keeps = true}},
      {VGPU_OP_WRITE_VALUE, "WRITE_VALUE", &ChannelEngine::DoValue, {.args = 3, .needs_gpu = true, .keeps = true}},
      {VGPU_OP_MODULE_FUNCTION_NAME,
       "MODULE_FUNCTION_NAME",
       &ChannelEngine::DoModuleFunctionName,
       {.args = 2, .payload = kRequired, .exclusive = true}},
      {VGPU_OP_MEM_CREATE, "MEM_CREATE", &ChannelEngine::DoMemCreate, {.args = 1, .exclusive = true, .keeps = true}},
      {VGPU_OP_MEM_RELEASE, "MEM_RELEASE", &ChannelEngine::DoMemRelease, {.args = 1, .exclusive = true}},
      {VGPU_OP_MEM_MAP, "MEM_MAP", &ChannelEngine::DoMemMap, {.args = 4, .exclusive = true, .keeps = true}},
      {VGPU_OP_MEM_UNMAP, "MEM_UNMAP", &ChannelEngine::DoMemUnmap, {.args = 2, .exclusive = true, .needs_drain = true}},
      {VGPU_OP_TENSOR_MAP,
       "TENSOR_MAP",
       &ChannelEngine::DoTensorMap,
       {.payload = kRequired, .payload_least = sizeof(vgpu_tensor_map_request), .exclusive = true}},
  };
};

namespace {

constexpr bool InOrder(std::span<const OpRow> rows) {
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i].code != i || rows[i].name == nullptr) return false;
  return rows.size() == VGPU_OP_COUNT;
}

}  // namespace

const OpRow* FindOp(uint32_t op) {
  static_assert(InOrder(ChannelEngine::Ops::kRows));
  return op < VGPU_OP_COUNT ? &ChannelEngine::Ops::kRows[op] : nullptr;
}

ChannelEngine::Verdict ChannelEngine::DoNop(Entry& entry) { return Reply(entry); }

// nullopt: `need` bytes are there, for the `bytes` that were asked for.
std::optional<ChannelEngine::Verdict> ChannelEngine::ReserveVram(Entry& entry, uint64_t bytes, uint64_t need) {
  auto answer = need < bytes ? VramShare::Answer::kRefused : vram_.Reserve(need);
  if (answer == VramShare::Answer::kRefused && need >= bytes && GiveUpRoom()) answer = vram_.Reserve(need);
  switch (answer) {
    case VramShare::Answer::kAsk:
      return Verdict::kWait;
    case VramShare::Answer::kRefused:
      return Reject(entry, CuStatus::kOutOfMemory,
                    fmt::format("{}: {} bytes exceed the VF's VRAM", FindOp(entry.sqe.op)->name, bytes));
    case VramShare::Answer::kGranted:
      break;
  }
  return std::nullopt;
}

ChannelEngine::Verdict ChannelEngine::DoMemAlloc(Entry& entry) {
  const uint64_t bytes = entry.sqe.args[0];
  const uint64_t need = gpu_->AllocationBytes(bytes);
  if (const auto verdict = ReserveVram(entry, bytes, need)) return *verdict;
  const auto address = gpu_->Alloc(bytes);
  if (!address) return Reject(entry, address.error());
  vram_.Use(need);
  return Reply(entry, {Raw(*address)});
}

ChannelEngine::Verdict ChannelEngine::DoMemFree(Entry& entry) {
  const auto freed = gpu_->Free(GpuVa{entry.sqe.args[0]});
  if (!freed) return Reject(entry, freed.error());
  vram_.Return(*freed);
  room_refused_ = UINT64_MAX;
  return Reply(entry);
}

ChannelEngine::Verdict ChannelEngine::DoMemCreate(Entry& entry) {
  const uint64_t bytes = entry.sqe.args[0];
  if (bytes == 0 || bytes % LateMapping::kMappingGrain != 0)
    return Reject(entry, CuStatus::kInvalidValue,
                  fmt::format("MEM_CREATE: {} bytes are no multiple of {}", bytes, LateMapping::kMappingGrain));
  LateMapping* const mapping = can().late_mapping;
  if (mapping == nullptr)
    return Reject(entry, CuStatus::kNotSupported, "MEM_CREATE: this GPU can't map memory to addresses later");
  if (const auto verdict = ReserveVram(entry, bytes, bytes)) return *verdict;
  const auto block = mapping->CreateMappable(bytes);
  if (!block) return Reject(entry, block.error());
  vram_.Use(bytes);
  return Reply(entry, {*block});
}

ChannelEngine::Verdict ChannelEngine::DoMemRelease(Entry& entry) {
  LateMapping* const mapping = can().late_mapping;
  if (mapping == nullptr) return Reject(entry, CuStatus::kInvalidHandle, "there is no memory to be mapped");
  const auto freed = mapping->ReleaseMappable(entry.sqe.args[0]);
  if (!freed) return Reject(entry, freed.error());
  vram_.Return(*freed);
  return Reply(entry);
}

ChannelEngine::Verdict ChannelEngine::DoMemMap(Entry& entry) {
  const auto [block, offset, address, bytes] = entry.sqe.args;
  LateMapping* const mapping = can().late_mapping;
  if (mapping == nullptr) return Reject(entry, CuStatus::kInvalidHandle, "there is no memory to be mapped");
  const auto mapped = mapping->MapMemory(block, offset, GpuVa{address}, bytes);
  return mapped ? Reply(entry) : Reject(entry, mapped.error());
}

ChannelEngine::Verdict ChannelEngine::DoMemUnmap(Entry& entry) {
  LateMapping* const mapping = can().late_mapping;
  if (mapping == nullptr) return Reject(entry, CuStatus::kInvalidValue, "nothing is mapped");
  const auto unmapped = mapping->UnmapMemory(GpuVa{entry.sqe.args[0]}, entry.sqe.args[1]);
  return unmapped ? Reply(entry) : Reject(entry, unmapped.error());
}

ChannelEngine::Verdict ChannelEngine::DoMemInfo(Entry& entry) {
  const auto info = vram_.Query();
  if (!info) return Verdict::kWait;
  return Reply(entry, {info->free, info->total});
}

ChannelEngine::Verdict ChannelEngine::DoModuleUnload(Entry& entry) {
  const auto freed = modules_.Unload(entry.sqe.args[0]);
  if (!freed) return Reject(entry, freed.error());
  vram_.Return(*freed);
  return Reply(entry);
}

ChannelEngine::Verdict ChannelEngine::DoModuleFunction(Entry& entry) {
  const uint64_t name_bytes = entry.sqe.args[1];
  if (name_bytes > entry.span.size())
    return Reject(entry, CuStatus::kInvalidValue,
                  fmt::format("MODULE_FUNCTION: name of {} bytes in a payload of {}", name_bytes, entry.span.size()));
  // The guest may write there while its kernel is loaded.
  const std::string name =
      job_ ? job_->function : std::string(reinterpret_cast<const char*>(entry.span.data()), name_bytes);
  GpuModule* const module = modules_.Find(entry.sqe.args[0]);
  if (!job_ && module != nullptr && module->NeedsLoading(name)) {
    job_.emplace().module = module;
    job_->function = name;
  }
  if (job_) {
    if (!job_->result) return Verdict::kWait;
    code_read_ += std::exchange(job_->code_bytes, 0);
    const auto result = std::move(*job_->result);
    job_.reset();
    if (sticky_ != CuStatus::kSuccess) return Reject(entry, sticky_, {});
    if (!result) return Reject(entry, result.error());
  }
  const auto handle = modules_.Function(entry.sqe.args[0], name);
  if (!handle) return Reject(entry, handle.error());
  const LoadedFunction& function = *modules_.FindFunction(*handle);
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
    return Reject(entry, CuStatus::kInvalidValue,
                  fmt::format("MODULE_FUNCTION: the answer has {} bytes, the payload {}", bytes, entry.span.size()));
  std::byte* to = entry.span.data();
  std::memcpy(to, &out, sizeof out);
  to += sizeof out;
  for (const ParamInfo& param : info.params) {
    const vgpu_param wire{param.offset, param.bytes};
    std::memcpy(to, &wire, sizeof wire);
    to += sizeof wire;
  }
  return Reply(entry, {*handle, bytes});
}

ChannelEngine::Verdict ChannelEngine::DoModuleFunctionName(Entry& entry) {
  const GpuModule* module = modules_.Find(entry.sqe.args[0]);
  if (module == nullptr)
    return Reject(entry, CuStatus::kInvalidHandle,
                  fmt::format("MODULE_FUNCTION_NAME: no loaded module {}", entry.sqe.args[0]));
  const std::vector<std::string> names = module->FunctionNames();
  const uint64_t index = entry.sqe.args[1];
  if (index >= names.size()) return Reply(entry, {names.size(), 0});
  const std::string& name = names[index];
  std::memcpy(entry.span.data(), name.data(), std::min(name.size(), entry.span.size()));
  return Reply(entry, {names.size(), name.size()});
}

ChannelEngine::Verdict ChannelEngine::DoTensorMap(Entry& entry) {
  TensorMapMaker* const maps = can().tensor_maps;
  if (maps == nullptr) return Reject(entry, CuStatus::kNotSupported, "this GPU's maps are made in the guest");
  vgpu_tensor_map_request request;
  std::memcpy(&request, entry.span.data(), sizeof request);
  if (const auto made = maps->EncodeTensorMap(request); !made) return Reject(entry, made.error());
  std::memcpy(entry.span.data(), &request, sizeof request);
  return Reply(entry);
}

ChannelEngine::Verdict ChannelEngine::DoModuleGlobal(Entry& entry) {
  const GpuModule* module = modules_.Find(entry.sqe.args[0]);
  if (module == nullptr)
    return Reject(entry, CuStatus::kInvalidHandle,
                  fmt::format("MODULE_GLOBAL: no loaded module {}", entry.sqe.args[0]));
  const std::string name(reinterpret_cast<const char*>(entry.span.data()), entry.span.size());
  const auto global = module->FindGlobal(name);
  if (!global) return Reject(entry, global.error());
  return Reply(entry, {Raw(global->address), global->bytes});
}

ChannelEngine::Verdict ChannelEngine::DoFunctionSet(Entry& entry) {
  const auto [handle, attribute, value, unused] = entry.sqe.args;
  (void)unused;
  LoadedFunction* function = modules_.FindFunction(handle);
  if (function == nullptr)
    return Reject(entry, CuStatus::kInvalidHandle, fmt::format("FUNCTION_SET: no function {}", handle));
  if (attribute == VGPU_FUNC_ATTR_CARVEOUT) return Reply(entry);
  constexpr size_t kOptin = cuda_enum::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
  const auto attributes = gpu_->Info().attributes;
  const uint64_t optin = attributes.size() > kOptin ? static_cast<uint64_t>(std::max(attributes[kOptin], 0)) : 0;
  const uint64_t limit = std::max<uint64_t>(optin, Modules::kDefaultShared);
  const uint64_t own = function->info->static_shared_bytes;
  if (attribute != VGPU_FUNC_ATTR_MAX_DYNAMIC_SHARED || value > limit - std::min(limit, own))
    return Reject(entry, CuStatus::kInvalidValue,
                  fmt::format("FUNCTION_SET of {}: attribute {} = {} (shared memory limit {} bytes, {} static)",
                              function->info->name, attribute, value, limit, own));
  function->max_dynamic_shared = MustFit<uint32_t>(value);
  return Reply(entry);
}

ChannelEngine::Verdict ChannelEngine::DoStreamCreate(Entry& entry) {
  const uint64_t id = entry.sqe.args[0];
  const uint64_t flags = entry.sqe.args[1];
  if (streams_.Full())
    return Reject(
        entry, CuStatus::kOutOfMemory,
        fmt::format("STREAM_CREATE: there are {} streams, as many as a channel may have", Streams::kMaxStreams));
  if (id > UINT32_MAX || (flags & ~uint64_t{VGPU_STREAM_NON_BLOCKING}) != 0 ||
      !streams_.Create(MustFit<uint32_t>(id), flags == 0))
    return Reject(entry, CuStatus::kInvalidValue,
                  fmt::format("STREAM_CREATE: stream {} is taken or reserved, or flags {:#x} unknown", id, flags));
  return Reply(entry, {id});
}

ChannelEngine::Verdict ChannelEngine::DoStreamDestroy(Entry& entry) {
  const uint64_t id = entry.sqe.args[0];
  if (id > UINT32_MAX || !streams_.Destroy(MustFit<uint32_t>(id)))
    return Reject(entry, CuStatus::kInvalidHandle, fmt::format("STREAM_DESTROY: no created stream {}", id));
  return Reply(entry);
}

// Entries are taken in order: what was there before it is in its stream, or done.
ChannelEngine::Verdict ChannelEngine::DoStreamQuery(Entry& entry) {
  const uint64_t id = entry.sqe.args[0];
  const Stream* stream = id <= UINT32_MAX ? streams_.Find(MustFit<uint32_t>(id)) : nullptr;
  if (stream == nullptr) return Reject(entry, CuStatus::kInvalidHandle, fmt::format("STREAM_QUERY: no stream {}", id));
  return Reply(entry, {stream->queue.empty() ? 0u : 1u});
}

ChannelEngine::Verdict ChannelEngine::DoContextSync(Entry& entry) {
  syncs_.push_back({entry.sqe.seqno, entry.want()});
  return Verdict::kDone;
}

ChannelEngine::Verdict ChannelEngine::DoContextReset(Entry& entry) {
  SetContext(false);
  const CuStatus status = sticky_ != CuStatus::kSuccess ? sticky_ : CuStatus::kContextIsDestroyed;
  for (auto& op : streams_.TakeAll()) {
    // Nobody may wait for ever for a record that was dropped.
    if (op->kind == VGPU_OP_EVENT_RECORD)
      memory_.SetEvent(MustFit<uint32_t>(op->args[0]), op->args[1], callbacks_.now_ns());
    FinishOp(std::move(op), status, {});
  }
  CompleteSyncs();
  streams_ = Streams();
  modules_ = Modules();
  MakeGpu();
  ShareBuffersAgain();
  TellPrinted();
  vram_.Return(vram_.used());
  room_refused_ = UINT64_MAX;
  streams_with_room_ = 0;
  sticky_ = posted_error_ = CuStatus::kSuccess;
  memory_.SetErrorText({});
  memory_.SetStickyError(0);
  completions_.WakeGuest();
  return Reply(entry);
}

ChannelEngine::Verdict ChannelEngine::DoDeviceInfo(Entry& entry) {
  const Gpu::DeviceInfo info = gpu_->Info();
  vgpu_device_info out{};
  info.name.copy(out.name, sizeof out.name - 1);
  out.total_memory = vram_.quota();
  const size_t known = std::min<size_t>(info.attributes.size(), VGPU_DEVICE_ATTRIBUTES);
  std::copy_n(info.attributes.begin(), known, out.attribute);
  std::memcpy(entry.span.data(), &out, sizeof out);
  return Reply(entry);
}

}  // namespace vgpud::exec
