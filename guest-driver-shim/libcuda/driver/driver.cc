// SPDX-License-Identifier: Apache-2.0
// Finding the virtual functions of this process at cuInit, and the context that a call works in.
#include "guest-driver-shim/libcuda/driver/driver.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>

#include "guest-driver-shim/libcuda/channel/channel_list.h"
#include "guest-driver-shim/libcuda/channel/page_swap.h"
#include "guest-driver-shim/libcuda/channel/uuid_text.h"

namespace vgpud::cuda {
namespace {

constexpr int kMaxDeviceFiles = 16;

// Not 0 in the process that opened the channels: children find 0 in it, however they were made (MADV_WIPEONFORK).
const std::atomic<int>* opener = nullptr;
// The same for fork(), which says so; also where the kernel can't do the above.
std::atomic<bool> forked{false};

// The parent's memory and kernels end with the parent, not with its children. Async-signal-safe.
void BecomeChild() {
  if (forked.exchange(true)) return;
  for (const auto& device : Driver::Get().devices())
    if (device->way != nullptr) device->way->CloseInChild();
}

bool IsChild() {
  if (forked.load(std::memory_order_relaxed)) return true;
  if (opener == nullptr || opener->load(std::memory_order_relaxed) != 0) return false;
  BecomeChild();
  return true;
}

void NoteForks() {
  constexpr size_t kPage = 4096;
  void* const page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page != MAP_FAILED && madvise(page, kPage, MADV_WIPEONFORK) == 0) opener = new (page) std::atomic<int>(1);
  pthread_atfork(nullptr, nullptr, BecomeChild);
}

std::unique_ptr<Device> MakeDevice(const std::string& path, std::unique_ptr<Transport> transport, std::string why) {
  auto device = std::make_unique<Device>();
  device->path = path;
  device->why = std::move(why);
  if (transport != nullptr) device->vf = transport->info();
  device->way = transport.get();
  device->transport = std::move(transport);
  return device;
}

// A device for each socket. All of them, or none and `why`: a program with fewer devices than it was promised would
// number them wrongly.
std::vector<std::unique_ptr<Device>> OpenChannelSockets(const ChannelList& list, std::string* why) {
  std::vector<std::unique_ptr<Device>> found;
  for (const std::string& path : list.sockets) {
    auto transport = OpenChannelSocket(path, why);
    if (transport == nullptr) {
      *why +=
          " (that socket is in VGPU_CHANNEL or in /run/vgpud; 'vgpuctl show NAME' on the host tells where a VF's is)";
      return {};
    }
    found.push_back(MakeDevice(path, std::move(transport), {}));
  }
  if (found.empty()) *why = list.why + ": 'vgpuctl show NAME' on the host tells where a VF's is";
  return found;
}

// All virtual functions that this process was given, in their order; `why` when it may use none. One that can't be
// opened keeps its number, so that the others keep theirs.
std::vector<std::unique_ptr<Device>> FindDevices(std::string* why) {
  if (const auto list = ChannelsOfEnvironment()) return OpenChannelSockets(*list, why);
  std::vector<std::unique_ptr<Device>> found;
  bool any = false;
  for (int i = 0; i < kMaxDeviceFiles; ++i) {
    const std::string path = "/dev/vgpu" + std::to_string(i);
    if (access(path.c_str(), F_OK) != 0) continue;
    std::string trouble;
    auto transport = OpenDeviceFile(path, &trouble);
    any |= transport != nullptr;
    if (why->empty()) *why = trouble;
    found.push_back(MakeDevice(path, std::move(transport), std::move(trouble)));
  }
  if (found.empty())
    *why =
        "there is no /dev/vgpu0, no channel socket in /run/vgpud and VGPU_CHANNEL is not set: in a guest load its "
        "driver (modprobe vgpu), on the host "
        "run "
        "the program with tools/run-direct or set VGPU_CHANNEL to the channel socket that 'vgpuctl show NAME' tells";
  if (!any) found.clear();
  return found;
}

// The device that a word of CUDA_VISIBLE_DEVICES names: the beginning of one UUID, or a number with anything behind it.
std::optional<size_t> NamedBy(const std::string& word, const std::vector<std::unique_ptr<Device>>& all) {
  std::optional<size_t> named;
  if (word.starts_with("GPU-")) {
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i]->way == nullptr || !UuidText(all[i]->vf.uuid).starts_with(word)) continue;
      if (named) return std::nullopt;  // it may be either
      named = i;
    }
    return named;
  }
  char* end = nullptr;
  const long number = strtol(word.c_str(), &end, 10);
  if (end != word.c_str() && number >= 0 && static_cast<size_t>(number) < all.size())
    named = static_cast<size_t>(number);
  return named;
}

