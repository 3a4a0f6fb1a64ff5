// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/shim/fake_executor.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace vgpud {
namespace {

std::atomic_ref<uint32_t> Word(uint32_t& word) { return std::atomic_ref<uint32_t>(word); }
constexpr size_t kMostWaiting = 4096;  // as many as an executor queues
bool IsOfStream(const vgpu_sqe& entry) {
  return (entry.op >= VGPU_OP_LAUNCH && entry.op <= VGPU_OP_STREAM_SYNC) || entry.op == VGPU_OP_GATE_WAIT;
}
constexpr uint64_t kVectorAdd = 7;
constexpr uint64_t kNarrow = 8;

}  // namespace

vgpu_ioc_info FakeInfo(uint64_t channel_bytes) {
  vgpu_ioc_info info{};
  info.abi_version = VGPU_ABI_VERSION;
  info.channel_bytes = channel_bytes;
  info.features = VGPU_FEATURES_ALL;
  if (getenv("FAKE_VF_WITHOUT_SLOT_GATES") != nullptr) info.features &= ~VGPU_FEATURE_SLOT_GATES;
  info.vram_bytes = 1 << 30;
  info.pci_bus = 3;
  info.pci_device = 5;
  for (int i = 0; i < 16; ++i) info.uuid[i] = static_cast<uint8_t>(0xa0 + i);
  strcpy(info.name, "fake");
  return info;
}

vgpu_device_info FakeDevice() {
  vgpu_device_info device{};
  strcpy(device.name, "fake virtual GPU");
  device.total_memory = 1 << 30;
  const struct {
    int attribute, value;
  } rows[] = {
      {1, 1024},   {2, 1024},     {3, 1023},   {4, 64},    {5, 2147483647}, {6, 65535},
      {7, 65534},  {8, 49152},    {9, 65536},  {10, 32},   {11, 777},       {12, 65500},
      {13, 1500},  {14, 512},     {16, 2},     {39, 1024}, {41, 1},         {21, 65536},
      {22, 65000}, {23, 64000},   {24, 4096},  {25, 4001}, {26, 4002},      {27, 4103},
      {28, 4104},  {29, 2048},    {42, 4105},  {43, 2047}, {52, 4106},      {53, 4107},
      {54, 2046},  {69, 1 << 27}, {75, 7},     {76, 5},    {81, 65536},     {82, 65536},
      {97, 60000}, {106, 16},     {111, 1024}, {127, 1},   {147, 7},        {VGPU_ATTRIBUTE_MAPPABLE_MEMORY, 1}};
  for (const auto& row : rows) device.attribute[row.attribute] = row.value;
  return device;
}

FakeExecutor::FakeExecutor(std::span<std::byte> area, int kick_fd, int call_fd)
    : header_(*reinterpret_cast<vgpu_channel_header*>(area.data())), area_(area), kick_fd_(kick_fd), call_fd_(call_fd) {
  header_.magic = VGPU_MAGIC;
  header_.abi_version = VGPU_ABI_VERSION;
  header_.payload_bytes = area.size() - VGPU_CHANNEL_PAYLOAD_OFFSET;
  Word(header_.state).store(VGPU_CHANNEL_OPEN);
  thread_ = std::thread([this] { Serve(); });
}

FakeExecutor::~FakeExecutor() {
  stop_ = true;
  const uint64_t one = 1;
  (void)!write(kick_fd_, &one, sizeof one);
  thread_.join();
}

void FakeExecutor::OnEntry(std::function<uint32_t(const vgpu_sqe&, std::span<const std::byte>)> f) {
  std::lock_guard lock(mutex_);
  on_entry_ = std::move(f);
}

