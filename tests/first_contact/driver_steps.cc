// SPDX-License-Identifier: Apache-2.0
// driver-steps LIBRARY STEP...: does steps with the CUDA driver in LIBRARY, each with what the steps before have made,
// and says "STEP ok". The first call that is refused, or result that is wrong, ends it: "STEP: cuCall: NAME (number)".
#include <dlfcn.h>
#include <fmt/core.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Status = int;
using Pointer = uint64_t;
void* library;

struct Failed {
  std::string what;
};

void Check(bool right, std::string_view what) {
  if (!right) throw Failed{std::string(what)};
}

// cuda.h says what a call takes; the types of `arguments` must be exactly those.
template <class... Arguments>
Status Try(const char* name, Arguments... arguments) {
  const auto call = reinterpret_cast<Status (*)(Arguments...)>(::dlsym(library, name));
  Check(call != nullptr, fmt::format("{}: not in the driver", name));
  return call(arguments...);
}
template <class... Arguments>
void Call(const char* name, Arguments... arguments) {
  const Status status = Try(name, arguments...);
  if (status == 0) return;
  const char* text = "?";
  Try("cuGetErrorName", status, &text);
  throw Failed{fmt::format("{}: {} ({})", name, text, status)};
}

// What the steps have made.
int device_count, device;
void *context, *stream, *module, *kernel;

void Init() {
  Call("cuInit", 0u);
  Call("cuDeviceGetCount", &device_count);
  for (int i = 0; i < device_count; ++i) {
    char name[64] = {};
    int major = 0, minor = 0, processors = 0;
    size_t bytes = 0;
    unsigned char uuid[16];
    Call("cuDeviceGet", &device, i);
    Call("cuDeviceGetName", name, static_cast<int>(sizeof name), device);
    Call("cuDeviceGetAttribute", &major, 75, device);
    Call("cuDeviceGetAttribute", &minor, 76, device);
    Call("cuDeviceGetAttribute", &processors, 16, device);
    Call("cuDeviceTotalMem_v2", &bytes, device);
    Call("cuDeviceGetUuid", uuid, device);
    fmt::print("device {}: {}, {}.{}, {} processors, {} MiB, uuid {:02x}\n", i, name, major, minor, processors,
               bytes >> 20, uuid[0]);
  }
  Call("cuDeviceGet", &device, 0);
}

void MakeContext() {
  constexpr unsigned kBlockingSync = 4;
  Call("cuDevicePrimaryCtxSetFlags_v2", device, kBlockingSync);
  Call("cuDevicePrimaryCtxRetain", &context, device);
  Call("cuCtxSetCurrent", context);
  Call("cuCtxSynchronize");
}

std::vector<uint8_t> Pattern(size_t bytes, unsigned seed) {
  std::vector<uint8_t> pattern(bytes);
  for (size_t i = 0; i < bytes; ++i) pattern[i] = static_cast<uint8_t>((i * 2654435761u + seed) >> 13);
  return pattern;
}

void CopyMemory() {
  for (const size_t bytes : {size_t{1}, size_t{100}, size_t{64} << 10, (size_t{5} << 20) + 3}) {
    Pointer memory = 0;
    Call("cuMemAlloc_v2", &memory, bytes + 16);
    const auto sent = Pattern(bytes, static_cast<unsigned>(bytes));
    std::vector<uint8_t> got(bytes);
    Call("cuMemcpyHtoD_v2", memory + 16, static_cast<const void*>(sent.data()), bytes);
    Call("cuMemcpyDtoH_v2", static_cast<void*>(got.data()), memory + 16, bytes);
    Check(got == sent, fmt::format("{} bytes came back wrong", bytes));
    Call("cuMemFree_v2", memory);
  }
}

