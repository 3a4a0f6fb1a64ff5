// SPDX-License-Identifier: Apache-2.0
// Kernel launches: their shapes are checked, their parameters gathered, their attributes looked at.
#include <cstring>
#include <iterator>

#include "guest-driver-shim/libcuda/channel/trace.h"
#include "guest-driver-shim/libcuda/driver/streams.h"
#include "guest-driver-shim/libcuda/module.h"
#include "guest-driver-shim/libcuda/submit.h"

namespace {

using namespace vgpud::cuda;

constexpr size_t kMaxParameterBytes = 32764;
// Markers in the `extra` array of cuLaunchKernel.
constexpr uintptr_t kExtraEnd = 0;
constexpr uintptr_t kExtraPointer = 1;
constexpr uintptr_t kExtraBytes = 2;

struct Shape {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared;
  bool cooperative = false;
};

// cudaErrorInvalidConfiguration. No code of the driver API; CUDA's runtime passes on whatever a launch answers.
constexpr CUresult kInvalidConfiguration = 9;

// A shape that no kernel could have on this device. What that is called depends on whom the answer is for: the runtime
// launches kernels of libraries, programs of the driver API functions of modules.
CUresult NoSuchShape(const Kernel& kernel, const char* what, uint64_t asked, uint64_t most) {
  Trace("a launch of %s is refused: %s of %llu, this device takes 1 to %llu", kernel.name().c_str(), what,
        static_cast<unsigned long long>(asked), static_cast<unsigned long long>(most));
  return kernel.of_library() ? kInvalidConfiguration : CUDA_ERROR_INVALID_VALUE;
}

CUresult CheckShape(const Device& device, const Kernel& kernel, const vgpu_function_info& info, const Shape& shape) {
  const struct {
    const char* what;
    uint64_t asked;
    int limit;
  } rows[] = {{"gridDim.x", shape.grid[0], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X},
              {"gridDim.y", shape.grid[1], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y},
              {"gridDim.z", shape.grid[2], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z},
              {"blockDim.x", shape.block[0], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X},
              {"blockDim.y", shape.block[1], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y},
              {"blockDim.z", shape.block[2], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z},
              {"threads per block", uint64_t{shape.block[0]} * shape.block[1] * shape.block[2],
               CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK}};
  for (const auto& row : rows) {
    const auto most = static_cast<unsigned>(device.attribute(row.limit));
    if (row.asked == 0 || row.asked > most) return NoSuchShape(kernel, row.what, row.asked, most);
  }
  if (std::end(rows)[-1].asked <= info.max_threads) return CUDA_SUCCESS;
  Trace("a launch of %s is refused: its launch bounds are %u threads per block", kernel.name().c_str(),
        info.max_threads);
  return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

// Fills `out` (param_bytes long) from either form of cuLaunchKernel.
CUresult Gather(const KernelOnDevice& kernel, void** parameters, void** extra, std::byte* out) {
  if (extra != nullptr) {
    if (parameters != nullptr) return CUDA_ERROR_INVALID_VALUE;
    const void* buffer = nullptr;
    size_t bytes = 0;
    for (size_t i = 0; reinterpret_cast<uintptr_t>(extra[i]) != kExtraEnd; i += 2) {
      const auto mark = reinterpret_cast<uintptr_t>(extra[i]);
      if (mark == kExtraPointer) {
        buffer = extra[i + 1];
      } else if (mark == kExtraBytes && extra[i + 1] != nullptr) {
        bytes = *static_cast<const size_t*>(extra[i + 1]);
      } else {
        return CUDA_ERROR_INVALID_VALUE;
      }
    }
    if (bytes < kernel.info.param_bytes || (buffer == nullptr && kernel.info.param_bytes > 0)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (kernel.info.param_bytes > 0) memcpy(out, buffer, kernel.info.param_bytes);
    return CUDA_SUCCESS;
  }
  if (!kernel.parameters.empty() && parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    if (parameters[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    memcpy(out + kernel.parameters[i].offset, parameters[i], kernel.parameters[i].bytes);
  }
  return CUDA_SUCCESS;
}

// A cluster size that the kernel was given (cuFuncSetAttribute) counts at its launch.
CUresult CheckCluster(Device& device, Kernel& kernel) {
  if (!kernel.asks_for_cluster()) return CUDA_SUCCESS;
  uint64_t blocks;
  if (const CUresult error = RequiredCluster(&device, &kernel, &blocks)) return error;
  return blocks > 1 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

// Checks a launch and makes its entry; `stream` of it is the caller's.
CUresult Make(const Current& current, CUfunction handle, const Shape& shape, void** parameters, void** extra,
              Command* command, std::vector<std::byte>* payload) {
  const auto kernel = FindKernel(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::shared_ptr<const KernelOnDevice> facts;
  if (const CUresult error = kernel->On(current.device, &facts)) return error;
  if (const CUresult error = CheckShape(*current.device, *kernel, facts->info, shape)) return error;
  int most_shared;
  if (const CUresult error =
          kernel->GetAttribute(current.device, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &most_shared)) {
    return error;
  }
  if (shape.shared > static_cast<unsigned>(most_shared)) {
    Trace("a launch of %s is refused: %u bytes of dynamic shared memory, it may have %d without cuFuncSetAttribute",
          kernel->name().c_str(), shape.shared, most_shared);
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (const CUresult error = CheckCluster(*current.device, *kernel)) return error;
  if (facts->info.param_bytes > kMaxParameterBytes) return CUDA_ERROR_UNKNOWN;

  if (shape.cooperative) {
    const uint64_t blocks = uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2];
    if (blocks >
        MostResident(*current.device, facts->info, shape.block[0] * shape.block[1] * shape.block[2], shape.shared)) {
      return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    }
  }
  vgpu_launch launch{};
  if (shape.cooperative) launch.flags = VGPU_LAUNCH_COOPERATIVE;
  memcpy(launch.grid, shape.grid, sizeof launch.grid);
  memcpy(launch.block, shape.block, sizeof launch.block);
  launch.dynamic_shared = shape.shared;
  launch.param_bytes = facts->info.param_bytes;
  payload->assign(sizeof launch + launch.param_bytes, std::byte{0});
  memcpy(payload->data(), &launch, sizeof launch);
  command->op = VGPU_OP_LAUNCH;
  command->args[0] = facts->function;
  return Gather(*facts, parameters, extra, payload->data() + sizeof launch);
}

CUresult Launch(DefaultStream mode, CUfunction handle, const Shape& shape, CUstream stream, void** parameters,
                void** extra) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  static thread_local std::vector<std::byte> payload;
  Command command;
  if (const CUresult error = Make(current, handle, shape, parameters, extra, &command, &payload)) return error;
  if (const CUresult error = StreamNumber(current, stream, mode, &command.stream)) return error;
  return Enqueue(current, command, payload);
}

CUresult LaunchKernel(DefaultStream mode, CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                      unsigned by, unsigned bz, unsigned shared, CUstream stream, void** parameters, void** extra) {
  return Launch(mode, function, {{gx, gy, gz}, {bx, by, bz}, shared}, stream, parameters, extra);
}

CUresult LaunchCooperative(DefaultStream mode, CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                           unsigned by, unsigned bz, unsigned shared, CUstream stream, void** parameters) {
  return Launch(mode, function, {{gx, gy, gz}, {bx, by, bz}, shared, true}, stream, parameters, nullptr);
}

// Attributes that ask for something that this device can't do are refused, hints are taken as such.
CUresult CheckAttributes(const CUlaunchConfig_st& config, bool* cooperative) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    uint32_t first;
    memcpy(&first, config.attrs[i].value, sizeof first);
    switch (config.attrs[i].id) {
      case CU_LAUNCH_ATTRIBUTE_IGNORE:
      case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      // Waiting for the whole previous kernel is a correct way of programmatic stream serialization.
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        continue;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
        uint32_t size[3];
        memcpy(size, config.attrs[i].value, sizeof size);
        if (size[0] > 1 || size[1] > 1 || size[2] > 1) return CUDA_ERROR_NOT_SUPPORTED;
        continue;
      }
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        *cooperative = first != 0;
        continue;
      default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  return CUDA_SUCCESS;
}

CUresult LaunchConfigured(DefaultStream mode, const CUlaunchConfig_st* config, CUfunction function, void** parameters,
                          void** extra) {
  if (config == nullptr || (config->numAttrs > 0 && config->attrs == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  bool cooperative = false;
  if (const CUresult error = CheckAttributes(*config, &cooperative)) return error;
  return Launch(mode, function,
                {{config->gridDimX, config->gridDimY, config->gridDimZ},
                 {config->blockDimX, config->blockDimY, config->blockDimZ},
                 config->sharedMemBytes,
                 cooperative},
                config->hStream, parameters, extra);
}

}  // namespace

namespace vgpud::cuda {

CUresult MakeLaunch(const Current& current, const CUDA_KERNEL_NODE_PARAMS_v2_st& kernel, Command* command,
                    std::vector<std::byte>* payload) {
  const CUfunction function = kernel.func != nullptr ? kernel.func : reinterpret_cast<CUfunction>(kernel.kern);
  const Shape shape{{kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ},
                    {kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ},
                    kernel.sharedMemBytes};
  return Make(current, function, shape, kernel.kernelParams, kernel.extra, command, payload);
}

}  // namespace vgpud::cuda

CU_TWINS(cuLaunchKernel, cuLaunchKernel_ptsz, LaunchKernel,
         (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
          CUstream stream, void** parameters, void** extra),
         (f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra))
CU_TWINS(cuLaunchKernelEx, cuLaunchKernelEx_ptsz, LaunchConfigured,
         (const CUlaunchConfig_st* config, CUfunction f, void** parameters, void** extra),
         (config, f, parameters, extra))
CU_TWINS(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz, LaunchCooperative,
         (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
          CUstream stream, void** parameters),
         (f, gx, gy, gz, bx, by, bz, shared, stream, parameters))
