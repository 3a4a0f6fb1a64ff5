// SPDX-License-Identifier: Apache-2.0
// CTAs of a grid that are resident together and take turns on one host thread: which there are, whose turn it is. The
// CTAs of a cluster come, move to another set and go together.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "gpu/gpu.h"
#include "gpu/soft/code/frame_layout.h"
#include "gpu/soft/code/program.h"
#include "gpu/soft/run/device_state.h"
#include "gpu/soft/run/instruction_profile.h"
#include "gpu/soft/run/warp.h"

namespace vgpud::soft {

class StateReader;
class StateWriter;

// A set admits CTAs in the order in which the grid has them; at most this many are resident. A resident one stays until
// it is done.
inline constexpr uint32_t kMaxResidentCtas = 16;
// Fewer if their registers and local memory take more than this.
inline constexpr size_t kMaxResidentBytes = size_t{1} << 30;
// Warp instructions until the next warp of the CTA, and until the next CTA, has its turn.
inline constexpr uint64_t kWarpSlice = 4096;
inline constexpr uint64_t kCtaSlice = 65536;

// Where what makes up a CTA lies in its memory.
struct CtaLayout {
  uint32_t own_shared;    // static and dynamic
  uint32_t reserved_at;   // where the reserved part begins, if the kernel looks for it
  uint32_t shared_bytes;  // that the kernel sees
  size_t stack;           // of a warp
  size_t shared;          // rounded up, and never nothing
  size_t per_warp;
  size_t warps;   // all of them
  size_t tensor;  // bytes of tensor memory, or none
  size_t bytes;   // of host memory that a CTA takes
};
// `stack_bytes`: of a warp.
CtaLayout LayOutCta(const CodeFunction& function, const LaunchShape& shape, uint32_t stack_bytes);

// What all CTAs of a grid share and nothing changes while it runs.
struct GridFacts {
  std::shared_ptr<const Program> program;
  const CodeFunction& function;
  LaunchShape shape;
  DeviceState& device;
  std::optional<GpuVa> workspace;  // of a cooperative launch
  FrameLayout frames;
  CtaLayout layout;
  uint32_t threads;  // per CTA
  uint32_t warps_per_cta;
  uint64_t ctas;
  uint32_t cluster[3];  // CTAs of a cluster
  uint32_t cluster_size;
  size_t max_resident;  // CTAs of one set
  std::vector<std::byte> params;
  std::unique_ptr<std::byte[]> area_memory;
  std::byte* area;  // aligned view of it
};

class alignas(64) CtaSet {  // no cache line in common with the set of another thread
 public:
  CtaSet(Grid& grid, const GridFacts& facts) : grid_(grid), facts_(facts) {}
  ~CtaSet();
  CtaSet(const CtaSet&) = delete;
  CtaSet& operator=(const CtaSet&) = delete;

  // Admits and advances CTAs until all are done and the grid has no more, the stop word has changed (at most the warp
  // instruction in flight was finished after that), `budget` warp instructions have run, or the grid has a fault
  // (kYield then). One thread at a time; the state is complete between two calls. What it reaches of the grid and the
  // device while it runs may be reached by other sets as well. kShort: it has no CTA, the grid has more to start, and
  // there is no host memory for one.
  GpuGrid::Progress Run(const StopWord& stop, uint64_t budget);

  // Moves a resident cluster whose turn it is not to `to`; false: there is none. While neither set runs.
  bool GiveTo(CtaSet& to);
  size_t resident() const { return resident_.size(); }
  // Does it hold memory for CTAs? One that does can run all that the grid has left.
  bool holds_blocks() const { return held_blocks() != 0; }
  size_t held_blocks() const { return resident_.size() + spare_.size(); }
  // cta_set_state.cc. Load into a fresh set; `started`: CTAs that the grid has handed out.
  void Save(StateWriter& out) const;
  void Load(StateReader& in, uint64_t started);

  uint64_t warp_instructions() const { return executed_; }
  // See Grid::CountThreads.
  void CountThreads() { count_threads_ = true; }
  uint64_t thread_instructions() const { return thread_instructions_; }

 private:
  bool AdmitNext();
  // Makes memory for blocks; for the first ones one by one, as long as the stop word has not changed.
  bool HaveSpare();
  void Start(Cta& cta, uint64_t order) const;
  // The resident CTAs from `first` on are a cluster.
  void JoinCluster(size_t first);
  bool Retire(size_t first);
  void SaveCta(StateWriter& out, const Cta& cta) const;
  void LoadCta(StateReader& in, Cta& cta, uint64_t started) const;
  void LoadCluster(StateReader& in, size_t first);
  void InitWarp(Cta& cta, uint32_t index) const;
  std::unique_ptr<Cta> MakeCta() const;
  bool PickWarp();
  bool PickWarpOf(Cta& cta);
  void NextCta();
  // Runs at most `left` instructions of `w` from `i` on, as Run does; counts each. Returns the next one.
  // As the loop of Run, with a look after each instruction: for a profile, a trip or both.
  const Inst* RunWatched(Warp& w, const Inst* i, const StopWord& stop, uint64_t& left);
  // What follows from warp_ having run `ran` instructions and left off at w.pc.
  void AfterRun(Warp& w, uint64_t ran);

  Grid& grid_;
  const GridFacts& facts_;
  const StopWord* stop_ = nullptr;  // of the Run() that goes on
  std::vector<std::unique_ptr<Cta>> resident_;
  std::vector<std::unique_ptr<Cta>> spare_;
  bool short_ = false;  // the last CTA that it could have admitted found no host memory
  size_t current_ = 0;
  Warp* warp_ = nullptr;  // whose turn it is, of resident_[current_]
  uint64_t executed_ = 0;
  bool count_threads_ = false;
  uint64_t thread_instructions_ = 0;
  std::vector<InstructionCount> counts_;  // in the profile mode, by place in the code
};

}  // namespace vgpud::soft
