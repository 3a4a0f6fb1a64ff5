// SPDX-License-Identifier: Apache-2.0
// The families of instructions: each is a function that returns its rows, in the file of its name. The one list of
// them.
#pragma once

// Of every instruction set.
#define SOFT_FAMILIES(X) \
  X(Integer)             \
  X(Logic)               \
  X(Matrix)              \
  X(MatrixTransfer)      \
  X(Float)               \
  X(Compare)             \
  X(Memory)              \
  X(Mma)                 \
  X(Shuffle)             \
  X(Bfloat)              \
  X(Bit)                 \
  X(Half)                \
  X(Narrow)              \
  X(NarrowMma)           \
  X(Packed)              \
  X(SmallArithmetic)     \
  X(SmallCompare)        \
  X(SparseMma)           \
  X(SparseNarrowMma)     \
  X(TensorMma)           \
  X(Texture)             \
  X(Wgmma)               \
  X(WgmmaSparse)

// For all instruction sets alike, because a wider one hardly helps them.
#define SOFT_COMMON_FAMILIES(X) \
  X(Async)                      \
  X(Atomic)                     \
  X(BfloatAll)                  \
  X(BulkReduce)                 \
  X(Convert)                    \
  X(QuadPairMma)                \
  X(RareInteger)                \
  X(Set)                        \
  X(SmallAtomic)                \
  X(Stochastic)                 \
  X(Surface)                    \
  X(SyncMemory)                 \
  X(Tensor)                     \
  X(TensorMap)                  \
  X(TensorMemory)               \
  X(TensorReduce)               \
  X(Video)                      \
  X(Warp)                       \
  X(WideAtomic)

// Of every instruction set; its rows stand in for those of the same name in a common family.
#define SOFT_REPLACING_FAMILIES(X) X(Cast)
