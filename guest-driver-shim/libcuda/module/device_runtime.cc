// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/module/device_runtime.h"

#include <algorithm>

namespace vgpud::cuda {
namespace {

// A handle is the workspace of a cooperative launch, whose address is in %envreg1 (high) and %envreg2 (low); 0 without
// one. The word at 4 is the barrier: each block adds 1 and the first one what is missing to 2^31, so that its highest
// bit turns when all have come. CUDA's headers use the same word in the same way.
constexpr std::string_view kPtx = R"(.version 6.4
.target sm_70
.address_size 64

.weak .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
  .reg .pred %p;
  .reg .b32 %r<3>;
  .reg .b64 %a;
  ld.param.u32 %r0, [scope];
  mov.u32 %r1, %envreg1;
  mov.u32 %r2, %envreg2;
  mov.b64 %a, {%r2, %r1};
  setp.eq.u32 %p, %r0, 1;
  selp.b64 %a, %a, 0, %p;
  st.param.b64 [handle], %a;
  ret;
}

.weak .func (.param .b32 error) cudaCGSynchronizeGrid(.param .b64 handle, .param .b32 flags)
{
  .reg .pred %p;
  .reg .b32 %r<8>;
  .reg .b64 %a;
  ld.param.u64 %a, [handle];
  mov.u32 %r0, 1;
  setp.eq.u64 %p, %a, 0;
  @%p bra DONE;
  bar.sync 0;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %tid.y;
  mov.u32 %r3, %tid.z;
  or.b32 %r1, %r1, %r2;
  or.b32 %r1, %r1, %r3;
  setp.ne.u32 %p, %r1, 0;
  @%p bra WAITED;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ctaid.y;
  mov.u32 %r3, %ctaid.z;
  or.b32 %r1, %r1, %r2;
  or.b32 %r1, %r1, %r3;
  mov.u32 %r2, %nctaid.x;
  mov.u32 %r3, %nctaid.y;
  mul.lo.u32 %r2, %r2, %r3;
  mov.u32 %r3, %nctaid.z;
  mul.lo.u32 %r2, %r2, %r3;
  sub.u32 %r2, 0x80000001, %r2;
  setp.eq.u32 %p, %r1, 0;
  selp.u32 %r4, %r2, 1, %p;
  membar.gl;
  atom.global.add.u32 %r5, [%a+4], %r4;
COMING:
  ld.volatile.global.u32 %r6, [%a+4];
  xor.b32 %r7, %r5, %r6;
  setp.ge.s32 %p, %r7, 0;
  @%p bra COMING;
  membar.gl;
WAITED:
  bar.sync 0;
  mov.u32 %r0, 0;
DONE:
  st.param.b32 [error], %r0;
  ret;
}

.weak .func (.param .b32 error) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
  .reg .b32 %r<2>;
  .reg .b64 %a;
  ld.param.u64 %a, [handle];
  ld.param.u32 %r0, [flags];
  {
    .param .b64 h;
    .param .b32 f;
    .param .b32 e;
    st.param.b64 [h], %a;
    st.param.b32 [f], %r0;
    call.uni (e), cudaCGSynchronizeGrid, (h, f);
    ld.param.b32 %r1, [e];
  }
  st.param.b32 [error], %r1;
  ret;
}

