// SPDX-License-Identifier: Apache-2.0
// A libcuda.so of a few calls for tests of gpu/cuda: device memory is memory of this process, kernels do nothing, and
// the environment variable FAKE_CUDA says what else is to happen, as words "KEY=NUMBER" (or, for processes that get no
// environment, the name of the file: libcuda@KEY=NUMBER@.so):
//   version=N       what cuDriverGetVersion says           init=N, retain=N, launch=N, reset=N   what those calls
//   answer compute_mode=N  the device's                           queries=N   times that a kernel is not ready yet
//   load=N          what cuModuleLoadDataEx answers        kernel=N    how a kernel ends
//   maps=N          what cuMemHostAlloc answers            shared=N   shared memory that a block can have
//   forges=N        the number of begun blocks that a kernel in turns leaves
//   turns=N         what cuModuleLoadDataEx answers for PTX with a kernel that goes in turns
//   turn_threads=N  threads that a block can have of a kernel in turns, as long as the text has no bound of 512
//   array=N         what cuArray3DCreate answers
//   register=N      what cuMemHostRegister answers         access=N   what cuMemSetAccess answers
//   shares=N, maps_later=N   whether the device says that it can do that; it can
//   card_mib=N      MiB of memory that can be made and mapped
//   mig=N           the card is divided: its one instance is MIG-00000000-...-N, two digits
//   card_uuid=N     what cuDeviceGetUuid before CUDA 11.4 answers
//   blind=1         it takes no notice of CUDA_VISIBLE_DEVICES
//   slot=66         it is at 0000:66:00.0, not 65
//   link=N          what cuLinkAddData answers             limit=N    what cuCtxSetLimit answers
//   elsewhere=1     cuMemAddressReserve reserves others     grain=N    granularity of mapped memory
//   occupancy=N     blocks that a multiprocessor runs at once; there are two
//   rm=1            it makes its channels by ioctls of the file rm/nvidiactl beside this one, the model of a control
//                   device (tests/unit/channels/rm_server.cc), and the kernel "beats" beats as long as that lets it
//   hidden=1        these ioctls are system calls of its own
//   lost=N          how a kernel ends that is none of the self-test's, and all calls of its process after that
// The kernels of the self-test (gpu/cuda/self_test_ptx.h) compute what they must (fake_kernels.cc), unless
//   early=1         the endless one is said to have ended when it runs
//   loses=N         of many blocks the one of that number does nothing
//   forgets=1       the endless one goes on without what it had computed
//   deaf=1          the endless one, in turns, never hears that it is to leave
// Of a kernel that goes in turns (its name ends so) one block begins with each question whether it has ended, as long
// as its stop word is what the turn expects. "lacks:NAME": the call that the driver does not have.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "tests/unit/channels/made_channels.h"
#include "tests/unit/cuda/fake_arrays.h"
#include "tests/unit/cuda/fake_calls.h"
#include "tests/unit/cuda/fake_context.h"
#include "tests/unit/cuda/fake_kernels.h"
#include "tests/unit/cuda/fake_memory.h"

namespace {

using namespace fake_cuda;

using Status = uint32_t;
constexpr Status kInvalidValue = 1, kOutOfMemory = 2, kNotFound = 500, kNotReady = 600;
constexpr int kShared = 8, kMultiprocessors = 16, kComputeMode = 20, kMajor = 75, kMinor = 76;
constexpr int kRegistersHost = 99, kMapsLater = 102;
constexpr int kFirstOfShape = 1, kLastOfShape = 7;  // most threads of a block, and of each axis of blocks and grids
constexpr size_t kMemory = size_t{1} << 30;

std::map<uint64_t, void*> memory;
unsigned char variable[64];
std::string loaded;  // the last PTX text
constexpr char kTurnsName[] = "$vgpud_turns";
std::deque<Launched> launches;  // those that have not ended, as they were launched: there is one stream
uint64_t ended = 0;             // launches before them
struct Event {
  uint64_t after = 0;  // launches that are in front of it
};

// The name of this file, of what a link to it leads to; found once, before there is a jail.
std::string OwnName() {
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&kMemory), &self) == 0) return {};
  char resolved[PATH_MAX];
  std::string path = realpath(self.dli_fname, resolved) != nullptr ? resolved : self.dli_fname;
  std::replace(path.begin(), path.end(), '@', ' ');
  return path;
}
std::string Told() {
  static const std::string own = OwnName();
  if (const char* told = std::getenv("FAKE_CUDA"); told != nullptr) return std::string(" ") + told + " ";
  return own;
}

