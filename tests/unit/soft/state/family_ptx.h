// SPDX-License-Identifier: Apache-2.0
// PTX of kernels that launch kernels, in the form that nvcc gives such launches. Each has the parameters out and value,
// in %rd1 and %r1; the pieces use %rd2, %rd8, %rd9, %r2, %r3 and %r9.
#pragma once

#include <string>

namespace vgpud::soft::family_ptx {

inline constexpr const char* kHeader = R"(.version 9.0
.target sm_75
.address_size 64
.extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2
(.param .b64 a, .param .align 4 .b8 b[12], .param .align 4 .b8 c[12], .param .b32 d);
.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 a, .param .b64 b);
.extern .func (.param .b32 r) __cudaCDP2GetLastError();
)";

// %rd9: the buffer, 0 = refused.
inline std::string Prepare(const std::string& kernel, const std::string& blocks, const std::string& threads) {
  return "{ .param .b64 p0; .param .align 4 .b8 p1[12]; .param .align 4 .b8 p2[12]; .param .b32 p3; .param .b64 q;\n"
         "mov.u64 %rd8, " +
         kernel + "; st.param.b64 [p0+0], %rd8;\nst.param.b32 [p1+0], " + blocks +
         "; st.param.b32 [p1+4], 1; st.param.b32 [p1+8], 1;\nst.param.b32 [p2+0], " + threads +
         "; st.param.b32 [p2+4], 1; st.param.b32 [p2+8], 1;\nst.param.b32 [p3+0], 0;\n"
         "call.uni (q), __cudaCDP2GetParameterBufferV2, (p0, p1, p2, p3);\nld.param.b64 %rd9, [q+0]; }\n";
}
inline std::string Start(const std::string& stream = "0") {
  return "{ .param .b64 p0; .param .b64 p1; .param .b32 q; st.param.b64 [p0+0], %rd9; st.param.b64 [p1+0], " + stream +
         ";\ncall.uni (q), __cudaCDP2LaunchDeviceV2, (p0, p1);\nld.param.b32 %r9, [q+0]; }\n";
}
inline std::string Kernel(const std::string& name, const std::string& body) {
  return ".visible .entry " + name +
         "(.param .u64 out, .param .u32 value)\n{\n.reg .b32 %r<20>;\n.reg .b64 %rd<20>;\n.reg .pred %p<4>;\n"
         "ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [value];\n" +
         body + "ret;\n}\n";
}
// Adds `value` to the end of the list at out: count, then its members.
inline std::string Note() {
  return "atom.global.add.u32 %r2, [%rd1], 1; mul.wide.u32 %rd2, %r2, 4; add.s64 %rd2, %rd1, %rd2;\n"
         "st.global.u32 [%rd2+4], %r1;\n";
}
// In `stream`, with `blocks` of `threads`.
inline std::string Launch(const std::string& kernel, const std::string& value, const std::string& stream = "0",
                          const std::string& blocks = "1", const std::string& threads = "1") {
  return Prepare(kernel, blocks, threads) + "st.u64 [%rd9], %rd1; st.u32 [%rd9+8], " + value + ";\n" + Start(stream);
}
// %r3: the error of the latest refusal, which is forgotten.
inline std::string LastError() {
  return "{ .param .b32 q; call.uni (q), __cudaCDP2GetLastError, (); ld.param.b32 %r3, [q+0]; }\n";
}
inline constexpr const char* kTail = "3";

}  // namespace vgpud::soft::family_ptx