// CUDA_VISIBLE_DEVICES: words with ',' between; what follows the first that names no device is ignored.
std::vector<size_t> VisibleDevices(const std::vector<std::unique_ptr<Device>>& all) {
  std::vector<size_t> order;
  const char* visible = getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) {
    for (size_t i = 0; i < all.size(); ++i) order.push_back(i);
    return order;
  }
  std::string list = visible;
  while (!list.empty()) {
    const size_t comma = list.find(',');
    std::string word = list.substr(0, comma);
    list = comma == std::string::npos ? "" : list.substr(comma + 1);
    word.erase(0, word.find_first_not_of(' '));
    word.erase(word.find_last_not_of(' ') + 1);
    const auto named = NamedBy(word, all);
    if (!named) break;
    if (std::find(order.begin(), order.end(), *named) != order.end()) return {};
    order.push_back(*named);
  }
  return order;
}

bool CanPinPages(Transport& transport) {
  constexpr size_t kPage = 4096;
  alignas(kPage) static std::byte page[kPage];
  Transport::Buffer buffer;
  return transport.PinBuffer(reinterpret_cast<uint64_t>(page), kPage, &buffer) == 0 &&
         transport.FreeBuffer(buffer) == 0;
}

// So does device memory, where its addresses are the host's to choose.
CUresult UseOwnAddresses(Device* device) {
  Command command;
  command.op = VGPU_OP_LIMIT_SET;
  command.args[0] = VGPU_LIMIT_VRAM_PART;
  command.args[1] = static_cast<uint64_t>(device->ordinal) % VGPU_BUFFER_PARTS;
  if (device->ordinal == 0) return CUDA_SUCCESS;
  const CUresult status = device->channel->Call(command).status;
  device->has_own_addresses = status == CUDA_SUCCESS && device->ordinal < static_cast<int>(VGPU_BUFFER_PARTS);
  // A host that does not know the limit says that its value is wrong.
  return status == CUDA_ERROR_NOT_SUPPORTED || status == CUDA_ERROR_INVALID_VALUE ? CUDA_SUCCESS : status;
}

// Buffers of several devices must have different addresses.
CUresult BeginSharing(Device* device) {
  const Transport& transport = device->channel->transport();
  const bool shares = (transport.info().features & VGPU_FEATURE_SHARED_BUFFERS) != 0 &&
                      device->info.attribute[VGPU_ATTRIBUTE_SHARED_BUFFERS] == 1;
  device->shares_memory = shares && transport.maps_buffers();
  device->imports_memory =
      shares && !transport.maps_buffers() && (transport.info().features & VGPU_FEATURE_CLIENT_MEMORY) != 0;
  if (!device->shares_memory || device->ordinal == 0) return CUDA_SUCCESS;
  Command command;
  command.op = VGPU_OP_LIMIT_SET;
  command.args[0] = VGPU_LIMIT_BUFFER_PART;
  command.args[1] = static_cast<uint64_t>(device->ordinal) % VGPU_BUFFER_PARTS;
  return device->channel->Call(command).status;
}

}  // namespace

int Device::attribute(int index) const {
  switch (index) {
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
      return static_cast<int>(vf.pci_domain);
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      return static_cast<int>(vf.pci_bus);
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
      return static_cast<int>(vf.pci_device);
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
      return 1;  // made here, whatever the device is (pool.cc, managed.cc)
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST:
      // There are no two copies (shared_memory.h), but perhaps of variables.
      return shares_memory && info.attribute[VGPU_ATTRIBUTE_MANAGED_IN_TURNS] == 0 ? 1 : 0;
    case CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED:
      if (!shares_memory && !imports_memory) return 0;
      return info.attribute[VGPU_ATTRIBUTE_MANAGED_IN_TURNS] == 0 ? 1 : info.attribute[index];
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
      return has_own_addresses ? info.attribute[index] : 0;
    case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED:
      return makes_tensor_maps() ? 1 : info.attribute[index];
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
      return imports_memory || (shares_memory && (CanReplacePages() || CanPinPages(channel->transport()))) ? 1 : 0;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      return (vf.features & VGPU_FEATURE_MAPPED_MEMORY) != 0
                 ? static_cast<int>(info.attribute[VGPU_ATTRIBUTE_MAPPABLE_MEMORY])
                 : 0;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR:
      return (vf.features & VGPU_FEATURE_STREAM_VALUES) != 0 ? 1 : 0;  // stream_memory.cc
    default:
      return index >= 0 && index < static_cast<int>(VGPU_DEVICE_ATTRIBUTES) ? info.attribute[index] : 0;
  }
}

Driver& Driver::Get() {
  static Driver* const driver = new Driver;  // outlives every thread and exit handler of the program
  return *driver;
}

