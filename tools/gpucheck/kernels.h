// SPDX-License-Identifier: Apache-2.0
// The kernels of gpu-check as PTX: numbers that each thread goes on computing from launch to launch, so that all
// results of a run stand in one digest.
#pragma once

#include <string>

namespace gpucheck {

// A step of the numbers, in %r4 with %r5 for itself.
#define GPU_CHECK_STEP                                                                             \
  "shl.b32 %r5, %r4, 13;\nxor.b32 %r4, %r4, %r5;\nshr.u32 %r5, %r4, 17;\nxor.b32 %r4, %r4, %r5;\n" \
  "shl.b32 %r5, %r4, 5;\nxor.b32 %r4, %r4, %r5;\nadd.u32 %r4, %r4, 0x9e3779b9;\n"
#define GPU_CHECK_HEAD(name)                                                                              \
  ".visible .entry " name                                                                                 \
  "(.param .u64 states, .param .u64 more, .param .u32 rounds)\n{\n"                                       \
  ".reg .u64 %rd<6>;\n.reg .u32 %r<12>;\n.reg .pred %p<3>;\n"                                             \
  "ld.param.u64 %rd1, [states];\nld.param.u64 %rd2, [more];\nld.param.u32 %r9, [rounds];\n"               \
  "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\nmad.lo.u32 %r1, %r1, %r2, %r3;\n" \
  "mul.wide.u32 %rd3, %r1, 4;\nadd.u64 %rd3, %rd1, %rd3;\nld.global.u32 %r4, [%rd3];\n"

// work: `rounds` steps (at least one). endless: steps until the word at `more` is not 0. beats: the same, and thread 0
// of block 0 writes how many steps it has taken to the second word at `more`, which is memory of the processor; it ends
// after `rounds` times 256 steps where that is not 0. touch: adds 1 to each of the words of its own in `rounds` pages
// of 4 KiB.
inline constexpr char kWork[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n" GPU_CHECK_HEAD("work")
    "loop:\n" GPU_CHECK_STEP
    "sub.u32 %r9, %r9, 1;\nsetp.ne.u32 %p1, %r9, 0;\n@%p1 bra loop;\nst.global.u32 [%rd3], %r4;\nret;\n}\n"
    GPU_CHECK_HEAD("endless")
    "loop:\n" GPU_CHECK_STEP
    "ld.volatile.global.u32 %r6, [%rd2];\nsetp.eq.u32 %p1, %r6, 0;\n@%p1 bra loop;\nst.global.u32 [%rd3], %r4;\nret;\n}\n"
    GPU_CHECK_HEAD("beats")
    "mov.u64 %rd4, 0;\nmov.u32 %r7, 0;\nor.b32 %r8, %r1, 0;\n"
    "loop:\nmov.u32 %r10, 256;\nsteps:\n" GPU_CHECK_STEP
    "sub.u32 %r10, %r10, 1;\nsetp.ne.u32 %p1, %r10, 0;\n@%p1 bra steps;\n"
    "add.u64 %rd4, %rd4, 1;\nadd.u32 %r7, %r7, 1;\n"
    "setp.ne.u32 %p1, %r8, 0;\n@%p1 bra quiet;\nst.volatile.global.u64 [%rd2+8], %rd4;\nmembar.sys;\nquiet:\n"
    "setp.eq.u32 %p1, %r7, %r9;\n@%p1 bra out;\n"
    "ld.volatile.global.u32 %r6, [%rd2];\nsetp.eq.u32 %p1, %r6, 0;\n@%p1 bra loop;\n"
    "out:\nst.global.u32 [%rd3], %r4;\nret;\n}\n"
    ".visible .entry touch(.param .u64 states, .param .u64 more, .param .u32 rounds)\n{\n"
    ".reg .u64 %rd<4>;\n.reg .u32 %r<8>;\n.reg .pred %p<2>;\n"
    "ld.param.u64 %rd1, [states];\nld.param.u32 %r4, [rounds];\n"
    "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\nmad.lo.u32 %r1, %r1, %r2, %r3;\n"
    "mul.wide.u32 %rd2, %r1, %r4;\nshl.b64 %rd2, %rd2, 12;\nadd.u64 %rd1, %rd1, %rd2;\n"
    "loop:\nld.global.u32 %r5, [%rd1];\nadd.u32 %r5, %r5, 1;\nst.global.u32 [%rd1], %r5;\nadd.u64 %rd1, %rd1, 4096;\n"
    "sub.u32 %r4, %r4, 1;\nsetp.ne.u32 %p1, %r4, 0;\n@%p1 bra loop;\nret;\n}\n"
    ".visible .entry empty()\n{\nret;\n}\n";

// clustered: work, with a barrier of the cluster every 64 steps.
inline constexpr char kClustered[] = ".version 7.8\n.target sm_90\n.address_size 64\n" GPU_CHECK_HEAD(
    "clustered") "loop:\n" GPU_CHECK_STEP
                 "and.b32 %r6, %r9, 63;\nsetp.ne.u32 %p2, %r6, 0;\n@%p2 bra on;\n"
                 "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\non:\n"
                 "sub.u32 %r9, %r9, 1;\nsetp.ne.u32 %p1, %r9, 0;\n@%p1 bra loop;\nst.global.u32 [%rd3], "
                 "%r4;\nret;\n}\n";

// fat: `registers` numbers that are all live in the loop, and a word of dynamic shared memory for each thread that
// changes with each step; the launch can ask for more of it, so that few blocks run at once.
std::string FatKernel(int registers);

}  // namespace gpucheck