Status Knob(const char* key, Status otherwise = 0) {
  const std::string told = Told(), word = std::string(" ") + key + "=";
  const size_t at = told.find(word);
  return at == std::string::npos ? otherwise
                                 : static_cast<Status>(std::strtoul(told.c_str() + at + word.size(), nullptr, 10));
}

template <class T>
Status Answer(T* out, T value) {
  *out = value;
  return 0;
}

rm_model::MadeChannels channels;
void MakeChannels() {
  const std::string own = OwnName();
  if (Knob("rm") != 0) channels.Make(own.substr(0, own.rfind('/')) + "/rm/nvidiactl", Knob("hidden") != 0);
}

// The card has one MIG instance, of as many zeroes as there are but for `mig`.
std::string InstanceName() {
  char name[64];
  std::snprintf(name, sizeof name, "MIG-00000000-0000-0000-0000-0000000000%02x", Knob("mig"));
  return name;
}
Status Init(unsigned) {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible != nullptr && std::strncmp(visible, "MIG-", 4) == 0 && Knob("blind") == 0 &&
      (Knob("mig") == 0 || visible != InstanceName()))
    return 100;
  const Status status = Knob("init");
  return status != 0 ? status : NameAThread();
}
Status CardUuid(unsigned char* out, int) {
  std::memset(out, 0x11, 16);
  return Knob("card_uuid");
}
Status Uuid(unsigned char* out, int device) {
  (void)device;
  std::memset(out, 0x11, 16);
  if (Knob("mig") == 0) return 0;
  std::memset(out, 0, 16);
  out[15] = static_cast<unsigned char>(Knob("mig"));
  return 0;
}
const char* OwnAddress() { return Knob("slot", 65) == 66 ? "0000:66:00.0" : "0000:65:00.0"; }
Status Version(int* out) { return Answer(out, static_cast<int>(Knob("version", 13000))); }
Status Count(int* out) { return Answer(out, 1); }
Status Get(int* out, int ordinal) { return ordinal == 0 ? Answer(out, 0) : 101; }
Status ByAddress(int* out, const char* address) {
  return std::strcmp(address, OwnAddress()) == 0 ? Answer(out, 0) : 101;
}
Status Address(char* out, int bytes, int) {
  std::snprintf(out, static_cast<size_t>(bytes), "%s", OwnAddress());
  return 0;
}
Status Name(char* out, int bytes, int) {
  std::snprintf(out, static_cast<size_t>(bytes), "Fake GPU%s", Knob("mig") == 0 ? "" : " MIG 1g.5gb");
  return 0;
}
Status Attribute(int* out, int attribute, int) {
  *out = attribute == kComputeMode ? static_cast<int>(Knob("compute_mode")) : attribute == kMajor ? 9 : 0;
  if (attribute == kShared) *out = static_cast<int>(Knob("shared", 48 << 10));
  if (attribute == kMultiprocessors) *out = 2;
  if (attribute == kRegistersHost) *out = static_cast<int>(Knob("shares", 1));
  if (attribute == kMapsLater) *out = static_cast<int>(Knob("maps_later", 1));
  if (attribute >= kFirstOfShape && attribute <= kLastOfShape) *out = 1024;
  return attribute == kMinor ? Answer(out, 1) : 0;
}
Status TotalMemory(size_t* out, int) { return Answer(out, kMemory); }
Status Retain(void** out, int) {
  MakeChannels();
  *out = &memory;
  static bool before = false;
  const Status again = std::exchange(before, true) ? Knob("again") : 0;
  const Status status = Knob("retain", again);
  return status != 0 ? status : MakeContextAgain();
}
Status Reset(int) {
  launches.clear();
  for (const auto& [address, bytes] : memory) std::free(bytes);
  memory.clear();
  const Status status = Knob("reset");
  if (status == 0) DropContext();
  return status;
}
Status SetFlags(int, unsigned) { return 0; }
Status SetCurrent(void*) { return 0; }
Status MakeContext(void** out, unsigned, int) { return Answer<void*>(out, &ended); }
Status EndContext(void*) { return 0; }
size_t heap_bytes = size_t{8} << 20;
Status SetLimit(int limit, size_t value) {
  if (const Status status = Knob("limit"); status != 0 || limit != 2) return limit != 2 ? kInvalidValue : status;
  heap_bytes = value;
  return 0;
}
Status GetLimit(size_t* value, int limit) { return limit == 2 ? Answer(value, heap_bytes) : kInvalidValue; }
Status MemoryInfo(size_t* free, size_t* total) {
  *free = *total = kMemory;
  return 0;
}
Status lost = 0;        // what every call answers from now on
bool of_guest = false;  // what was launched is none of the self-test's