.weak .func (.param .b32 error) cudaCGGetSize(.param .b64 threads, .param .b64 grids, .param .b64 handle)
{
  .reg .pred %p;
  .reg .b32 %r<7>;
  .reg .b64 %a<3>;
  ld.param.u64 %a0, [threads];
  ld.param.u64 %a1, [grids];
  ld.param.u64 %a2, [handle];
  mov.u32 %r0, 1;
  setp.eq.u64 %p, %a2, 0;
  @%p bra DONE;
  mov.u32 %r1, %nctaid.x;
  mov.u32 %r2, %nctaid.y;
  mul.lo.u32 %r1, %r1, %r2;
  mov.u32 %r2, %nctaid.z;
  mul.lo.u32 %r1, %r1, %r2;
  mov.u32 %r2, %ntid.x;
  mul.lo.u32 %r1, %r1, %r2;
  mov.u32 %r2, %ntid.y;
  mul.lo.u32 %r1, %r1, %r2;
  mov.u32 %r2, %ntid.z;
  mul.lo.u32 %r1, %r1, %r2;
  setp.ne.u64 %p, %a0, 0;
  @%p st.u32 [%a0], %r1;
  setp.ne.u64 %p, %a1, 0;
  @%p st.u32 [%a1], %r0;
  mov.u32 %r0, 0;
DONE:
  st.param.b32 [error], %r0;
  ret;
}

.weak .func (.param .b32 error) cudaCGGetRank(.param .b64 thread, .param .b64 grid, .param .b64 handle)
{
  .reg .pred %p;
  .reg .b32 %r<7>;
  .reg .b64 %a<3>;
  ld.param.u64 %a0, [thread];
  ld.param.u64 %a1, [grid];
  ld.param.u64 %a2, [handle];
  mov.u32 %r0, 1;
  setp.eq.u64 %p, %a2, 0;
  @%p bra DONE;
  mov.u32 %r1, %ctaid.z;
  mov.u32 %r2, %nctaid.y;
  mov.u32 %r3, %ctaid.y;
  mad.lo.u32 %r1, %r1, %r2, %r3;
  mov.u32 %r2, %nctaid.x;
  mov.u32 %r3, %ctaid.x;
  mad.lo.u32 %r1, %r1, %r2, %r3;
  mov.u32 %r2, %ntid.z;
  mov.u32 %r3, %tid.z;
  mad.lo.u32 %r1, %r1, %r2, %r3;
  mov.u32 %r2, %ntid.y;
  mov.u32 %r3, %tid.y;
  mad.lo.u32 %r1, %r1, %r2, %r3;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r1, %r1, %r2, %r3;
  mov.u32 %r0, 0;
  setp.ne.u64 %p, %a0, 0;
  @%p st.u32 [%a0], %r1;
  setp.ne.u64 %p, %a1, 0;
  @%p st.u32 [%a1], %r0;
DONE:
  st.param.b32 [error], %r0;
  ret;
}
)";

constexpr std::string_view kArchive = "!<arch>\n";
constexpr std::string_view kMember = "cuda_device_runtime.o/";
// ar(5): of names that are too long for a member's header there is a list near the begin, behind a table of symbols.
constexpr size_t kHeaderBytes = 60;
constexpr size_t kSizeAt = 48, kSizeDigits = 10;

size_t SizeOf(std::string_view header) {
  size_t bytes = 0;
  for (const char c : header.substr(kSizeAt, kSizeDigits)) {
    if (c < '0' || c > '9') break;
    bytes = bytes * 10 + static_cast<size_t>(c - '0');
  }
  return bytes;
}

}  // namespace

bool IsDeviceRuntime(std::span<const char> archive, std::string_view file_name) {
  std::string_view rest(archive.data(), archive.size());
  if (!rest.starts_with(kArchive)) return false;
  if (const size_t slash = file_name.rfind('/'); slash != std::string_view::npos) file_name.remove_prefix(slash + 1);
  if (file_name == "libcudadevrt.a") return true;
  rest.remove_prefix(kArchive.size());
  while (rest.size() >= kHeaderBytes && rest.starts_with("/")) {
    const std::string_view header = rest.substr(0, kHeaderBytes);
    rest.remove_prefix(kHeaderBytes);
    const std::string_view body = rest.substr(0, SizeOf(header));
    if (header.starts_with("//")) return body.find(kMember) != std::string_view::npos;
    rest.remove_prefix(std::min(rest.size(), body.size() + body.size() % 2));
  }
  return false;
}

std::string_view DeviceRuntimePtx() { return kPtx; }

}  // namespace vgpud::cuda
