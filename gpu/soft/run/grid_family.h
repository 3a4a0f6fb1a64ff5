// SPDX-License-Identifier: Apache-2.0
// A grid that the host launched together with those that its kernel launches, and theirs (CUDA C++ Programming Guide,
// "CUDA Dynamic Parallelism": a grid is complete when all its child grids are).
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "gpu/gpu.h"
#include "gpu/soft/run/device_launches.h"
#include "gpu/soft/run/grid.h"

namespace vgpud::soft {

class StateReader;
class StateWriter;

// Children start when their parent's own blocks are done, one after the other in the order of their launches, each with
// all its descendants before the next. So every order that streams could ask for is kept.
class GridFamily final : public GpuGrid {
 public:
  using Make = std::function<std::unique_ptr<Grid>(const CodeFunction& function, const LaunchShape& shape,
                                                   std::span<const std::byte> params)>;
  // `root`: nullptr for a family that has ended. `make`: for the children; as long as the family lives.
  GridFamily(DeviceState& device, std::unique_ptr<Grid> root, Make make);
  GpuResult<Progress> Run(const StopWord& stop, uint64_t budget) override;
  uint64_t short_of() const override { return current_ != nullptr ? current_->short_of() : 0; }
  bool holds_blocks() const override { return current_ != nullptr && current_->holds_blocks(); }
  uint64_t warp_instructions() const override;

  // The grid that runs; nullptr: all have ended.
  const Grid* current() const { return current_.get(); }
  // family_state.cc: what is left to do besides current(), which its owner saves. Load into a family that has not run;
  // its launches are of the program of `current`.
  void Save(StateWriter& out) const;
  void Load(StateReader& in);

 private:
  // False: nobody is left.
  bool Next();

  Make make_;
  DeviceLaunches launches_;
  std::unique_ptr<Grid> current_;
  std::vector<std::deque<DeviceLaunch>> waiting_;  // a generation each
  uint64_t executed_ = 0;                          // by those that are done
};

}  // namespace vgpud::soft