void CopyHostMemory() {
  constexpr size_t kBytes = 1 << 20;
  constexpr unsigned kMapped = 2;
  void* pinned = nullptr;
  Pointer there = 0, memory = 0;
  Call("cuMemHostAlloc", &pinned, kBytes, kMapped);
  Call("cuMemHostGetDevicePointer_v2", &there, pinned, 0u);
  Call("cuMemAlloc_v2", &memory, kBytes);
  const auto sent = Pattern(kBytes, 7);
  std::memcpy(pinned, sent.data(), kBytes);
  Call("cuMemcpyHtoD_v2", memory, static_cast<const void*>(pinned), kBytes);
  std::memset(pinned, 0, kBytes);
  Call("cuMemcpyDtoH_v2", pinned, memory, kBytes);
  Check(std::memcmp(pinned, sent.data(), kBytes) == 0, "pinned memory came back wrong");
  std::vector<uint8_t> own(3 * kBytes);
  auto* const page = reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(own.data()) + 4095) / 4096 * 4096);
  Call("cuMemHostRegister_v2", static_cast<void*>(page), kBytes, kMapped);
  Call("cuMemHostGetDevicePointer_v2", &there, static_cast<void*>(page), 0u);
  Call("cuMemcpyDtoH_v2", static_cast<void*>(page), memory, kBytes);
  Check(std::memcmp(page, sent.data(), kBytes) == 0, "registered memory came back wrong");
  Call("cuMemHostUnregister", static_cast<void*>(page));
  Call("cuMemFreeHost", pinned);
  Call("cuMemFree_v2", memory);
}

void UseStreams() {
  constexpr unsigned kNonBlocking = 1;
  constexpr size_t kBytes = 256 << 10;
  Call("cuStreamCreate", &stream, kNonBlocking);
  std::vector<void*> streams(20);
  for (void*& each : streams) Call("cuStreamCreate", &each, kNonBlocking);
  Pointer memory = 0;
  Call("cuMemAlloc_v2", &memory, kBytes * streams.size());
  // Each stream waits for the one before, and takes on what that has left on the card.
  const auto sent = Pattern(kBytes, 11);
  std::vector<std::vector<uint8_t>> hands(streams.size(), std::vector<uint8_t>(kBytes));
  Call("cuMemcpyHtoDAsync_v2", memory, static_cast<const void*>(sent.data()), kBytes, streams[0]);
  for (size_t i = 1; i < streams.size(); ++i) {
    void* event = nullptr;
    Call("cuEventCreate", &event, 2u);
    Call("cuEventRecord", event, streams[i - 1]);
    Call("cuStreamWaitEvent", streams[i], event, 0u);
    Call("cuMemcpyDtoHAsync_v2", static_cast<void*>(hands[i].data()), memory + (i - 1) * kBytes, kBytes, streams[i]);
    Call("cuMemcpyHtoDAsync_v2", memory + i * kBytes, static_cast<const void*>(hands[i].data()), kBytes, streams[i]);
    Call("cuEventDestroy_v2", event);
  }
  Call("cuStreamSynchronize", streams.back());
  Check(hands.back() == sent, "twenty streams in a row lost something");
  for (void* each : streams) Call("cuStreamDestroy_v2", each);
  Call("cuMemFree_v2", memory);
}

void UseEvents() {
  void *begin = nullptr, *end = nullptr;
  Pointer memory = 0;
  constexpr size_t kBytes = 4 << 20;
  Call("cuEventCreate", &begin, 1u);  // whoever waits sleeps
  Call("cuEventCreate", &end, 1u);
  Call("cuMemAlloc_v2", &memory, kBytes);
  Call("cuEventRecord", begin, stream);
  Call("cuMemsetD8Async", memory, static_cast<unsigned char>(3), kBytes, stream);
  Call("cuEventRecord", end, stream);
  Call("cuEventSynchronize", end);
  Check(Try("cuEventQuery", begin) == 0, "an event that was there before is not");
  float milliseconds = -1;
  Call("cuEventElapsedTime", &milliseconds, begin, end);
  Check(milliseconds >= 0, "the second event was before the first");
  Call("cuMemFree_v2", memory);
}

constexpr char kPtx[] = R"(.version 7.0
.target sm_52
.address_size 64
.visible .global .align 4 .u32 number = 41;
.visible .entry store(.param .u64 at, .param .u32 value)
{
 .reg .b64 %rd<3>;
 .reg .b32 %r<3>;
 ld.param.u64 %rd1, [at];
 cvta.to.global.u64 %rd2, %rd1;
 ld.param.u32 %r1, [value];
 mov.u32 %r2, %tid.x;
 add.u32 %r1, %r1, %r2;
 st.global.u32 [%rd2], %r1;
 ret;
}
)";