void FakeExecutor::AddBuffer(uint32_t id, std::span<std::byte> memory) {
  std::lock_guard lock(mutex_);
  buffers_[id] = memory;
}
void FakeExecutor::RemoveBuffer(uint32_t id) {
  std::lock_guard lock(mutex_);
  buffers_.erase(id);
}
void FakeExecutor::Hold(bool held) {
  held_ = held;
  const uint64_t one = 1;
  (void)!write(kick_fd_, &one, sizeof one);
}
void FakeExecutor::Die(const std::string& text) {
  dead_ = true;
  strncpy(header_.error_text, text.c_str(), sizeof header_.error_text - 1);
  Word(header_.state).store(VGPU_CHANNEL_LOST);
  Interrupt(true);
}
void FakeExecutor::Poison(uint32_t error, const std::string& text) {
  strncpy(header_.error_text, text.c_str(), sizeof header_.error_text - 1);
  Word(header_.sticky_error).store(error);
  Interrupt(false);
}
uint64_t FakeExecutor::live_allocations() {
  std::lock_guard lock(mutex_);
  return memory_.size();
}
std::vector<std::byte> FakeExecutor::image(uint64_t module) {
  std::lock_guard lock(mutex_);
  return images_[module];
}

void FakeExecutor::Interrupt(bool always) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!always && Word(header_.cq_need_wakeup).load() == 0) return;
  const uint64_t one = 1;
  (void)!write(call_fd_, &one, sizeof one);
}

vgpu_event_slot& FakeExecutor::Slot(uint64_t slot) const {
  return reinterpret_cast<vgpu_event_slot*>(area_.data() + VGPU_CHANNEL_EVENTS_OFFSET)[slot];
}

uint64_t FakeExecutor::Gate(uint64_t gate) const {
  return std::atomic_ref(gate < VGPU_GATES ? header_.gate[gate] : Slot(gate - VGPU_GATES).generation).load();
}

bool FakeExecutor::MustWait(const vgpu_sqe& entry, size_t before) const {
  const bool of_stream = IsOfStream(entry);
  const bool of_all = entry.op == VGPU_OP_CONTEXT_SYNC || entry.op == VGPU_OP_CONTEXT_RESET;
  if (entry.op == VGPU_OP_GATE_WAIT && Gate(entry.args[0]) < entry.args[1]) return true;
  return std::any_of(waiting_.begin(), waiting_.begin() + static_cast<long>(before), [&](const Waiting& each) {
    const vgpu_sqe& other = each.entry;
    const bool records_it = entry.op == VGPU_OP_EVENT_WAIT && other.op == VGPU_OP_EVENT_RECORD &&
                            other.args[0] == entry.args[0] && other.args[1] <= entry.args[1];
    return of_all || records_it || (of_stream && other.stream == entry.stream);
  });
}

bool FakeExecutor::RunWaiting() {
  std::vector<uint32_t> held;  // streams whose first one must wait; few
  for (size_t i = 0; i < waiting_.size(); ++i) {
    const vgpu_sqe& entry = waiting_[i].entry;
    const bool of_stream = IsOfStream(entry);
    if (of_stream && std::find(held.begin(), held.end(), entry.stream) != held.end()) continue;
    if (MustWait(entry, i)) {
      if (of_stream) held.push_back(entry.stream);
      continue;
    }
    Waiting next = std::move(waiting_[i]);
    waiting_.erase(waiting_.begin() + static_cast<long>(i));
    Finish(next.entry, next.own.empty() ? next.payload : std::span(next.own));
    return true;
  }
  return false;
}

void FakeExecutor::Finish(const vgpu_sqe& entry, std::span<std::byte> payload) {
  auto* answers = reinterpret_cast<vgpu_cqe*>(area_.data() + VGPU_CHANNEL_CQ_OFFSET);
  Reply reply;
  std::unique_lock reading(mutex_);
  const auto on_entry = on_entry_;
  reading.unlock();
  const uint32_t refused = on_entry ? on_entry(entry, payload) : 0;
  if (refused != 0) {
    reply.status = refused;
    snprintf(header_.error_text, sizeof header_.error_text, "the fake refuses operation %u", entry.op);
  } else {
    std::lock_guard lock(mutex_);
    reply = Run(entry, payload);
    if (entry.op == VGPU_OP_STREAM_CREATE) reply.value[0] = entry.args[0];
  }
  Release();
  entries_.fetch_add(1);
  if ((entry.flags & VGPU_SQE_WANT_COMPLETION) == 0) {
    if (reply.status != 0 && posted_error_ == 0) posted_error_ = reply.status;
    Interrupt(false);
    return;
  }
  if (reply.status == 0) reply.status = std::exchange(posted_error_, 0);
  vgpu_cqe& answer = answers[cq_tail_ & (VGPU_CQ_ENTRIES - 1)];
  answer.seqno = entry.seqno;
  answer.status = reply.status;
  answer.mbz = 0;
  memcpy(answer.value, reply.value, sizeof answer.value);
  Word(header_.cq_tail).store(++cq_tail_);
  Interrupt(false);
}

