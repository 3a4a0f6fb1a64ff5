// SPDX-License-Identifier: Apache-2.0
// Kernel launches: their shapes are checked, their parameters gathered, their attributes looked at.
#include "guest-driver-shim/libcuda/launch/launch.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "guest-driver-shim/libcuda/channel/trace.h"
#include "guest-driver-shim/libcuda/driver/stream_table.h"
#include "guest-driver-shim/libcuda/graph/capture.h"
#include "guest-driver-shim/libcuda/launch/parameters.h"
#include "guest-driver-shim/libcuda/launch/submit.h"
#include "guest-driver-shim/libcuda/module/module.h"

namespace {

using namespace vgpud::cuda;

struct Shape {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared;
  bool cooperative = false;
  std::array<uint32_t, 3> cluster{};  // zeros: not said
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

// Fills `out` (param_bytes long, zeros) from either form of cuLaunchKernel.
CUresult Gather(const KernelOnDevice& kernel, void** parameters, void** extra, std::byte* out) {
  if (extra != nullptr) {
    if (parameters != nullptr) return CUDA_ERROR_INVALID_VALUE;
    const void* buffer = nullptr;
    std::optional<size_t> bytes;
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
    if ((buffer == nullptr || !bytes) && kernel.info.param_bytes > 0) return CUDA_ERROR_INVALID_VALUE;
    // A kernel whose last parameter is a structure of variable length gets as much of it as there is (NCCL's).
    if (const size_t given = std::min<size_t>(bytes.value_or(0), kernel.info.param_bytes); given > 0)
      memcpy(out, buffer, given);
    return CUDA_SUCCESS;
  }
  if (!kernel.parameters.empty() && parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    if (parameters[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    memcpy(out + kernel.parameters[i].offset, parameters[i], kernel.parameters[i].bytes);
  }
  return CUDA_SUCCESS;
}

// A launch that has been checked; its payload is kept apart, since that of a launch which nobody captures is used
// again.
struct Made {
  std::shared_ptr<Kernel> kernel;
  std::shared_ptr<const KernelOnDevice> facts;
  Command command;  // its stream is the caller's
};
CUresult Make(const Current& current, CUfunction handle, const Shape& shape, void** parameters, void** extra,
              Made* made, std::vector<std::byte>* payload) {
  const auto& kernel = made->kernel = FindKernel(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto& facts = made->facts;
  if (const CUresult error = kernel->On(current.device, &made->facts)) return error;
  if (const CUresult error = CheckShape(*current.device, *kernel, facts->info, shape)) return error;
  if (const int64_t most = kernel->max_dynamic_shared(facts->info); shape.shared > most) {
    Trace("a launch of %s is refused: %u bytes of dynamic shared memory, it may have %lld without cuFuncSetAttribute",
          kernel->name().c_str(), shape.shared, static_cast<long long>(most));
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::array<uint32_t, 3> cluster = shape.cluster;
  if (const CUresult error = ChooseCluster(current.device, kernel.get(), facts->info, shape.grid, &cluster)) {
    Trace("a launch of %s is refused: clusters of %u x %u x %u blocks in a grid of %u x %u x %u",
          kernel->name().c_str(), cluster[0], cluster[1], cluster[2], shape.grid[0], shape.grid[1], shape.grid[2]);
    return error;
  }
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
  if ((current.channel->transport().info().features & VGPU_FEATURE_CLUSTERS) != 0)
    launch.cluster = VGPU_CLUSTER(cluster[0], cluster[1], cluster[2]);
  payload->assign(sizeof launch + launch.param_bytes, std::byte{0});
  memcpy(payload->data(), &launch, sizeof launch);
  made->command.op = VGPU_OP_LAUNCH;
  made->command.args[0] = facts->function;
  return Gather(*facts, parameters, extra, payload->data() + sizeof launch);
}

// The node of a launch, and what it tells of itself.
NodeWork AsNode(const Current& current, Made made, std::vector<std::byte> payload,
                const CUDA_KERNEL_NODE_PARAMS_v2_st& told, LaunchAttributes attributes) {
  const auto params = std::make_shared<KernelParams>();
  params->command = made.command;
  params->payload = std::move(payload);
  params->attributes = std::move(attributes);
  params->name = made.kernel->name();
  params->told = told;
  if (told.ctx == nullptr) params->told.ctx = current.context->handle;
  std::byte* const values = params->payload.data() + sizeof(vgpu_launch);
  params->parameter_bytes = params->payload.size() - sizeof(vgpu_launch);
  for (const vgpu_param& parameter : made.facts->parameters) params->pointers.push_back(values + parameter.offset);
  params->extra = {reinterpret_cast<void*>(kExtraPointer), values, reinterpret_cast<void*>(kExtraBytes),
                   &params->parameter_bytes, reinterpret_cast<void*>(kExtraEnd)};
  params->told.kernelParams = told.extra != nullptr ? nullptr : params->pointers.data();
  params->told.extra = told.extra != nullptr ? params->extra.data() : nullptr;
  const auto submit = [params](const Current& at, uint32_t stream) {
    Command mine = params->command;
    mine.stream = stream;
    return Enqueue(at, mine, params->payload);
  };
  NodeWork work;
  work.submit = submit;
  work.params = params;
  return work;
}

CUresult Capture(const Current& current, const InCapture& capture, Made made, std::vector<std::byte> payload,
                 CUfunction handle, const Shape& shape, CUstream stream, void** parameters, void** extra,
                 const LaunchAttributes& attributes) {
  if (capture.error() != CUDA_SUCCESS) return capture.error();
  const auto& [grid, block, shared, cooperative, cluster] = shape;
  if (cooperative && extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_KERNEL_NODE_PARAMS_v2_st told{nullptr,  grid[0], grid[1],    grid[2], block[0], block[1],
                                     block[2], shared,  parameters, extra,   nullptr,  nullptr};
  // The runtime knows its kernels again as what it got them.
  if (made.kernel->of_library()) {
    told.kern = reinterpret_cast<CUkernel>(handle);
  } else {
    told.func = handle;
  }
  LaunchAttributes kept = AsKept(attributes, cooperative);
  const auto found = Streams().Find(stream);
  if (found != nullptr && found->priority != 0)
    memcpy(kept.try_emplace(CU_LAUNCH_ATTRIBUTE_PRIORITY).first->second.data(), &found->priority, sizeof(int));
  return capture.Add(current, CU_GRAPH_NODE_TYPE_KERNEL,
                     AsNode(current, std::move(made), std::move(payload), told, std::move(kept)));
}

CUresult Launch(DefaultStream mode, CUfunction handle, const Shape& shape, CUstream stream, void** parameters,
                void** extra, const LaunchAttributes& attributes = {}) {
  Current current = CurrentContext();
  if (current.error == CUDA_ERROR_INVALID_CONTEXT) current = ContextOf(stream);
  if (current.error != CUDA_SUCCESS) return current.error;
  static thread_local std::vector<std::byte> payload;
  Made made;
  if (const CUresult error = Make(current, handle, shape, parameters, extra, &made, &payload)) return error;
  if (const CUresult error = StreamNumber(current, stream, mode, &made.command.stream)) return error;
  if (const InCapture capture = Capturing(current, made.command.stream))
    return Capture(current, capture, std::move(made), payload, handle, shape, stream, parameters, extra, attributes);
  return Enqueue(current, made.command, payload);
}

CUresult LaunchKernel(DefaultStream mode, CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                      unsigned by, unsigned bz, unsigned shared, CUstream stream, void** parameters, void** extra) {
  return Launch(mode, function, {{gx, gy, gz}, {bx, by, bz}, shared}, stream, parameters, extra);
}

CUresult LaunchCooperative(DefaultStream mode, CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                           unsigned by, unsigned bz, unsigned shared, CUstream stream, void** parameters) {
  return Launch(mode, function, {{gx, gy, gz}, {bx, by, bz}, shared, true}, stream, parameters, nullptr);
}

}  // namespace

namespace vgpud::cuda {

CUresult LaunchWith(DefaultStream mode, const CUlaunchConfig_st& config, CUfunction function, void** parameters,
                    void** extra, const LaunchAttributes& attributes) {
  return Launch(mode, function,
                {{config.gridDimX, config.gridDimY, config.gridDimZ},
                 {config.blockDimX, config.blockDimY, config.blockDimZ},
                 config.sharedMemBytes,
                 IsCooperative(attributes),
                 ClusterOf(attributes)},
                config.hStream, parameters, extra, attributes);
}

CUresult KernelWork(const Current& current, const CUDA_KERNEL_NODE_PARAMS_v2_st& told, LaunchAttributes attributes,
                    NodeWork* out) {
  if (told.func == nullptr && told.ctx != nullptr && Driver::Get().contexts().Find(told.ctx) == nullptr)
    return CUDA_ERROR_INVALID_CONTEXT;
  const Shape shape{{told.gridDimX, told.gridDimY, told.gridDimZ},
                    {told.blockDimX, told.blockDimY, told.blockDimZ},
                    told.sharedMemBytes,
                    IsCooperative(attributes),
                    ClusterOf(attributes)};
  const CUfunction function = told.func != nullptr ? told.func : reinterpret_cast<CUfunction>(told.kern);
  Made made;
  std::vector<std::byte> payload;
  if (shape.cooperative && told.extra != nullptr)
    return FindKernel(function) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = Make(current, function, shape, told.kernelParams, told.extra, &made, &payload))
    return error;
  NodeWork work = AsNode(current, std::move(made), std::move(payload), told, std::move(attributes));
  out->submit = std::move(work.submit);  // its epoch is the caller's
  out->params = std::move(work.params);
  return CUDA_SUCCESS;
}

}  // namespace vgpud::cuda

CU_TWINS(cuLaunchKernel, cuLaunchKernel_ptsz, LaunchKernel,
         (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
          CUstream stream, void** parameters, void** extra),
         (f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra))
CU_TWINS(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz, LaunchCooperative,
         (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
          CUstream stream, void** parameters),
         (f, gx, gy, gz, bx, by, bz, shared, stream, parameters))
