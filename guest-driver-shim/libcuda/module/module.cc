// SPDX-License-Identifier: Apache-2.0
// Libraries, modules and the functions and variables in them, and which of them somebody's handle is of.
#include "guest-driver-shim/libcuda/module/module.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <type_traits>

#include "guest-driver-shim/libcuda/channel/os.h"
#include "guest-driver-shim/libcuda/module/jit_options.h"

namespace vgpud::cuda {
namespace {

struct Module {
  std::shared_ptr<Library> library;
  Device* device = nullptr;
  CUcontext context = nullptr;
  Mutex mutex{lock_rank::kOpenLibrary};
  std::map<std::string, CUfunction> functions GUARDED_BY(mutex);
};
struct OpenLibrary {
  std::shared_ptr<Library> library;
  Mutex mutex{lock_rank::kOpenLibrary};
  std::map<std::string, CUkernel> kernels GUARDED_BY(mutex);
  CUmodule module GUARDED_BY(mutex) = nullptr;
};

HandleTable<CUlibrary, OpenLibrary>& Libraries() {
  static auto* const table = new HandleTable<CUlibrary, OpenLibrary>(0x1b);
  return *table;
}
HandleTable<CUmodule, Module>& Modules() {
  static auto* const table = new HandleTable<CUmodule, Module>(0x3d);
  return *table;
}
HandleTable<CUkernel, Kernel>& Kernels() {
  static auto* const table = new HandleTable<CUkernel, Kernel>(0x4e);
  return *table;
}

// The device that a context-independent call means: the current context's, else the first.
Device* AnyDevice(CUresult* error) {
  const Current current = CurrentContext(false);
  Device* device = current.device;
  *error = current.error == CUDA_SUCCESS ? CUDA_SUCCESS : Driver::Get().OpenDevice(0, &device);
  if (*error == CUDA_SUCCESS) *error = device->channel->Sticky();
  return *error == CUDA_SUCCESS ? device : nullptr;
}

CUresult ReadFile(const char* path, std::vector<char>* out) {
  OwnedFd fd(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a FIFO that nobody writes would hang
  struct stat facts;
  if (!fd || fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return CUDA_ERROR_FILE_NOT_FOUND;
  out->assign(static_cast<size_t>(facts.st_size) + 1, '\0');  // text ends with NUL
  size_t at = 0;
  while (at < static_cast<size_t>(facts.st_size)) {
    const ssize_t n = read(fd.get(), out->data() + at, static_cast<size_t>(facts.st_size) - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return CUDA_ERROR_INVALID_IMAGE;
    at += static_cast<size_t>(n);
  }
  return CUDA_SUCCESS;
}

// Makes a library of `image` and loads it on `device`; `log` hears how that went.
CUresult LoadImage(Device* device, const void* image, bool keep_pointer, const JitOptions& log,
                   std::shared_ptr<Library>* out) {
  const auto begun = std::chrono::steady_clock::now();
  std::string why;
  uint64_t number;
  CUresult error = Library::Make(image, keep_pointer, log.most_registers(), out);
  if (error != CUDA_SUCCESS) {
    why = "there is no PTX text, fat binary or machine code at this address, or its headers are damaged";
  } else {
    error = (*out)->ModuleOn(device, &number, &why);
    if (error != CUDA_SUCCESS && why.empty()) why = "the virtual GPU did not load the image and did not say why";
  }
  log.Answer("", why, std::chrono::duration<float, std::milli>(std::chrono::steady_clock::now() - begun).count());
  return error;
}

CUresult OpenModule(CUmodule* out, const void* image, unsigned count = 0, int* options = nullptr,
                    void** values = nullptr) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (out == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  JitOptions log;
  if (const CUresult error = JitOptions::Read(count, options, values, &log)) return error;
  auto module = std::make_shared<Module>();
  if (const CUresult error = LoadImage(current.device, image, false, log, &module->library)) return error;
  module->device = current.device;
  module->context = current.context->handle;
  *out = Modules().Add(std::move(module));
  return CUDA_SUCCESS;
}

CUresult OpenLibraryImage(CUlibrary* out, const void* image, const JitOptions& log, int* options, void** values,
                          unsigned count) {
  CUresult error;
  Device* device = AnyDevice(&error);
  if (device == nullptr) return error;
  if (out == nullptr || image == nullptr || (count > 0 && options == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  bool preserved = false;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == CU_LIBRARY_BINARY_IS_PRESERVED) preserved = values != nullptr && values[i] != nullptr;
  }
  auto library = std::make_shared<OpenLibrary>();
  error = LoadImage(device, image, preserved, log, &library->library);
  if (error != CUDA_SUCCESS) return error;
  *out = Libraries().Add(std::move(library));
  return CUDA_SUCCESS;
}

// A kernel named `name` of `library`, once per library.
template <class Handle>
CUresult KernelNamed(const std::shared_ptr<Library>& library, Device* device, const char* name,
                     std::map<std::string, Handle>* known, Handle* out) {
  if (const auto it = known->find(name); it != known->end()) {
    *out = it->second;
    return CUDA_SUCCESS;
  }
  auto kernel = std::make_shared<Kernel>(library, name, std::is_same_v<Handle, CUkernel>);
  std::shared_ptr<const KernelOnDevice> facts;
  if (const CUresult error = kernel->On(device, &facts)) return error;
  *out = reinterpret_cast<Handle>(Kernels().Add(std::move(kernel)));
  known->emplace(name, *out);
  return CUDA_SUCCESS;
}

CUresult Variable(const std::shared_ptr<Library>& library, Device* device, CUdeviceptr* address, size_t* bytes,
                  const char* name) {
  if (name == nullptr || (address == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  Library::Variable variable;
  if (const CUresult error = library->FindVariable(device, name, &variable)) return error;
  if (address != nullptr) *address = variable.address;
  if (bytes != nullptr) *bytes = variable.bytes;
  return CUDA_SUCCESS;
}

// All kernels of `library`, as many as there is room for.
template <class Handle>
CUresult AllKernels(const std::shared_ptr<Library>& library, Device* device, std::map<std::string, Handle>* known,
                    Handle* out, unsigned room) {
  std::vector<std::string> names;
  if (const CUresult error = library->FunctionNames(device, &names)) return error;
  for (unsigned i = 0; i < room && i < names.size(); ++i)
    if (const CUresult error = KernelNamed(library, device, names[i].c_str(), known, &out[i])) return error;
  return CUDA_SUCCESS;
}

CUresult CountKernels(const std::shared_ptr<Library>& library, Device* device, unsigned* count) {
  std::vector<std::string> names;
  if (const CUresult error = library->FunctionNames(device, &names)) return error;
  *count = static_cast<unsigned>(names.size());
  return CUDA_SUCCESS;
}

template <class Handle>
void DropKernels(const std::map<std::string, Handle>& handles) {
  for (const auto& [name, handle] : handles) Kernels().Remove(reinterpret_cast<CUkernel>(handle));
}

CUresult CloseModule(const std::shared_ptr<Module>& module) {
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  MutexLock lock(module->mutex);
  DropKernels(module->functions);
  return CUDA_SUCCESS;
}

}  // namespace

std::shared_ptr<Kernel> FindKernel(const void* handle) {
  return Kernels().Find(static_cast<CUkernel>(const_cast<void*>(handle)));
}

void DropModulesOf(CUcontext context) {
  for (const auto& module : Modules().RemoveIf([context](const Module& m) { return m.context == context; })) {
    CloseModule(module);
  }
}

}  // namespace vgpud::cuda

using namespace vgpud::cuda;

CU_API(cuModuleLoadData)(CUmodule* out, const void* image) { return OpenModule(out, image); }
CU_API(cuModuleLoadDataEx)(CUmodule* out, const void* image, unsigned count, int* options, void** values) {
  return OpenModule(out, image, count, options, values);
}
CU_API(cuModuleLoadFatBinary)(CUmodule* out, const void* image) { return OpenModule(out, image); }

CU_API(cuModuleLoad)(CUmodule* out, const char* path) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (out == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<char> image;
  if (const CUresult error = ReadFile(path, &image)) return error;
  return OpenModule(out, image.data());
}

CU_API(cuModuleUnload)(CUmodule handle) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  return CloseModule(Modules().Remove(handle));
}

CU_API(cuModuleGetFunction)(CUfunction* out, CUmodule handle, const char* name) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto module = Modules().Find(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  MutexLock lock(module->mutex);
  return KernelNamed(module->library, module->device, name, &module->functions, out);
}

CU_API(cuModuleGetFunctionCount)(unsigned* count, CUmodule handle) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto module = Modules().Find(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return CountKernels(module->library, module->device, count);
}

CU_API(cuModuleEnumerateFunctions)(CUfunction* functions, unsigned room, CUmodule handle) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (functions == nullptr || room == 0) return CUDA_ERROR_INVALID_VALUE;
  const auto module = Modules().Find(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  MutexLock lock(module->mutex);
  return AllKernels(module->library, module->device, &module->functions, functions, room);
}

CU_API(cuLibraryGetKernelCount)(unsigned* count, CUlibrary handle) {
  CUresult error;
  Device* device = AnyDevice(&error);
  if (device == nullptr) return error;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto library = Libraries().Find(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return CountKernels(library->library, device, count);
}

CU_API(cuLibraryEnumerateKernels)(CUkernel* kernels, unsigned room, CUlibrary handle) {
  CUresult error;
  Device* device = AnyDevice(&error);
  if (device == nullptr) return error;
  if (kernels == nullptr || room == 0) return CUDA_ERROR_INVALID_VALUE;
  const auto library = Libraries().Find(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  MutexLock lock(library->mutex);
  return AllKernels(library->library, device, &library->kernels, kernels, room);
}

CU_API(cuModuleGetGlobal_v2)(CUdeviceptr* address, size_t* bytes, CUmodule handle, const char* name) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  const auto module = Modules().Find(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return Variable(module->library, module->device, address, bytes, name);
}

CU_API(cuLibraryLoadData)
(CUlibrary* out, const void* image, int* jit_options, void** jit_values, unsigned jit_count, int* options,
 void** values, unsigned count) {
  JitOptions log;
  if (const CUresult error = JitOptions::Read(jit_count, jit_options, jit_values, &log)) return error;
  return OpenLibraryImage(out, image, log, options, values, count);
}

CU_API(cuLibraryLoadFromFile)
(CUlibrary* out, const char* path, int* options, void** values, unsigned count, int*, void**, unsigned) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (out == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  JitOptions log;
  if (const CUresult error = JitOptions::Read(count, options, values, &log)) return error;
  std::vector<char> image;
  if (const CUresult error = ReadFile(path, &image)) return error;
  return OpenLibraryImage(out, image.data(), log, nullptr, nullptr, 0);
}

CU_API(cuLibraryUnload)(CUlibrary handle) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto library = Libraries().Remove(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  CUmodule module;
  {
    MutexLock lock(library->mutex);
    DropKernels(library->kernels);
    module = library->module;
  }
  if (module != nullptr) CloseModule(Modules().Remove(module));
  return CUDA_SUCCESS;
}

CU_API(cuLibraryGetKernel)(CUkernel* out, CUlibrary handle, const char* name) {
  CUresult error;
  Device* device = AnyDevice(&error);
  if (device == nullptr) return error;
  if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto library = Libraries().Find(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  MutexLock lock(library->mutex);
  return KernelNamed(library->library, device, name, &library->kernels, out);
}

CU_API(cuLibraryGetModule)(CUmodule* out, CUlibrary handle) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto library = Libraries().Find(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  MutexLock lock(library->mutex);
  if (library->module == nullptr || Modules().Find(library->module) == nullptr) {
    auto module = std::make_shared<Module>();
    module->library = library->library;
    module->device = current.device;
    module->context = current.context->handle;
    library->module = Modules().Add(std::move(module));
  }
  *out = library->module;
  return CUDA_SUCCESS;
}

CU_API(cuKernelGetLibrary)(CUlibrary* out, CUkernel handle) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto kernel = FindKernel(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *out = Libraries().HandleOf([&](const OpenLibrary& each) { return each.library == kernel->library(); });
  return *out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CU_API(cuFuncGetModule)(CUmodule* out, CUfunction handle) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto kernel = FindKernel(handle);
  if (kernel == nullptr) return CUDA_ERROR_NOT_FOUND;
  const auto is_its = [&](const auto& each) { return each.library == kernel->library(); };
  if (kernel->of_library()) return cuLibraryGetModule(out, Libraries().HandleOf(is_its));
  *out = Modules().HandleOf(is_its);
  return *out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CU_API(cuLibraryGetGlobal)(CUdeviceptr* address, size_t* bytes, CUlibrary handle, const char* name) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  const auto library = Libraries().Find(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return Variable(library->library, current.device, address, bytes, name);
}

CU_API(cuLibraryGetManaged)(CUdeviceptr* address, size_t* bytes, CUlibrary handle, const char* name) {
  CUresult error;
  Device* device = AnyDevice(&error);
  if (device == nullptr) return error;
  if (name == nullptr || (address == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  const auto library = Libraries().Find(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Library::Variable variable;
  error = library->library->FindManaged(device, name, &variable);
  if (error != CUDA_SUCCESS) return error;
  if (address != nullptr) *address = variable.address;
  if (bytes != nullptr) *bytes = variable.bytes;
  return CUDA_SUCCESS;
}

CU_API(cuKernelGetFunction)(CUfunction* out, CUkernel handle) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (FindKernel(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *out = reinterpret_cast<CUfunction>(handle);
  return CUDA_SUCCESS;
}