FakeExecutor::Waiting FakeExecutor::MakeWaiting(const vgpu_sqe& entry, std::span<std::byte> payload) {
  Waiting waiting{entry, payload, {}};
  if (entry.op == VGPU_OP_LAUNCH || entry.op == VGPU_OP_COPY_IN) waiting.own.assign(payload.begin(), payload.end());
  return waiting;
}

// In order: what one entry keeps in the payload keeps that of all behind it.
void FakeExecutor::Release() {
  uint64_t released = taken_;
  for (const Waiting& each : waiting_)
    if (each.entry.payload_len > 0 && each.own.empty()) released = std::min<uint64_t>(released, each.entry.payload_pos);
  std::atomic_ref<__u64>(header_.payload_released).store(released);
}

void FakeExecutor::Serve() {
  const auto* ring = reinterpret_cast<const vgpu_sqe*>(area_.data() + VGPU_CHANNEL_SQ_OFFSET);
  uint32_t head = 0;
  while (!stop_) {
    if (!held_ && !dead_ && RunWaiting()) continue;
    const auto idle = [&] {
      return held_ || dead_ || waiting_.size() >= kMostWaiting || Word(header_.sq_tail).load() == head;
    };
    if (idle()) {
      Word(header_.sq_need_wakeup).store(1);
      std::atomic_thread_fence(std::memory_order_seq_cst);
      if (idle()) {
        pollfd p{kick_fd_, POLLIN, 0};
        poll(&p, 1, -1);
        uint64_t count = 0;
        (void)!read(kick_fd_, &count, sizeof count);
        kicks_ += count;
      }
      Word(header_.sq_need_wakeup).store(0);
      continue;
    }
    const vgpu_sqe entry = ring[head & (VGPU_SQ_ENTRIES - 1)];
    Word(header_.sq_head).store(++head);
    std::span<std::byte> payload;
    if (entry.payload_len > 0) {
      const uint64_t at = entry.payload_pos % header_.payload_bytes;
      payload = area_.subspan(VGPU_CHANNEL_PAYLOAD_OFFSET + at, entry.payload_len);
      taken_ = entry.payload_pos + entry.payload_len;
    }
    if (MustWait(entry, waiting_.size())) {
      waiting_.push_back(MakeWaiting(entry, payload));
      Release();
    } else {
      Finish(entry, payload);
    }
  }
}

std::byte* FakeExecutor::At(uint64_t address, uint64_t bytes) {
  auto it = memory_.upper_bound(address);
  if (it == memory_.begin()) return nullptr;
  --it;
  const uint64_t offset = address - it->first;
  return offset <= it->second.size() && bytes <= it->second.size() - offset ? it->second.data() + offset : nullptr;
}

namespace {
constexpr uint32_t kInvalidValue = 1;
}  // namespace

