// SPDX-License-Identifier: Apache-2.0
// The state of the driver in this process: devices, contexts and everything that lives in them.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "guest-driver-shim/libcuda/api.h"
#include "guest-driver-shim/libcuda/channel/channel.h"
#include "guest-driver-shim/libcuda/channel/context_storage.h"
#include "guest-driver-shim/libcuda/channel/handle_table.h"
#include "guest-driver-shim/libcuda/driver/event_slots.h"
#include "guest-driver-shim/libcuda/driver/gates.h"
#include "guest-driver-shim/libcuda/driver/version.h"

namespace vgpud::cuda {

struct Context;
struct MemoryPool;

// A number for memory, never given before in this process. Any thread.
uint64_t NewMemoryId();

// One virtual function. It has a channel, and what follows `ordinal` up to the primary context's, from when it was
// opened (Driver::OpenDevice): who only counts devices takes none from others. Lives until the process ends.
struct Device {
  std::string path;                      // of its file or socket
  std::string why;                       // it can't be used, if that is known
  std::unique_ptr<Transport> transport;  // until it is the channel's
  Transport* way = nullptr;              // the same, whoever has it
  vgpu_ioc_info vf{};
  int ordinal = 0;
  std::unique_ptr<Channel> channel;
  std::unique_ptr<EventSlots> events;
  std::unique_ptr<Gates> gates;
  vgpu_device_info info{};
  std::string name;
  // Tensor maps are what the GPU's own driver makes of them: by the host (VGPU_OP_TENSOR_MAP).
  bool makes_tensor_maps() const { return info.attribute[VGPU_ATTRIBUTE_TENSOR_MAPS_BY_HOST] == 1; }
  bool has_own_addresses = true;  // no other device of the process has memory where this one has some
  bool shares_memory = false;     // kernels reach host memory while they run (shared_memory.h)
  bool imports_memory = false;    // they reach files of this process, which can't have the above (imported_memory.h)
  std::shared_ptr<Context> primary;
  CUcontext primary_handle = nullptr;
  // Between a retain and a reset, or the last release: without it the handle is that of a destroyed context.
  std::atomic<bool> primary_active{false};

  Mutex mutex{lock_rank::kDevice};
  int primary_users GUARDED_BY(mutex) = 0;
  unsigned primary_flags GUARDED_BY(mutex) = 0;
  int other_contexts GUARDED_BY(mutex) = 0;
  struct Allocation {
    uint64_t bytes = 0;
    Context* context = nullptr;
    std::shared_ptr<MemoryPool> pool = nullptr;  // that it came from, if it did
    bool of_graph = false;                       // a graph's (graph_memory.cc), which gives it back
    bool ended = false;                          // of_graph: freed since the last launch
    bool free_node = false;                      // of_graph: the graph frees it itself
    uint64_t id = NewMemoryId();
    bool sync_copies = false;  // copies and fills of ranges within the device wait, too, unless asynchronous
  };
  std::map<CUdeviceptr, Allocation> allocations GUARDED_BY(mutex);
  std::map<CUdeviceptr, uint64_t> globals GUARDED_BY(mutex);  // variables of modules

  std::atomic<uint32_t> next_stream{VGPU_STREAM_FIRST};
  std::atomic<uint64_t> next_module{1};
  std::atomic<uint64_t> epoch{1};  // counts CONTEXT_RESETs: what was loaded in an older epoch is gone

  std::atomic<bool> open{false};

  int attribute(int index) const;
};

struct Context {
  Device* device = nullptr;
  uint64_t id = 0;
  bool is_primary = false;
  unsigned flags = 0;
  int attached = 0;  // cuCtxAttach without its cuCtxDetach; under the device's mutex
  CUcontext handle = nullptr;
  // By CUlimit, in bytes or counts; the first values are those of CUDA on compute capability 7.5.
  std::array<std::atomic<size_t>, CU_LIMIT_MAX> limit{1024, 1 << 20, 8 << 20, 2, 2048, 64};
  ContextStorage storage;
};

// The one driver of the process.
class Driver {
 public:
  static Driver& Get();

  // cuInit: finds the devices once. The same answer every time.
  CUresult Init();
  // CUDA_ERROR_NOT_INITIALIZED before cuInit and in a forked child.
  CUresult Ready() const;
  std::vector<std::unique_ptr<Device>>& devices() { return devices_; }
  // It may not be open yet.
  Device* device(CUdevice ordinal) {
    return ordinal >= 0 && static_cast<size_t>(ordinal) < devices_.size() ? devices_[ordinal].get() : nullptr;
  }
  // The device, with its channel. What keeps it from having one is said to the program's user, too.
  CUresult OpenDevice(CUdevice ordinal, Device** out);
  HandleTable<CUcontext, Context>& contexts() { return contexts_; }
  bool launch_blocking() const { return launch_blocking_; }

 private:
  Driver() = default;
  CUresult FindAll();
  CUresult Open(Device* device) REQUIRES(init_mutex_);

  Mutex init_mutex_{lock_rank::kInit};
  std::atomic<bool> ready_{false};
  bool tried_ GUARDED_BY(init_mutex_) = false;
  bool launch_blocking_ = false;
  CUresult init_result_ GUARDED_BY(init_mutex_) = CUDA_ERROR_NOT_INITIALIZED;
  std::vector<std::unique_ptr<Device>> devices_;
  HandleTable<CUcontext, Context> contexts_{0xc1};
};

// The calling thread's stack of current contexts.
std::vector<CUcontext>& ContextStack();

// The context that a call works in. Check `error` first.
struct Current {
  CUresult error = CUDA_SUCCESS;
  std::shared_ptr<Context> context;
  Device* device = nullptr;
  Channel* channel = nullptr;
};
// With `sticky`, a poisoned context is an error as well.
Current CurrentContext(bool sticky = true);
// The same for a context that the caller names; none when it is null.
Current InContext(CUcontext handle, bool sticky = true);
// The same for what is on `device`, whichever context is current or destroyed: its primary context stands for all.
Current PrimaryOf(const Device* device);

}  // namespace vgpud::cuda
