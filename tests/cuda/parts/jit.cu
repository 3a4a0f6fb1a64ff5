// SPDX-License-Identifier: Apache-2.0
// Code that is compiled and linked while the program runs: how many registers a thread may have, functions that nobody
// defines, and NVIDIA's device runtime as an input of the linker.
// usage: jit
#include <cooperative_groups.h>
#include <cuda.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/cuda/driver_call.h"

namespace {

#define DRIVER(name) const auto name##_ = driver<decltype(name)>(#name)

constexpr char kHead[] = ".version 7.0\n.target sm_70\n.address_size 64\n";

// 100 values that are all alive at once.
__device__ void Reverse(const int* in, int* out) {
  int values[100];
#pragma unroll
  for (int i = 0; i < 100; ++i) values[i] = in[i * 7 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 100; ++i) out[i * 7 + threadIdx.x] = values[99 - i];
}
__global__ void __launch_bounds__(1024) Of1024(const int* in, int* out) { Reverse(in, out); }
__global__ void __launch_bounds__(128, 8) EightOf128(const int* in, int* out) { Reverse(in, out); }
__global__ void __maxnreg__(32) Registers32(const int* in, int* out) { Reverse(in, out); }
__global__ void Unbounded(const int* in, int* out) {
  cooperative_groups::this_grid().sync();
  Reverse(in, out);
}

template <class Kernel>
void Bounded(const char* name, Kernel kernel, int threads, int most, int least_blocks) {
  cudaFuncAttributes is{};
  int blocks = 0;
  CUDA_CHECK(cudaFuncGetAttributes(&is, kernel));
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, 0));
  expect(name, is.numRegs <= most ? most : is.numRegs, most);
  expect(name, blocks >= least_blocks, true);
}

void LaunchBounds() {
  int* memory = nullptr;
  CUDA_CHECK(cudaMalloc(&memory, 64 << 10));
  Bounded("registers with __launch_bounds__(1024)", Of1024, 1024, 64, 1);
  Bounded("registers with __launch_bounds__(128, 8)", EightOf128, 128, 64, 8);
  Bounded("registers with __maxnreg__(32)", Registers32, 1024, 32, 1);
  int* in = memory;
  int* out = memory + 4096;
  void* arguments[] = {&in, &out};
  CUDA_CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(Unbounded), dim3(1), dim3(1024), arguments));
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaFree(memory));
}

std::string ManyRegisters() {
  std::string text = std::string(kHead) +
                     ".visible .entry many(.param .u64 at) {\n.reg .b32 %r<100>;\n.reg .b64 %a;\nld.param.u64 %a, [at];\n";
  for (int i = 0; i < 100; ++i)
    text += "ld.global.u32 %r" + std::to_string(i) + ", [%a+" + std::to_string(4 * i) + "];\n";
  for (int i = 0; i < 100; ++i)
    text += "st.global.u32 [%a+" + std::to_string(4 * i) + "], %r" + std::to_string(99 - i) + ";\n";
  return text + "ret;\n}\n";
}

// A linker that keeps what it says.
struct Link {
  explicit Link(int most_registers = 0) {
    DRIVER(cuLinkCreate);
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_MAX_REGISTERS};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log), reinterpret_cast<void*>(intptr_t{most_registers})};
    std::memcpy(kept_options, options, sizeof options);
    std::memcpy(kept_values, values, sizeof values);
    expect("cuLinkCreate", cuLinkCreate_(most_registers == 0 ? 2 : 3, kept_options, kept_values, &state), 0);
  }
  void Add(CUjitInputType type, const std::string& data) {
    DRIVER(cuLinkAddData);
    std::string own = data;
    expect("cuLinkAddData", cuLinkAddData_(state, type, own.data(), own.size(), "input", 0, nullptr, nullptr), 0);
  }
  int Complete() {
    DRIVER(cuLinkComplete);
    size_t bytes = 0;
    return cuLinkComplete_(state, &image, &bytes);
  }
  CUfunction Load(const char* name) {
    DRIVER(cuModuleLoadData);
    DRIVER(cuModuleGetFunction);
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    expect("cuLinkComplete", Complete(), 0);
    expect("cuModuleLoadData of what was linked", cuModuleLoadData_(&module, image), 0);
    expect("cuModuleGetFunction", cuModuleGetFunction_(&function, module, name), 0);
    return function;
  }
  ~Link() {
    DRIVER(cuLinkDestroy);
    expect("cuLinkDestroy", cuLinkDestroy_(state), 0);
  }
  CUlinkState state = nullptr;
  void* image = nullptr;
  char log[1024] = "";
  CUjit_option kept_options[3];
  void* kept_values[3];
};