FakeExecutor::Reply FakeExecutor::Run(const vgpu_sqe& entry, std::span<std::byte> payload) {
  const __u64* a = entry.args;
  Reply reply;
  switch (entry.op) {
    case VGPU_OP_MEM_ALLOC:
      memory_[next_address_].resize(a[0]);
      reply.value[0] = next_address_;
      next_address_ += (a[0] + 0xffff) & ~uint64_t{0xffff};
      return reply;
    case VGPU_OP_MEM_FREE:
      return memory_.erase(a[0]) == 1 ? reply : Reply{kInvalidValue, {}};
    case VGPU_OP_MEM_INFO:
      reply.value[0] = 1000;
      reply.value[1] = 1 << 30;
      return reply;
    case VGPU_OP_MODULE_BEGIN:
      images_[a[0]].resize(a[1]);
      return reply;
    case VGPU_OP_MODULE_DATA:
      if (a[1] + payload.size() > images_[a[0]].size()) return {kInvalidValue, {}};
      memcpy(images_[a[0]].data() + a[1], payload.data(), payload.size());
      return reply;
    case VGPU_OP_MODULE_UNLOAD:
      images_.erase(a[0]);
      return reply;
    case VGPU_OP_MODULE_FUNCTION:
      return FindFunction(entry, payload);
    case VGPU_OP_MODULE_GLOBAL:
      return FindGlobal(payload);
    case VGPU_OP_LAUNCH:
      return Launch(entry, payload);
    case VGPU_OP_COPY_IN:
      if (At(a[0], payload.size()) == nullptr) return {kInvalidValue, {}};
      memcpy(At(a[0], payload.size()), payload.data(), payload.size());
      return reply;
    case VGPU_OP_COPY_OUT:
      if (At(a[0], payload.size()) == nullptr) return {kInvalidValue, {}};
      memcpy(payload.data(), At(a[0], payload.size()), payload.size());
      return reply;
    case VGPU_OP_COPY_DEV:
      if (At(a[0], a[2]) == nullptr || At(a[1], a[2]) == nullptr) return {kInvalidValue, {}};
      memmove(At(a[0], a[2]), At(a[1], a[2]), a[2]);
      return reply;
    case VGPU_OP_BUF_IN:
    case VGPU_OP_BUF_OUT:
      return CopyBuffer(entry);
    case VGPU_OP_FILL:
      return Fill(entry);
    case VGPU_OP_WRITE_VALUE:
      return WriteValue(entry);
    case VGPU_OP_MEM_CREATE:
      reply.value[0] = next_memory_++;
      return reply;
    case VGPU_OP_MODULE_FUNCTION_NAME:
      return NameFunction(entry, payload);
    case VGPU_OP_EVENT_RECORD:
      return RecordEvent(entry);
    case VGPU_OP_CONTEXT_RESET:
      memory_.clear();
      images_.clear();
      textures_.clear();
      Word(header_.sticky_error).store(0);
      return reply;
    case VGPU_OP_STREAM_QUERY:
      reply.value[0] =
          std::any_of(waiting_.begin(), waiting_.end(), [&](const Waiting& each) { return each.entry.stream == a[0]; });
      return reply;
    case VGPU_OP_TEXTURE_CREATE:
      return CreateTexture(entry, payload);
    case VGPU_OP_TEXTURE_DESTROY:
      return textures_.erase(a[0]) == 1 ? reply : Reply{400, {}};
    case VGPU_OP_DEVICE_INFO: {
      const vgpu_device_info info = FakeDevice();
      memcpy(payload.data(), &info, std::min(sizeof info, payload.size()));
      return reply;
    }
    default:
      return reply;
  }
}

FakeExecutor::Reply FakeExecutor::FindFunction(const vgpu_sqe& entry, std::span<std::byte> payload) {
  const __u64* a = entry.args;
  Reply reply;
  const std::string_view name(reinterpret_cast<const char*>(payload.data()), a[1]);
  vgpu_function_info info{};
  if (name == "narrow") {
    info.param_count = 0;
    info.registers = 41;
    info.max_threads = 96;
    info.static_shared_bytes = 1000;
    info.const_bytes = 11;
    info.local_bytes = 12;
    info.max_dynamic_shared = 48152;
    info.ptx_version = 75;
    info.binary_version = 86;
    memcpy(payload.data(), &info, sizeof info);
    reply.value[0] = kNarrow;
    return reply;
  }
  if (name != "vectoradd") return {500, {}};
  info.param_count = 4;
  info.param_bytes = 28;
  info.registers = 16;
  info.max_threads = 1024;
  info.max_dynamic_shared = 49152;
  const vgpu_param parameters[4] = {{0, 8}, {8, 8}, {16, 8}, {24, 4}};
  memcpy(payload.data(), &info, sizeof info);
  memcpy(payload.data() + sizeof info, parameters, sizeof parameters);
  reply.value[0] = kVectorAdd;
  return reply;
}

FakeExecutor::Reply FakeExecutor::WriteValue(const vgpu_sqe& entry) {
  std::byte* const to = At(entry.args[0], entry.args[2]);
  if (to == nullptr) return {kInvalidValue, {}};
  memcpy(to, &entry.args[1], entry.args[2]);
  return {};
}

