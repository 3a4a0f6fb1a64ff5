// SPDX-License-Identifier: Apache-2.0
// Rows of the soft GPU's table of instructions that no golden test can run, and why. docs/ptx-coverage.md has this
// list; soft_golden_rows_test holds that it is complete and that nothing in it is needless.
#pragma once

#include <utility>

namespace vgpud::golden {

inline constexpr const char* kByDriver =
    "needs a tensor map, which each driver makes in its own way: `tests/unit/soft/tensor/`";
inline constexpr const char* kTensorMemory =
    "needs several instructions and the warps of a block: `tests/unit/soft/ops/tensor_*_test.cc`";
inline constexpr std::pair<const char*, const char*> kRowsWithout[] = {
    {"brkpt", "ends the context with an error: `tests/unit/soft/run/fault_test.cc`"},
    {"trap", "ends the context with an error: `tests/unit/soft/run/fault_test.cc`"},
    {"mov.f16", "the PTX ISA has no such form, so other drivers refuse it: `tests/unit/soft/ops/rare_test.cc`"},
    {"mov.f16x2", "the PTX ISA has no such form, so other drivers refuse it: `tests/unit/soft/ops/rare_test.cc`"},
    {"selp.pred", "the PTX ISA has no such form, so other drivers refuse it: `tests/unit/soft/ops/rare_test.cc`"},
    {"@cp.async.bulk.tensor.load", kByDriver},
    {"@cp.async.bulk.tensor.load.multicast", kByDriver},
    {"@cp.async.bulk.tensor.store", kByDriver},
    {"@cp.async.bulk.prefetch.tensor", kByDriver},
    {"@cp.reduce.async.bulk.tensor.add", kByDriver},
    {"@cp.reduce.async.bulk.tensor.min", kByDriver},
    {"@cp.reduce.async.bulk.tensor.max", kByDriver},
    {"@cp.reduce.async.bulk.tensor.inc", kByDriver},
    {"@cp.reduce.async.bulk.tensor.dec", kByDriver},
    {"@cp.reduce.async.bulk.tensor.and", kByDriver},
    {"@cp.reduce.async.bulk.tensor.or", kByDriver},
    {"@cp.reduce.async.bulk.tensor.xor", kByDriver},
    {"@tensormap.replace.tile.global_address", kByDriver},
    {"@tensormap.replace.tile.rank", kByDriver},
    {"@tensormap.replace.tile.box_dim", kByDriver},
    {"@tensormap.replace.tile.global_dim", kByDriver},
    {"@tensormap.replace.tile.global_stride", kByDriver},
    {"@tensormap.replace.tile.element_stride", kByDriver},
    {"@tensormap.replace.tile.elemtype", kByDriver},
    {"@tensormap.replace.tile.interleave_layout", kByDriver},
    {"@tensormap.replace.tile.swizzle_mode", kByDriver},
    {"@tensormap.replace.tile.swizzle_atomicity", kByDriver},
    {"@tensormap.replace.tile.fill_mode", kByDriver},
    {"@tensormap.cp_fenceproxy", kByDriver},
    {"@tcgen05.alloc", kTensorMemory},
    {"@tcgen05.dealloc", kTensorMemory},
    {"@tcgen05.relinquish", kTensorMemory},
    {"@tcgen05.ld", kTensorMemory},
    {"@tcgen05.st", kTensorMemory},
    {"@tcgen05.wait", kTensorMemory},
    {"@tcgen05.fence", kTensorMemory},
    {"@tcgen05.mma", kTensorMemory},
    {"@tcgen05.cp", kTensorMemory},
};

}  // namespace vgpud::golden