int RegistersOf(CUfunction function) {
  DRIVER(cuFuncGetAttribute);
  int registers = 0;
  expect("cuFuncGetAttribute", cuFuncGetAttribute_(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function), 0);
  return registers;
}

void MostRegisters() {
  DRIVER(cuModuleLoadDataEx);
  DRIVER(cuModuleGetFunction);
  const std::string text = ManyRegisters();
  for (const int most : {0, 38}) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    CUjit_option option = CU_JIT_MAX_REGISTERS;
    void* value = reinterpret_cast<void*>(intptr_t{most});
    expect("cuModuleLoadDataEx", cuModuleLoadDataEx_(&module, text.c_str(), most == 0 ? 0 : 1, &option, &value), 0);
    expect("cuModuleGetFunction", cuModuleGetFunction_(&function, module, "many"), 0);
    expect("registers of a module with CU_JIT_MAX_REGISTERS", RegistersOf(function), most == 0 ? 64 : most);
  }
  Link link(38);
  link.Add(CU_JIT_INPUT_PTX, text);
  expect("registers of what was linked with CU_JIT_MAX_REGISTERS", RegistersOf(link.Load("many")), 38);
}

void UnresolvedFunctions() {
  DRIVER(cuModuleLoadDataEx);
  const std::string declared = std::string(kHead) + ".extern .func (.param .b32 back) nowhere(.param .b32 value);\n";
  const std::string unused = declared + ".visible .entry k() { ret; }\n";
  const std::string used = declared +
                           ".visible .entry k() { .reg .b32 %r; { .param .b32 v; .param .b32 b; mov.u32 %r, 1; st.param.b32 "
                           "[v], %r; call.uni (b), nowhere, (v); ld.param.b32 %r, [b]; } ret; }\n";
  char log[256] = "";
  CUmodule module = nullptr;
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  expect("a function that is only declared", cuModuleLoadDataEx_(&module, unused.c_str(), 2, options, values), 0);
  values[1] = reinterpret_cast<void*>(sizeof log);
  expect("a module that calls what nobody defines", cuModuleLoadDataEx_(&module, used.c_str(), 2, options, values),
         CUDA_ERROR_INVALID_PTX);
  expect("the name in the module's log", std::strstr(log, "nowhere") != nullptr, true);
  Link link;
  link.Add(CU_JIT_INPUT_PTX, used);
  expect("cuLinkComplete without a function", link.Complete() != 0, true);
  expect("the name in the linker's log", std::strstr(link.log, "nowhere") != nullptr, true);
  link.Add(CU_JIT_INPUT_PTX, std::string(kHead) +
                                 ".visible .func (.param .b32 back) nowhere(.param .b32 value) { .reg .b32 %r; "
                                 "ld.param.b32 %r, [value]; st.param.b32 [back], %r; ret; }\n");
  expect("cuLinkComplete with it", link.Complete(), 0);
}

// What ar(1) makes of a file whose name does not fit into a header. The code in it is not looked at.
std::string Archive(const std::string& member) {
  const auto entry = [](std::string name, const std::string& body) {
    const std::string bytes = std::to_string(body.size());
    name.resize(48, ' ');
    return name + bytes + std::string(10 - bytes.size(), ' ') + "`\n" + body + (body.size() % 2 != 0 ? "\n" : "");
  };
  return "!<arch>\n" + entry("/", "symbols") + entry("//", member + "/\n") + entry("/0", "\x7f" "ELF, or so");
}

