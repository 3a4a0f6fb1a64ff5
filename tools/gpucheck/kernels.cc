// SPDX-License-Identifier: Apache-2.0
#include "tools/gpucheck/kernels.h"

namespace gpucheck {

std::string FatKernel(int registers) {
  const auto number = [](int n) { return "%f" + std::to_string(n); };
  std::string ptx =
      ".version 7.0\n.target sm_75\n.address_size 64\n.extern .shared .align 4 .b8 room[];\n" GPU_CHECK_HEAD("fat");
  ptx += ".reg .u32 %f<" + std::to_string(registers + 1) + ">;\n";
  ptx += "mov.u32 %r6, room;\nshl.b32 %r7, %r3, 2;\nadd.u32 %r6, %r6, %r7;\nst.shared.u32 [%r6], %r4;\n";
  for (int n = 0; n < registers; ++n) ptx += "add.u32 " + number(n) + ", %r4, " + std::to_string(n * 977) + ";\n";
  ptx += "loop:\n";
  for (int n = 0; n < registers; ++n) {
    const std::string next = number((n + 1) % registers);
    ptx += "mad.lo.u32 " + number(n) + ", " + number(n) + ", 1664525, " + next + ";\n";
  }
  ptx += "ld.shared.u32 %r5, [%r6];\nxor.b32 %r5, %r5, " + number(0) + ";\nst.shared.u32 [%r6], %r5;\n";
  ptx += "sub.u32 %r9, %r9, 1;\nsetp.ne.u32 %p1, %r9, 0;\n@%p1 bra loop;\nld.shared.u32 %r4, [%r6];\n";
  for (int n = 0; n < registers; ++n) ptx += "xor.b32 %r4, %r4, " + number(n) + ";\n";
  return ptx + "st.global.u32 [%rd3], %r4;\nret;\n}\n";
}

}  // namespace gpucheck