CUresult Driver::Ready() const {
  return ready_.load(std::memory_order_acquire) && !IsChild() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult Driver::Init() {
  if (IsChild()) return CUDA_ERROR_NOT_INITIALIZED;
  MutexLock lock(init_mutex_);
  if (!tried_) {
    const char* blocking = getenv("CUDA_LAUNCH_BLOCKING");
    launch_blocking_ = blocking != nullptr && atoi(blocking) != 0;
    devices_.clear();  // of a try that had no memory
    init_result_ = FindAll();
    tried_ = true;
    if (init_result_ == CUDA_SUCCESS) {
      NoteForks();
      ready_.store(true, std::memory_order_release);
    }
  }
  return init_result_;
}

CUresult Driver::FindAll() {
  std::string why;
  auto all = FindDevices(&why);
  if (all.empty()) {
    fprintf(stderr, "vgpud: no virtual GPU: %s\n", why.c_str());
    return CUDA_ERROR_NO_DEVICE;
  }
  for (const size_t index : VisibleDevices(all)) {
    auto device = std::move(all[index]);
    device->ordinal = static_cast<int>(devices_.size());
    device->primary = std::make_shared<Context>();
    device->primary->device = device.get();
    device->primary->id = static_cast<uint64_t>(device->ordinal) + 1;
    device->primary->is_primary = true;
    device->primary_handle = device->primary->handle = contexts_.Add(device->primary);
    devices_.push_back(std::move(device));
  }
  return devices_.empty() ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

CUresult Driver::OpenDevice(CUdevice ordinal, Device** out) {
  if (const CUresult error = Ready()) return error;
  Device* const found = device(ordinal);
  if (found == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (!found->open.load(std::memory_order_acquire)) {
    MutexLock lock(init_mutex_);
    if (!found->open.load()) {
      if (const CUresult error = Open(found)) return error;
      found->open.store(true, std::memory_order_release);
    }
  }
  *out = found;
  return CUDA_SUCCESS;
}

// May be tried again: whoever has all channels now may have ended then.
CUresult Driver::Open(Device* device) {
  if (device->channel == nullptr) {
    std::string why = device->why;
    if (device->way == nullptr || !device->way->MakeChannel(&why)) {
      fprintf(stderr, "vgpud: device %d can't be used: %s (CUDA_VISIBLE_DEVICES can leave it out)\n", device->ordinal,
              why.starts_with(device->path) ? why.c_str() : (device->path + ": " + why).c_str());
      return CUDA_ERROR_DEVICE_UNAVAILABLE;
    }
    device->vf = device->way->info();
    device->channel = std::make_unique<Channel>(std::move(device->transport));
  }
  if (!device->channel->usable()) {
    fprintf(stderr, "vgpud: the channel of %s is not of ABI version %u: update the guest's driver\n",
            device->path.c_str(), VGPU_ABI_VERSION);
    return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  }
  Command command;
  command.op = VGPU_OP_DEVICE_INFO;
  const Completion done =
      device->channel->Call(command, {}, std::as_writable_bytes(std::span<vgpu_device_info, 1>(&device->info, 1)));
  if (done.status != CUDA_SUCCESS) {
    fprintf(stderr, "vgpud: the virtual GPU of %s did not describe itself: %s\n", device->path.c_str(),
            device->channel->ErrorText().c_str());
    return done.status;
  }
  device->name.assign(device->info.name, strnlen(device->info.name, sizeof device->info.name));
  if (const CUresult error = UseOwnAddresses(device)) return error;
  if (const CUresult error = BeginSharing(device)) return error;
  device->events = std::make_unique<EventSlots>(device->channel.get(), &device->epoch);
  device->gates = std::make_unique<Gates>(device->channel.get(), device->events.get());
  return CUDA_SUCCESS;
}

std::vector<CUcontext>& ContextStack() {
  static thread_local std::vector<CUcontext> stack;
  return stack;
}

Current CurrentContext(bool sticky) {
  const auto& stack = ContextStack();
  return InContext(stack.empty() ? nullptr : stack.back(), sticky);
}

namespace {

// Also of a primary context that nobody has retained.
Current Of(CUcontext handle, bool sticky) {
  Current current;
  Driver& driver = Driver::Get();
  current.error = driver.Ready();
  if (current.error != CUDA_SUCCESS) return current;
  if (handle == nullptr) {
    current.error = CUDA_ERROR_INVALID_CONTEXT;
    return current;
  }
  current.context = driver.contexts().Find(handle);
  if (current.context == nullptr) {
    current.error = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return current;
  }
  current.device = current.context->device;
  current.channel = current.device->channel.get();
  if (sticky) current.error = current.channel->Sticky();
  return current;
}

}  // namespace

Current InContext(CUcontext handle, bool sticky) {
  Current current = Of(handle, sticky);
  if (current.context != nullptr && current.context->is_primary &&
      !current.device->primary_active.load(std::memory_order_acquire))
    current.error = CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return current;
}

Current PrimaryOf(const Device* device) { return Of(device->primary_handle, true); }

}  // namespace vgpud::cuda