void DeviceRuntime() {
  DRIVER(cuLinkAddData);
  DRIVER(cuLaunchCooperativeKernel);
  const std::string text = std::string(kHead) + R"(
.extern .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope);
.extern .func (.param .b32 error) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);
.extern .func (.param .b32 error) cudaCGGetSize(.param .b64 threads, .param .b64 grids, .param .b64 handle);
.extern .func (.param .b32 error) cudaCGGetRank(.param .b64 thread, .param .b64 grid, .param .b64 handle);
// Each thread writes its rank; after the barrier the last one counts backwards what the others have written.
.visible .entry grid(.param .u64 at) {
  .reg .b32 %r<12>; .reg .b64 %a<8>; .reg .pred %p;
  ld.param.u64 %a0, [at];
  { .param .b32 s; .param .b64 h; st.param.b32 [s], 1; call.uni (h), cudaCGGetIntrinsicHandle, (s); ld.param.b64 %a1, [h]; }
  add.u64 %a2, %a0, 1024;
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r0, %r1, %r2;
  mul.wide.u32 %a3, %r3, 8; add.u64 %a3, %a2, %a3; add.u64 %a4, %a3, 4;
  { .param .b64 t; .param .b64 g; .param .b64 h; .param .b32 e; st.param.b64 [t], %a3; st.param.b64 [g], %a4;
    st.param.b64 [h], %a1; call.uni (e), cudaCGGetRank, (t, g, h); ld.param.b32 %r4, [e]; }
  { .param .b64 h; .param .b32 f; .param .b32 e; st.param.b64 [h], %a1; st.param.b32 [f], 0;
    call.uni (e), cudaCGSynchronize, (h, f); ld.param.b32 %r5, [e]; }
  { .param .b64 t; .param .b64 g; .param .b64 h; .param .b32 e; st.param.b64 [t], %a0; st.param.b64 [g], 0;
    st.param.b64 [h], %a1; call.uni (e), cudaCGGetSize, (t, g, h); ld.param.b32 %r6, [e]; }
  or.b32 %r7, %r4, %r5; or.b32 %r7, %r7, %r6;
  st.global.u32 [%a0+4], %r7;
  setp.ne.u32 %p, %r3, 0;
  @%p ret;
  mov.u32 %r8, 0; mov.u32 %r9, 0;
NEXT:
  mul.wide.u32 %a5, %r8, 8; add.u64 %a5, %a2, %a5; ld.volatile.global.u32 %r10, [%a5];
  add.u32 %r9, %r9, %r10; add.u32 %r8, %r8, 1;
  setp.lt.u32 %p, %r8, 96;
  @%p bra NEXT;
  st.global.u32 [%a0+8], %r9;
  ret;
})";
  Link other;
  std::string archive = Archive("other_library_of_code.o");
  expect("another library", cuLinkAddData_(other.state, CU_JIT_INPUT_LIBRARY, archive.data(), archive.size(), "x.a", 0, nullptr, nullptr),
         CUDA_ERROR_NOT_SUPPORTED);
  Link link;
  link.Add(CU_JIT_INPUT_PTX, text);
  link.Add(CU_JIT_INPUT_LIBRARY, Archive("cuda_device_runtime.o"));
  const CUfunction grid = link.Load("grid");
  int* memory = nullptr;
  CUDA_CHECK(cudaMalloc(&memory, 4096));
  CUDA_CHECK(cudaMemset(memory, 0xff, 4096));
  void* arguments[] = {&memory};
  expect("cuLaunchCooperativeKernel", cuLaunchCooperativeKernel_(grid, 3, 1, 1, 32, 1, 1, 0, nullptr, arguments), 0);
  int seen[3] = {};
  CUDA_CHECK(cudaMemcpy(seen, memory, sizeof seen, cudaMemcpyDeviceToHost));
  expect("threads of the grid", seen[0], 96);
  expect("errors of the calls", seen[1], 0);
  expect("sum of the ranks that were written before the barrier", seen[2], 95 * 96 / 2);
  CUDA_CHECK(cudaFree(memory));
}

}  // namespace

int main() {
  CUDA_CHECK(cudaFree(nullptr));
  LaunchBounds();
  MostRegisters();
  UnresolvedFunctions();
  DeviceRuntime();
  if (wrong != 0) return 1;
  std::printf("PASS jit\n");
  return 0;
}