Status Alloc(uint64_t* out, size_t bytes) {
  if (lost != 0) return lost;
  if (bytes > kMemory) return kOutOfMemory;
  void* at = std::calloc(1, bytes);
  *out = reinterpret_cast<uint64_t>(at);
  memory[*out] = at;
  return 0;
}
Status Free(uint64_t address) {
  const auto it = memory.find(address);
  if (it == memory.end()) return kInvalidValue;
  std::free(it->second);
  memory.erase(it);
  return 0;
}
Status HostAlloc(void** out, size_t bytes, unsigned) {
  const Status why_not = Knob("maps");
  if (why_not == 0) *out = std::calloc(1, bytes);
  return why_not;
}
Status HostFree(void* address) {
  std::free(address);
  return 0;
}
Status CopyIn(uint64_t to, const void* from, size_t bytes, void*) {
  if (lost != 0) return lost;
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return 0;
}
Status CopyOut(void* to, uint64_t from, size_t bytes, void*) {
  if (lost != 0) return lost;
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return 0;
}
Status CopyWithin(uint64_t to, uint64_t from, size_t bytes, void*) {
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return 0;
}
template <class T>
Status Fill(uint64_t to, T value, size_t count, void*) {
  for (size_t i = 0; i < count; ++i) std::memcpy(reinterpret_cast<T*>(to) + i, &value, sizeof value);
  return 0;
}
Status MakeStream(void** out, unsigned) { return Answer<void*>(out, &memory); }
Status EndStream(void*) { return 0; }
Status WaitForStream(void*) { return 0; }
Status MakeEvent(void** out, unsigned) { return Answer<void*>(out, new Event); }
Status EndEvent(void* event) {
  delete static_cast<Event*>(event);
  return 0;
}
Status Ended() {
  if (of_guest && lost == 0) lost = Knob("lost");
  return lost != 0 ? lost : Knob("kernel");
}
Status Record(void* event, void*) {
  static_cast<Event*>(event)->after = ended + launches.size();
  return 0;
}
void End() {
  if (const Status forged = Knob("forges"); launches.front().in_turns && forged != 0)
    *reinterpret_cast<uint32_t*>(launches.front().turn.control) = forged;
  launches.pop_front();
  ++ended;
}
// One more beat, if the device lets it.
void Beat(const Launched& beats) {
  if (channels.Runs()) {
    std::atomic_ref(*reinterpret_cast<uint64_t*>(HostOf(beats.params[0]))).fetch_add(1);
    return;
  }
  // A driver lets those sleep who wait for a kernel.
  const timespec nap{0, 100'000};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, nullptr);
}
// A moment of the first one.
void Step() {
  Launched& first = launches.front();
  if (first.kind == Kind::kBeats) return Beat(first);
  if (first.kind == Kind::kNothing ? first.queries-- <= 0 : !fake_cuda::Step(first)) End();
}
bool HasPassed(void* event) { return static_cast<Event*>(event)->after <= ended; }
Status Query(void* event) {
  if (!HasPassed(event)) Step();
  return HasPassed(event) ? Ended() : kNotReady;
}
Status WaitForEvent(void* event) {
  if (!HasPassed(event)) std::printf("waited for a kernel\n");
  while (!HasPassed(event)) {
    launches.front().queries = 0;
    Step();
  }
  return Ended();
}
// Kernels in turns leave.
Status WaitForAll() {
  while (!launches.empty() && launches.front().in_turns) Step();
  return 0;
}
Status Load(void** out, const void* image, unsigned count, int* options, void** values) {
  if (const Status status = Knob("load")) {
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == 5) std::strcpy(static_cast<char*>(values[i]), "ptxas: line 3 is wrong");
    return status;
  }
  const auto* const text = static_cast<const char*>(image);
  loaded = text[0] == '.' ? text : "";
  if (Knob("wanders") != 0) std::printf("chdir %d\n", chdir("/"));
  if (Knob("notes") != 0) Note(text[0] == '.' ? "load PTX\n" : "load machine code\n");
  if (std::strcmp(text, "linked") == 0) Note("load what was linked\n");
  if (const Status status = Knob("turns"); loaded.find(kTurnsName) != std::string::npos && status != 0) return status;
  return Answer<void*>(out, &memory);
}
Status Unload(void*) { return 0; }
Status FindFunction(void** out, void*, const char* name) {
  for (Function& function : kFunctions)
    if (std::strcmp(name, function.name) == 0 &&
        (&function == kFunctions || loaded.find(std::string(name) + "(") != std::string::npos))
      return Answer<void*>(out, &function);
  return kNotFound;
}
Status CountFunctions(unsigned* out, void*) { return Answer(out, 1u); }
Status ListFunctions(void** out, unsigned, void*) { return Answer<void*>(out, kFunctions); }
Status FindGlobal(uint64_t* address, size_t* bytes, void*, const char* name) {
  if (std::strcmp(name, "variable") != 0) return kNotFound;
  *address = reinterpret_cast<uint64_t>(variable);
  *bytes = sizeof variable;
  return 0;
}
Status FunctionName(const char** out, void*) { return Answer(out, "kernel"); }
Status Param(void* function, size_t index, size_t* offset, size_t* bytes) {
  if (index >= 2) return kInvalidValue;
  *offset = 8 * index;
  *bytes = index == 0 ? 8 : static_cast<Function*>(function)->last_param_bytes;
  return 0;
}
Status FunctionAttribute(int* out, int attribute, void* function) {
  const bool bounded = loaded.find(".maxntid 512") != std::string::npos;
  const bool fewer = static_cast<Function*>(function)->in_turns && !bounded;
  return Answer(out, attribute != 0 ? 0 : fewer ? static_cast<int>(Knob("turn_threads", 512)) : 512);
}
Status SetFunctionAttribute(void*, int, int value) { return value <= 100'000 ? 0 : kInvalidValue; }
Status Occupancy(int* out, void*, int, size_t) { return Answer(out, static_cast<int>(Knob("occupancy", 2))); }
Status Launch(const uint32_t* config, void* function, void**, void** extra) {
  const auto& what = *static_cast<Function*>(function);
  if (lost != 0) return lost;
  of_guest = std::strncmp(what.name, "kernel", 6) == 0;
  if (const Status status = Knob("launch")) return status;
  launches.emplace_back();
  Launched& launched = launches.back();
  launched.queries = static_cast<int>(Knob("queries"));
  launched.kind = what.kind;
  launched.in_turns = what.in_turns;
  const size_t bytes = extra == nullptr ? 0 : *static_cast<size_t*>(extra[3]);
  std::memcpy(launched.params, bytes == 0 ? "" : extra[1], std::min(bytes, sizeof launched.params));
  launched.begins = true;
  launched.faults = {Knob("early") != 0, Knob("loses", UINT32_MAX), Knob("forgets") != 0, Knob("deaf") != 0};
  if (what.in_turns) {
    Turn& turn = launched.turn;
    if (bytes != 16 + sizeof turn) {
      launches.pop_back();
      return kInvalidValue;
    }
    std::memcpy(&turn, static_cast<char*>(extra[1]) + 16, sizeof turn);
    if (turn.control == 0) {
      launched.kind = Kind::kNothing;
      launched.in_turns = false;
      std::printf("piece of %u %u %u from %u %u %u\n", config[0], config[1], config[2], turn.first[0], turn.first[1],
                  turn.first[2]);
      return 0;
    }
    std::printf("turn of %u blocks (%u) from %u %u %u of %u %u %u, control %u\n", config[0], turn.blocks, turn.first[0],
                turn.first[1], turn.first[2], turn.grid[0], turn.grid[1], turn.grid[2],
                *reinterpret_cast<uint32_t*>(turn.control));
  } else {
    std::printf("launched\n");
    Note("launched\n");
  }
  return 0;
}
Status RefusableArray(Array** out, const Array* shape) {
  const Status status = Knob("array");
  return status != 0 ? status : MakeArray(out, shape);
}
Status CopyRows(const Copy3d* copy, void*) { return lost != 0 ? lost : Copy(*copy); }
Status ErrorName(Status error, const char** out) { return error == 999 ? kInvalidValue : Answer(out, "CUDA_ERROR_X"); }
Status ErrorText(Status, const char** out) { return Answer(out, "what the driver says"); }

const struct {
  const char* name;
  void* call;
} kCalls[] = {
#define CALL(name, function) \
  { name, reinterpret_cast<void*>(function) }
#define IN_CONTEXT(name, function) CALL(name, &InContext<function>::Call)
    CALL("cuInit", &Init),
    CALL("cuDriverGetVersion", &Version),
    CALL("cuDeviceGetCount", &Count),
    CALL("cuDeviceGet", &Get),
    CALL("cuDeviceGetByPCIBusId", &ByAddress),
    CALL("cuDeviceGetPCIBusId", &Address),
    CALL("cuDeviceGetName", &Name),
    CALL("cuDeviceGetUuid", &Uuid),
    CALL("cuDeviceGetAttribute", &Attribute),
    CALL("cuDeviceTotalMem", &TotalMemory),
    CALL("cuDevicePrimaryCtxRetain", &Retain),
    CALL("cuDevicePrimaryCtxReset", &Reset),
    CALL("cuDevicePrimaryCtxSetFlags", &SetFlags),
    CALL("cuCtxSetCurrent", &SetCurrent),
    IN_CONTEXT("cuCtxSynchronize", &WaitForAll),
    CALL("cuCtxCreate", &MakeContext),
    CALL("cuCtxDestroy", &EndContext),
    IN_CONTEXT("cuCtxSetLimit", &SetLimit),
    IN_CONTEXT("cuCtxGetLimit", &GetLimit),
    IN_CONTEXT("cuMemGetInfo", &MemoryInfo),
    IN_CONTEXT("cuMemAlloc", &Alloc),
    IN_CONTEXT("cuMemFree", &Free),
    IN_CONTEXT("cuMemHostAlloc", &HostAlloc),
    IN_CONTEXT("cuMemHostGetDevicePointer", &AddressOfHost),
    IN_CONTEXT("cuMemHostRegister", &RegisterHost),
    IN_CONTEXT("cuMemHostUnregister", &UnregisterHost),
    CALL("cuMemAddressReserve", &ReserveAddresses),
    CALL("cuMemAddressFree", &FreeAddresses),
    CALL("cuMemCreate", &MakeMemory),
    CALL("cuMemRelease", &EndMemory),
    CALL("cuMemMap", &MapMemory),
    CALL("cuMemUnmap", &UnmapMemory),
    CALL("cuMemSetAccess", &SetAccess),
    CALL("cuMemGetAllocationGranularity", &Granularity),
    IN_CONTEXT("cuMemFreeHost", &HostFree),
    IN_CONTEXT("cuMemcpyHtoDAsync", &CopyIn),
    IN_CONTEXT("cuMemcpyDtoHAsync", &CopyOut),
    IN_CONTEXT("cuMemcpyDtoDAsync", &CopyWithin),
    IN_CONTEXT("cuMemsetD8Async", &Fill<uint8_t>),
    IN_CONTEXT("cuMemsetD16Async", &Fill<uint16_t>),
    IN_CONTEXT("cuMemsetD32Async", &Fill<uint32_t>),
    IN_CONTEXT("cuStreamCreate", &MakeStream),
    IN_CONTEXT("cuStreamDestroy", &EndStream),
    IN_CONTEXT("cuStreamSynchronize", &WaitForStream),
    IN_CONTEXT("cuEventCreate", &MakeEvent),
    IN_CONTEXT("cuEventDestroy", &EndEvent),
    IN_CONTEXT("cuEventRecord", &Record),
    IN_CONTEXT("cuEventQuery", &Query),
    IN_CONTEXT("cuEventSynchronize", &WaitForEvent),
    IN_CONTEXT("cuModuleLoadDataEx", &Load),
    IN_CONTEXT("cuModuleUnload", &Unload),
    IN_CONTEXT("cuModuleGetFunction", &FindFunction),
    CALL("cuModuleGetFunctionCount", &CountFunctions),
    CALL("cuModuleEnumerateFunctions", &ListFunctions),
    IN_CONTEXT("cuModuleGetGlobal", &FindGlobal),
    CALL("cuLinkCreate", &LinkBegin),
    CALL("cuLinkAddData", &LinkAdd),
    CALL("cuLinkComplete", &LinkEnd),
    CALL("cuLinkDestroy", &LinkForget),
    CALL("cuFuncGetName", &FunctionName),
    CALL("cuFuncGetParamInfo", &Param),
    CALL("cuFuncGetAttribute", &FunctionAttribute),
    CALL("cuFuncSetAttribute", &SetFunctionAttribute),
    CALL("cuOccupancyMaxActiveBlocksPerMultiprocessor", &Occupancy),
    IN_CONTEXT("cuLaunchKernelEx", &Launch),
    IN_CONTEXT("cuTexObjectCreate", &MakeTexture),
    IN_CONTEXT("cuTexObjectDestroy", &EndTexture),
    IN_CONTEXT("cuSurfObjectCreate", &MakeSurface),
    IN_CONTEXT("cuSurfObjectDestroy", &EndSurface),
    IN_CONTEXT("cuArray3DCreate", &RefusableArray),
    IN_CONTEXT("cuArrayDestroy", &EndArray),
    IN_CONTEXT("cuMipmappedArrayCreate", &MakeLevels),
    CALL("cuMipmappedArrayGetLevel", &LevelOf),
    IN_CONTEXT("cuMipmappedArrayDestroy", &EndLevels),
    IN_CONTEXT("cuMemcpy3DAsync", &CopyRows),
    CALL("cuTensorMapEncodeTiled", &MakeMap),
    CALL("cuTensorMapEncodeIm2col", &MakeColumns),
    CALL("cuTensorMapReplaceAddress", &MoveMap),
    CALL("cuGetErrorName", &ErrorName),
    CALL("cuGetErrorString", &ErrorText),
#undef IN_CONTEXT
#undef CALL
};

}  // namespace

extern "C" {
__attribute__((visibility("default"))) const char* FakeCudaNotes() { return TakeNotes(); }
__attribute__((visibility("default"))) const char* FakeCudaLoadedWith() { return LoadedWith(); }
__attribute__((visibility("default"))) Status cuDeviceGetUuid(unsigned char* out, int device) {
  return CardUuid(out, device);
}
__attribute__((visibility("default"))) Status vgpuDescribeHostMemory(void* memory, size_t bytes, int fd,
                                                                     uint64_t offset) {
  return DescribeHost(memory, bytes, fd, offset);
}
__attribute__((visibility("default"))) Status cuDriverGetVersion(int* out) { return Version(out); }
__attribute__((visibility("default"))) Status cuGetProcAddress_v2(const char* name, void** function, int, uint64_t,
                                                                  int*) {
  *function = nullptr;
  knob = [](const char* key) { return Knob(key); };
  if (Told().find(std::string(" lacks:") + name + " ") != std::string::npos) return kNotFound;
  for (const auto& call : kCalls)
    if (std::strcmp(call.name, name) == 0) *function = call.call;
  return *function != nullptr ? 0 : kNotFound;
}
}