FakeExecutor::Reply FakeExecutor::NameFunction(const vgpu_sqe& entry, std::span<std::byte> payload) {
  constexpr std::string_view kNames[] = {"narrow", "vectoradd"};
  Reply reply;
  reply.value[0] = std::size(kNames);
  if (entry.args[1] >= std::size(kNames)) return reply;
  const std::string_view name = kNames[entry.args[1]];
  memcpy(payload.data(), name.data(), std::min(name.size(), payload.size()));
  reply.value[1] = name.size();
  return reply;
}

FakeExecutor::Reply FakeExecutor::FindGlobal(std::span<const std::byte> name) {
  constexpr uint64_t kBytes = 200;
  Reply reply;
  if (std::string_view(reinterpret_cast<const char*>(name.data()), name.size()) != "variable") return {500, {}};
  memory_[variable_address_].resize(kBytes);
  reply.value[0] = variable_address_;
  reply.value[1] = kBytes;
  return reply;
}

FakeExecutor::Reply FakeExecutor::CopyBuffer(const vgpu_sqe& entry) {
  const __u64* a = entry.args;
  Reply reply;
  const auto buffer = buffers_.find(static_cast<uint32_t>(a[1]));
  std::byte* const device = At(a[0], a[3]);
  if (buffer == buffers_.end() || device == nullptr || a[2] + a[3] > buffer->second.size()) return {kInvalidValue, {}};
  std::byte* const host = buffer->second.data() + a[2];
  memcpy(entry.op == VGPU_OP_BUF_IN ? device : host, entry.op == VGPU_OP_BUF_IN ? host : device, a[3]);
  return reply;
}

FakeExecutor::Reply FakeExecutor::Fill(const vgpu_sqe& entry) {
  const __u64* a = entry.args;
  Reply reply;
  std::byte* const to = At(a[0], a[2] * a[3]);
  if (to == nullptr) return {kInvalidValue, {}};
  for (uint64_t i = 0; i < a[3]; ++i) memcpy(to + i * a[2], &a[1], a[2]);
  return reply;
}

FakeExecutor::Reply FakeExecutor::RecordEvent(const vgpu_sqe& entry) {
  const __u64* a = entry.args;
  Reply reply;
  Slot(a[0]).timestamp_ns = clock_ns_ += 1000000;
  std::atomic_ref(Slot(a[0]).generation).store(a[1]);
  return reply;
}

FakeExecutor::Reply FakeExecutor::CreateTexture(const vgpu_sqe&, std::span<std::byte> payload) {
  Reply reply;
  vgpu_texture texture;
  memcpy(&texture, payload.data(), sizeof texture);
  if (payload.size() != sizeof texture + texture.levels * sizeof(vgpu_texture_level)) return {kInvalidValue, {}};
  vgpu_texture_level level;
  memcpy(&level, payload.data() + sizeof texture, sizeof level);
  if (At(level.address, texture.width) == nullptr) return {kInvalidValue, {}};
  reply.value[0] = next_texture_++;
  textures_.insert(reply.value[0]);
  return reply;
}

FakeExecutor::Reply FakeExecutor::Launch(const vgpu_sqe& entry, std::span<const std::byte> payload) {
  if (entry.args[0] == kNarrow) return {};
  if (entry.args[0] != kVectorAdd || payload.size() != sizeof(vgpu_launch) + 28) return {400, {}};
  uint64_t address[3];
  uint32_t n;
  memcpy(address, payload.data() + sizeof(vgpu_launch), sizeof address);
  memcpy(&n, payload.data() + sizeof(vgpu_launch) + 24, sizeof n);
  float* p[3];
  for (int i = 0; i < 3; ++i) p[i] = reinterpret_cast<float*>(At(address[i], uint64_t{n} * sizeof(float)));
  if (p[0] == nullptr || p[1] == nullptr || p[2] == nullptr) {
    Word(header_.sticky_error).store(700);
    return {700, {}};
  }
  for (uint32_t i = 0; i < n; ++i) p[2][i] = p[0][i] + p[1][i];
  return {};
}

}  // namespace vgpud