void Compile() {
  char log[4096] = {};
  int options[] = {5, 6};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  const Status wrong =
      Try("cuModuleLoadDataEx", &module, static_cast<const void*>(".version 7.0\n.target sm_52\nnonsense"), 2u,
          static_cast<int*>(options), static_cast<void**>(values));
  Check(wrong == 218, fmt::format("nonsense compiled: {}", wrong));
  Check(std::strstr(log, "nonsense") != nullptr, "the compiler says nothing of nonsense");
  Call("cuModuleLoadDataEx", &module, static_cast<const void*>(kPtx), 0u, static_cast<int*>(nullptr),
       static_cast<void**>(nullptr));
  Call("cuModuleGetFunction", &kernel, module, "store");
  // What a module brings with it is on the card.
  Pointer number = 0;
  size_t bytes = 0;
  uint32_t value = 0;
  Call("cuModuleGetGlobal_v2", &number, &bytes, module, "number");
  Check(bytes == sizeof value, "a variable has another size");
  Call("cuMemcpyDtoH_v2", static_cast<void*>(&value), number, bytes);
  Check(value == 41, fmt::format("a variable begins as {}", value));
}

void Launch() {
  Pointer memory = 0;
  uint32_t value = 7;
  Call("cuMemAlloc_v2", &memory, size_t{4096});
  void* parameters[] = {&memory, &value};
  for (int i = 0; i < 100; ++i)
    Call("cuLaunchKernel", kernel, 2u, 1u, 1u, 32u, 1u, 1u, 0u, stream, static_cast<void**>(parameters),
         static_cast<void**>(nullptr));
  Call("cuStreamSynchronize", stream);
  Call("cuLaunchKernel", kernel, 1u, 1u, 1u, 1u, 1u, 1u, 0u, static_cast<void*>(nullptr),
       static_cast<void**>(parameters), static_cast<void**>(nullptr));
  Call("cuCtxSynchronize");
  Call("cuMemFree_v2", memory);
}

void MapLater() {
  struct {
    int type = 1, handles = 0, location = 1, device = 0;
    void* attributes = nullptr;
    unsigned char flags[8] = {};
  } wanted;
  struct {
    int location = 1, device = 0, access = 3;
  } access;
  constexpr size_t kBytes = 2 << 20;
  Pointer reserved = 0;
  uint64_t handle = 0;
  Call("cuMemAddressReserve", &reserved, size_t{1} << 40, size_t{0}, Pointer{0x780000000000}, uint64_t{0});
  Call("cuMemCreate", &handle, kBytes, &wanted, uint64_t{0});
  Call("cuMemMap", reserved + kBytes, kBytes, size_t{0}, handle, uint64_t{0});
  Call("cuMemSetAccess", reserved + kBytes, kBytes, &access, size_t{1});
  const auto sent = Pattern(kBytes, 5);
  std::vector<uint8_t> got(kBytes);
  Call("cuMemcpyHtoD_v2", reserved + kBytes, static_cast<const void*>(sent.data()), kBytes);
  Call("cuMemcpyDtoH_v2", static_cast<void*>(got.data()), reserved + kBytes, kBytes);
  Check(got == sent, "memory that was mapped later came back wrong");
  Call("cuMemUnmap", reserved + kBytes, kBytes);
  Call("cuMemRelease", handle);
  Call("cuMemAddressFree", reserved, size_t{1} << 40);
}

// An array of texels, there and back, and objects that see it.
void UseArray() {
  struct {
    size_t width = 64, height = 48, depth = 0;
    unsigned format = 0x20, channels = 4, flags = 2;
  } shape;
  constexpr size_t kRow = 64 * 16, kBytes = kRow * 48;
  void* array = nullptr;
  Call("cuArray3DCreate_v2", &array, &shape);
  struct Copy {
    size_t x, y, z, level;
    int type, pad;
    const void* host;
    Pointer device;
    void* array;
    void* reserved;
    size_t pitch, height;
  };
  struct {
    Copy from, to;
    size_t width, height, depth;
  } copy = {};
  auto sent = Pattern(kBytes, 19);
  std::vector<uint8_t> got(kBytes);
  const Copy host{0, 0, 0, 0, 1, 0, sent.data(), 0, nullptr, nullptr, kRow, 48},
      card{0, 0, 0, 0, 3, 0, nullptr, 0, array, nullptr, 0, 0};
  copy = {host, card, kRow, 48, 1};
  Call("cuMemcpy3D_v2", &copy);
  copy = {card, host, kRow, 48, 1};
  copy.to.host = got.data();
  Call("cuMemcpy3D_v2", &copy);
  Check(got == sent, "an array came back wrong");
  struct {
    int kind = 0, pad = 0;
    void* array = nullptr;
    char rest[128] = {};
  } resource;
  resource.array = array;
  char texture_shape[104] = {};
  Pointer texture = 0, surface = 0;
  Call("cuTexObjectCreate", &texture, &resource, static_cast<void*>(texture_shape), static_cast<void*>(nullptr));
  Call("cuSurfObjectCreate", &surface, &resource);
  Call("cuTexObjectDestroy", texture);
  Call("cuSurfObjectDestroy", surface);
  Call("cuArrayDestroy", array);
}

