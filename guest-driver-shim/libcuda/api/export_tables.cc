// SPDX-License-Identifier: Apache-2.0
// The undocumented tables that CUDA's runtime asks for at start (cuGetExportTable). Word 0 of most tables is their size
// in bytes, the others are functions. Which slots are called, and with what, was established by observing the runtime;
// names of tables and slots are those that the ZLUDA project published. Slots that nothing calls are null.
#include <pthread.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "guest-driver-shim/libcuda/driver/driver.h"
#include "guest-driver-shim/libcuda/module/module.h"
#if VGPU_CUDART_HANDSHAKE
#include "guest-driver-shim/libcuda/channel/handshake.h"
#endif

namespace vgpud::cuda {
namespace {

using Word = const void*;
template <class Function>
Word Slot(Function* function) {
  return reinterpret_cast<Word>(function);
}
template <size_t kWords>
struct Table {
  Word words[kWords] = {};
};

// ---- runtime interface: the primary context's handle, and module loading by fatbin ----

CUresult GetPrimary(CUcontext* out, CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult error = Driver::Get().OpenDevice(ordinal, &device)) return error;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = device->primary_handle;
  return CUDA_SUCCESS;
}
CUresult LoadModule(CUmodule* out, const void* image) { return cuModuleLoadData(out, image); }
CUresult LoadModuleExtended(CUmodule* out, const void* image, void*, void*, void*) {
  return cuModuleLoadData(out, image);
}
CUresult LoadFatbin(const void* image, CUmodule* out, void*, void*, void*) { return cuModuleLoadData(out, image); }
CUresult IgnoreSize(size_t) { return CUDA_SUCCESS; }
CUresult LoadCompilers() { return CUDA_SUCCESS; }

const Table<13> kRuntimeInterface = [] {
  Table<13> t;
  t.words[0] = reinterpret_cast<Word>(sizeof t);
  t.words[1] = Slot(LoadModule);
  t.words[2] = Slot(GetPrimary);
  t.words[6] = Slot(LoadModuleExtended);
  t.words[7] = Slot(IgnoreSize);
  t.words[8] = Slot(LoadFatbin);
  t.words[12] = Slot(LoadCompilers);
  return t;
}();

// ---- tool hooks: two buffers that stay zero, which means that no tool listens ----

alignas(64) unsigned char hook_buffer[4096];
alignas(64) unsigned char hook_flags[64];

CUresult HookBuffer(void** buffer, size_t* bytes) {
  *buffer = hook_buffer;
  *bytes = 1024;
  return CUDA_SUCCESS;
}
CUresult HookFlags(void** buffer, size_t* bytes) {
  *buffer = hook_flags;
  *bytes = 14;
  return CUDA_SUCCESS;
}

const Table<7> kToolHooks = [] {
  Table<7> t;
  t.words[0] = reinterpret_cast<Word>(sizeof t);
  t.words[2] = Slot(HookBuffer);
  t.words[6] = Slot(HookFlags);
  return t;
}();

// ---- tool thread storage ----

CUresult ToolThread(void** out) {
  if (out != nullptr) *out = nullptr;
  return CUDA_SUCCESS;
}

const Table<4> kToolThreads = [] {
  Table<4> t;
  t.words[0] = reinterpret_cast<Word>(sizeof t);
  t.words[2] = Slot(ToolThread);
  return t;
}();

// ---- context local storage; this table has no size word ----

CUresult StorageOf(CUcontext handle, std::shared_ptr<Context>* out) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (handle == nullptr) {
    const auto& stack = ContextStack();
    if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    handle = stack.back();
  }
  *out = Driver::Get().contexts().Find(handle);
  return *out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
CUresult StoragePut(CUcontext handle, void* key, void* value, ContextStorage::Destructor destructor) {
  std::shared_ptr<Context> context;
  if (const CUresult error = StorageOf(handle, &context)) return error;
  return context->storage.Put(key, value, destructor) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult StorageDelete(CUcontext handle, void* key) {
  std::shared_ptr<Context> context;
  if (const CUresult error = StorageOf(handle, &context)) return error;
  return context->storage.Delete(key) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult StorageGet(void** value, CUcontext handle, void* key) {
  std::shared_ptr<Context> context;
  if (const CUresult error = StorageOf(handle, &context)) return error;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return context->storage.Find(key, value) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

const Table<4> kContextStorage = [] {
  Table<4> t;
  t.words[0] = Slot(StoragePut);
  t.words[1] = Slot(StorageDelete);
  t.words[2] = Slot(StorageGet);
  return t;
}();

// ---- context checks: an error returned here becomes the result of the runtime call ----

CUresult CheckContext(CUcontext, uint32_t* answer, void**) {
  if (answer != nullptr) *answer = 0;
  return CUDA_SUCCESS;
}
CUresult CheckProcess() { return CUDA_SUCCESS; }

const Table<4> kContextChecks = [] {
  Table<4> t;
  t.words[0] = reinterpret_cast<Word>(sizeof t);
  t.words[2] = Slot(CheckContext);
  t.words[3] = Slot(CheckProcess);
  return t;
}();

// ---- integrity: the runtime's self-test of the driver ----

#if VGPU_CUDART_HANDSHAKE
CUresult Integrity(uint32_t version, uint64_t unix_seconds, uint8_t* out);

const Table<3> kIntegrity = [] {
  Table<3> t;
  t.words[0] = reinterpret_cast<Word>(sizeof t);
  t.words[1] = Slot(Integrity);
  return t;
}();

CUresult Integrity(uint32_t version, uint64_t unix_seconds, uint8_t* out) {
  HandshakeInput input;
  input.driver_version = static_cast<uint32_t>(DriverVersion());
  input.runtime_version = version;
  input.pid = static_cast<uint32_t>(getpid());
  input.thread = static_cast<uint32_t>(pthread_self());
  input.cudart_table = reinterpret_cast<uint64_t>(&kRuntimeInterface);
  input.integrity_table = reinterpret_cast<uint64_t>(&kIntegrity);
  input.integrity_function = reinterpret_cast<uint64_t>(kIntegrity.words[1]);
  input.unix_seconds = unix_seconds;
  for (const auto& device : Driver::Get().devices()) {
    HandshakeDevice d;
    memcpy(d.uuid.data(), device->vf.uuid, d.uuid.size());
    d.pci_domain = device->attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
    d.pci_bus = device->attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
    d.pci_device = device->attribute(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
    input.devices.push_back(d);
  }
  const Digest answer = HandshakeAnswer(input);
  memcpy(out, answer.data(), answer.size());
  return CUDA_SUCCESS;
}
#endif

// ---- asked for by cuBLAS before a matrix product ----

alignas(64) unsigned char zeroed_object[4096];

CUresult StreamKind(CUstream stream, uint64_t* out) {
  *out = stream != nullptr ? 1 : 0;
  return CUDA_SUCCESS;
}
CUresult ZeroWord(void*, void*, uint64_t* out) {
  *out = 0;
  return CUDA_SUCCESS;
}
CUresult ZeroObject(void*, uint64_t which, void** out) {
  if (which == ~uint64_t{0}) return CUDA_ERROR_INVALID_HANDLE;
  *out = zeroed_object;
  return CUDA_SUCCESS;
}

const Table<64> kLibraryHelpers = [] {
  Table<64> t;
  t.words[0] = reinterpret_cast<Word>(sizeof t);
  t.words[4] = Slot(StreamKind);
  t.words[39] = Slot(ZeroWord);
  t.words[51] = Slot(ZeroObject);
  return t;
}();

// ---- the functions of a module, for cuFFT: the callback gets each with its module. That the slot is asked for, and
// its arguments, are facts that the projects lupine and SCUDA published; that it answers with 1 where all went well,
// not with a CUresult, was found by trying (cuFFT 11.2 of CUDA 12.4 says CUFFT_INTERNAL_ERROR otherwise) ----

using PerFunction = void (*)(void* cookie, CUfunction function, CUmodule module);
int ForEachFunction(CUcontext, CUmodule module, PerFunction callback, void* cookie) {
  unsigned count = 0;
  if (callback == nullptr || cuModuleGetFunctionCount(&count, module) != CUDA_SUCCESS) return 0;
  std::vector<CUfunction> functions(count);
  if (count != 0 && cuModuleEnumerateFunctions(functions.data(), count, module) != CUDA_SUCCESS) return 0;
  for (CUfunction function : functions) callback(cookie, function, module);
  return 1;
}

const Table<64> kModuleFunctions = [] {
  Table<64> t;
  t.words[0] = reinterpret_cast<Word>(sizeof t);
  t.words[7] = Slot(ForEachFunction);
  return t;
}();

struct Row {
  unsigned char id[16];
  const void* table;
};
const Row kRows[] = {
    {{0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9},
     &kRuntimeInterface},
    {{0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a, 0x66}, &kToolHooks},
    {{0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec, 0xdc}, &kToolThreads},
    {{0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11, 0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95, 0x93},
     &kContextStorage},
    {{0x26, 0x3e, 0x88, 0x60, 0x7c, 0xd2, 0x61, 0x43, 0x92, 0xf6, 0xbb, 0xd5, 0x00, 0x6d, 0xfa, 0x7e}, &kContextChecks},
#if VGPU_CUDART_HANDSHAKE
    {{0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b, 0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1, 0xf2}, &kIntegrity},
#endif
    {{0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48, 0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24, 0xc8, 0xf2},
     &kLibraryHelpers},
    {{0x6e, 0x16, 0x3f, 0xbe, 0xb9, 0x58, 0x44, 0x4d, 0x83, 0x5c, 0xe1, 0x82, 0xaf, 0xf1, 0x99, 0x1e},
     &kModuleFunctions},
};

}  // namespace
}  // namespace vgpud::cuda

CU_API(cuGetExportTable)(const void** out, const CUuuid_st* id) {
  if (out == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (const auto& row : vgpud::cuda::kRows) {
    if (memcmp(row.id, id->bytes, sizeof row.id) != 0) continue;
    *out = row.table;
    return CUDA_SUCCESS;
  }
  *out = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}
