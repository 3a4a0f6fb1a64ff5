// SPDX-License-Identifier: Apache-2.0
// One picture of all GPUs and VFs, for vgpuctl top: made of answers of vgpud, and shown as lines of text. Looks up
// names of users, and nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/vgpuctl/ask.h"

namespace vgpud::tools {

struct GpuRow {
  std::string name;
  std::string policy;
  // Parts of the last second, 0..1.
  double run = 0;
  double switching = 0;
  double stalled = 0;
  uint64_t vram_used = 0;
  uint64_t vram_promised = 0;
  uint64_t vram_bytes = 0;  // 0: no limit
};
struct VfRow {
  std::string name;
  std::string gpu;
  std::string state;
  double utilization = 0;  // had the GPU in the last second, 0..1
  double share = 0;        // would have it while all VFs have work
  uint64_t wait_p99_ns = 0;
  uint64_t vram_used = 0;
  uint64_t vram_bytes = 0;
  uint64_t programs = 0;
  uint64_t weight = 0;
  std::string used_by;  // "domain web-7"; "-": not known
};
struct Frame {
  std::vector<GpuRow> gpus;
  std::vector<VfRow> vfs;
};

// Of the answers to GET /v1/gpus, /v1/vfs and /v1/stats.
Frame FrameOf(const CtlJson& gpus, const CtlJson& vfs, const CtlJson& stats);

// Orders the VFs by a column: those with the highest figure first, names from a on.
struct SortColumn {
  const char* name;
  bool (*before)(const VfRow& a, const VfRow& b);
};
const std::vector<SortColumn>& SortColumns();
// nullptr: there is no such column.
const SortColumn* FindSortColumn(const std::string& name);
void Sort(Frame& frame, const SortColumn& by);

// Lines of `width` columns at most: of the GPUs, the heading, and one of each VF.
struct FrameText {
  std::vector<std::string> gpus;
  std::string heading;
  std::vector<std::string> vfs;
};
FrameText TextOf(const Frame& frame, size_t width);
CtlJson JsonOf(const Frame& frame);

}  // namespace vgpud::tools
