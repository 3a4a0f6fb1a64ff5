// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/soft/state/family_works.h"

#include "tests/unit/soft/state/family_ptx.h"

namespace vgpud::soft {
namespace {

using family_ptx::Kernel;
using family_ptx::kHeader;
using family_ptx::kTail;
using family_ptx::LastError;
using family_ptx::Launch;
using family_ptx::Note;
using family_ptx::Prepare;

constexpr uint32_t kSums = 64;  // words from the list to the sums

// Adds a number of each thread, computed in `rounds`, to one of 64 sums; its first thread notes that it ran.
std::string Leaf(uint32_t rounds) {
  return Kernel(
      "leaf",
      "mov.u32 %r10, %tid.x; mov.u32 %r11, %ctaid.x; mov.u32 %r12, %ntid.x; mad.lo.u32 %r13, %r11, %r12, %r10;\n"
      "mad.lo.u32 %r13, %r13, 40503, %r1; mov.u32 %r14, 0;\n"
      "AGAIN: mad.lo.u32 %r13, %r13, 1664525, 1013904223;\n"
      "add.u32 %r14, %r14, 1; setp.lt.u32 %p1, %r14, " +
          std::to_string(rounds) +
          "; @%p1 bra AGAIN;\n"
          "and.b32 %r15, %r13, 63; mul.wide.u32 %rd3, %r15, 4; add.s64 %rd3, %rd1, %rd3;\n"
          "atom.global.add.u32 %r16, [%rd3+256], %r13;\n"
          "or.b32 %r17, %r10, %r11; setp.ne.u32 %p2, %r17, 0; @%p2 bra END;\n" +
          Note() + "END:\n");
}

// Notes its value and the error that it found; while value % 8 is not 0 it launches, in an order that differs from the
// one in which they run, a leaf and two of its own kind with one less, prepares one that it never launches, and every
// second time one that is refused.
std::string Node() {
  return Kernel("node", "mov.u32 %r10, %tid.x; setp.ne.u32 %p1, %r10, 0; @%p1 bra END;\n" + Note() + LastError() +
                            "mov.u32 %r11, %r1; add.u32 %r1, %r3, 500;\n" + Note() +
                            "mov.u32 %r1, %r11; and.b32 %r4, %r1, 7; setp.eq.u32 %p2, %r4, 0; @%p2 bra END;\n"
                            "add.u32 %r5, %r1, 1000;\n" +
                            Launch("leaf", "%r5", kTail, "3", "50") + "add.u32 %r5, %r1, 7;\n" +
                            Launch("node", "%r5", "0", "1", "40") + Prepare("leaf", "1", "32") +
                            "and.b32 %r6, %r1, 1; setp.eq.u32 %p3, %r6, 0; @%p3 bra EVEN;\n" +
                            Prepare("leaf", "1", "1025") + "EVEN: add.u32 %r5, %r1, 15;\n" +
                            Launch("node", "%r5", "0", "1", "40") + "END:\n");
}

Work Make(SoftMachine& m, const std::string& kernels, const std::string& first, const LaunchShape& shape,
          uint32_t value) {
  const Outcome loaded = m.Load(kHeader + kernels);
  EXPECT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  Work work;
  work.words = 2 * kSums;
  work.out = m.Alloc(work.words * 4);
  work.grid = m.Launch(first, shape, Params().Add(work.out).Add(value));
  return work;
}

}  // namespace

Work FamilyTree(SoftMachine& m) { return Make(m, Leaf(10) + Node(), "node", {{1, 1, 1}, {40, 1, 1}, 0}, 3); }

Work FamilyOfManyBlocks(SoftMachine& m) {
  const std::string root =
      Kernel("root", "mov.u32 %r10, %tid.x; setp.ne.u32 %p1, %r10, 0; @%p1 bra END;\n" +
                         Launch("leaf", "%r1", "0", "24", "64") + Launch("leaf", "%r1", kTail, "2", "20") + "END:\n");
  return Make(m, Leaf(100) + root, "root", {{4, 1, 1}, {64, 1, 1}, 0}, 77);
}

}  // namespace vgpud::soft