void Reset() {
  Call("cuDevicePrimaryCtxReset_v2", device);
  Pointer memory = 0;
  Check(Try("cuMemAlloc_v2", &memory, size_t{100}) == 709, "a context that was reset still works");
  Call("cuDevicePrimaryCtxRetain", &context, device);
  Call("cuCtxSetCurrent", context);
  Call("cuMemAlloc_v2", &memory, size_t{100});
}

void Allocate() {
  Pointer memory = 0;
  Call("cuMemAlloc_v2", &memory, size_t{64} << 20);
  Call("cuMemFree_v2", memory);
}

// More than the card has, and then what it has.
void AllocateTooMuch() {
  size_t left = 0, all = 0;
  Pointer memory = 0;
  Call("cuMemGetInfo_v2", &left, &all);
  Check(Try("cuMemAlloc_v2", &memory, all + (size_t{1} << 20)) == 2, "there is more memory than the card has");
  Call("cuMemAlloc_v2", &memory, left / 2);
  Check(Try("cuMemAlloc_v2", &memory, left / 2 + (size_t{64} << 20)) == 2, "memory is given twice");
  Allocate();
}

// On each card: its own context, memory and work, at the same time.
void UseEach() {
  constexpr size_t kBytes = 1 << 20;
  struct Used {
    void* context;
    Pointer memory;
  };
  std::vector<Used> all(static_cast<size_t>(device_count));
  for (int i = 0; i < device_count; ++i) {
    Used& used = all[static_cast<size_t>(i)];
    Call("cuDevicePrimaryCtxRetain", &used.context, i);
    Call("cuCtxSetCurrent", used.context);
    Call("cuMemAlloc_v2", &used.memory, kBytes);
    Call("cuMemcpyHtoD_v2", used.memory, static_cast<const void*>(Pattern(kBytes, static_cast<unsigned>(i)).data()),
         kBytes);
  }
  for (int i = 0; i < device_count; ++i) {
    const Used& used = all[static_cast<size_t>(i)];
    std::vector<uint8_t> got(kBytes);
    Call("cuCtxSetCurrent", used.context);
    Call("cuMemcpyDtoH_v2", static_cast<void*>(got.data()), used.memory, kBytes);
    Check(got == Pattern(kBytes, static_cast<unsigned>(i)), fmt::format("memory of card {} came back wrong", i));
    Call("cuMemFree_v2", used.memory);
  }
}

void PrintFree() {
  size_t left = 0, all = 0;
  Call("cuMemGetInfo_v2", &left, &all);
  fmt::print("free {} of {} MiB\n", left >> 20, all >> 20);
}

// Waits for a line, so that a test can do something to the card.
void Wait() {
  fmt::print("waiting\n");
  std::fflush(stdout);
  while (std::getchar() != '\n') {
  }
}

constexpr struct {
  const char* name;
  void (*run)();
} kSteps[] = {{"init", &Init},
              {"context", &MakeContext},
              {"copies", &CopyMemory},
              {"host", &CopyHostMemory},
              {"streams", &UseStreams},
              {"events", &UseEvents},
              {"compile", &Compile},
              {"launch", &Launch},
              {"mapped", &MapLater},
              {"array", &UseArray},
              {"reset", &Reset},
              {"alloc", &Allocate},
              {"too-much", &AllocateTooMuch},
              {"each", &UseEach},
              {"free", &PrintFree},
              {"wait", &Wait}};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || (library = ::dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)) == nullptr) {
    fmt::print(stderr, "usage: driver-steps LIBRARY STEP...: {}\n", argc < 3 ? "" : ::dlerror());
    return 2;
  }
  for (int i = 2; i < argc; ++i)
    for (const auto& step : kSteps)
      if (std::string_view(step.name) == argv[i]) try {
          step.run();
          fmt::print("{} ok\n", step.name);
          std::fflush(stdout);
        } catch (const Failed& failed) {
          fmt::print("{}: {}\n", step.name, failed.what);
          return 1;
        }
  return 0;
}
