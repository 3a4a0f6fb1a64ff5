// SPDX-License-Identifier: Apache-2.0
// usage: fault_program NAME: launches the kernel that commits this fault and checks what the driver API says then and
// on every later call. NAME "none": a kernel without one. Runs under tools/run-direct.
#include <cstdio>
#include <cstring>
#include <string>

#include "guest-driver-shim/libcuda/generated/cuda_api.h"

namespace {

constexpr char kPtx[] = R"(.version 8.0
.target sm_75
.address_size 64
.extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);
.global .align 1 .b8 text[4] = {102, 97, 108, 0};
.shared .align 16 .b8 tile[64];
.func down() { call down, (); ret; }
.visible .entry none(.param .u64 at) { ret; }
.visible .entry overrun(.param .u64 at) { .reg .b64 %rd<2>; ld.param.u64 %rd1, [at];
st.global.u8 [%rd1+256], 1; ret; }
.visible .entry unwritten(.param .u64 at) { .reg .b32 %r<2>; ld.shared.u32 %r1, [tile]; ret; }
.visible .entry address(.param .u64 at) { .reg .b32 %r<2>; mov.u32 %r1, 5; st.global.u32 [4096], %r1; ret; }
.visible .entry timeout(.param .u64 at) { .reg .b32 %r<2>; .reg .pred %p<2>;
mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; @%p1 bar.sync 0, 64; bar.sync 1, 64; ret; }
.visible .entry assert(.param .u64 at) { .reg .b64 %rd<2>; mov.u64 %rd1, text;
{ .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 s;
st.param.b64 [m], %rd1; st.param.b64 [f], %rd1; st.param.b32 [l], 7; st.param.b64 [n], %rd1; st.param.b64 [s], 1;
call __assertfail, (m, f, l, n, s); } ret; }
.visible .entry stack(.param .u64 at) { call down, (); ret; }
.visible .entry instruction(.param .u64 at) { bar.sync 16; ret; }
.visible .entry misaligned(.param .u64 at) { .reg .b32 %r<5>; .reg .b64 %rd<2>; ld.param.u64 %rd1, [at];
ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1+4]; ret; }
.visible .entry space(.param .u64 at) { .local .align 4 .b8 own[4]; .reg .b32 %r<2>; .reg .b64 %rd<3>;
mov.u64 %rd1, own; cvta.local.u64 %rd2, %rd1; atom.add.u32 %r1, [%rd2], 1; ret; }
.visible .entry pc(.param .u64 at) { .reg .b64 %rd<2>; ld.param.u64 %rd1, [at]; call %rd1, (); ret; }
.visible .entry failed(.param .u64 at) { trap; ret; }
)";

struct Fault {
  const char* name;
  CUresult status;
  const char* status_name;
} constexpr kFaults[] = {
    {"none", CUDA_SUCCESS, "CUDA_SUCCESS"},
    {"overrun", CUDA_SUCCESS, "CUDA_SUCCESS"},  // these two are found by the check mode only
    {"unwritten", CUDA_SUCCESS, "CUDA_SUCCESS"},
    {"address", CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {"timeout", CUDA_ERROR_LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT"},
    {"assert", CUDA_ERROR_ASSERT, "CUDA_ERROR_ASSERT"},
    {"stack", CUDA_ERROR_HARDWARE_STACK_ERROR, "CUDA_ERROR_HARDWARE_STACK_ERROR"},
    {"instruction", CUDA_ERROR_ILLEGAL_INSTRUCTION, "CUDA_ERROR_ILLEGAL_INSTRUCTION"},
    {"misaligned", CUDA_ERROR_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS"},
    {"space", CUDA_ERROR_INVALID_ADDRESS_SPACE, "CUDA_ERROR_INVALID_ADDRESS_SPACE"},
    {"pc", CUDA_ERROR_INVALID_PC, "CUDA_ERROR_INVALID_PC"},
    {"failed", CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"},
};

int failures = 0;

void Expect(const char* call, CUresult is, CUresult wanted) {
  if (is == wanted) return;
  std::printf("%s: %d instead of %d\n", call, is, wanted);
  ++failures;
}

}  // namespace

int main(int argc, char** argv) {
  for (const Fault& fault : kFaults) {
    if (argc != 2 || std::strcmp(argv[1], fault.name) != 0) continue;
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CUdeviceptr memory;
    Expect("cuInit", cuInit(0), CUDA_SUCCESS);
    Expect("retain", cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    Expect("set", cuCtxSetCurrent(context), CUDA_SUCCESS);
    Expect("alloc", cuMemAlloc_v2(&memory, 256), CUDA_SUCCESS);
    Expect("load", cuModuleLoadData(&module, kPtx), CUDA_SUCCESS);
    Expect("function", cuModuleGetFunction(&function, module, fault.name), CUDA_SUCCESS);
    void* parameters[] = {&memory};
    Expect("launch", cuLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
    const CUresult status = cuCtxSynchronize();
    const char* name = nullptr;
    cuGetErrorName(status, &name);
    std::printf("%s\n", name);
    Expect("synchronize", status, fault.status);
    if (std::strcmp(name, fault.status_name) != 0) ++failures;
    // Every later call of the context says the same.
    char bytes[16];
    CUdeviceptr more;
    Expect("synchronize again", cuCtxSynchronize(), fault.status);
    Expect("copy", cuMemcpyDtoH_v2(bytes, memory, sizeof bytes), fault.status);
    Expect("alloc again", cuMemAlloc_v2(&more, 256), fault.status);
    Expect("launch again", cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), fault.status);
    Expect("synchronize last", cuCtxSynchronize(), fault.status);
    return failures == 0 ? 0 : 1;
  }
  std::fprintf(stderr, "usage: fault_program NAME\n");
  return 2;
}
