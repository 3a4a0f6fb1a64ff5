// SPDX-License-Identifier: Apache-2.0
// Memory that executors map, counted for as long as it is held: its pieces take memory here, and guests make them.
#pragma once

#include <cstddef>
#include <utility>

#include "base/result.h"
#include "vfio/memory/dma_table.h"

namespace vgpud::vfio {

// How many pieces a VF may have, and has. Outlives the areas that count in it.
class PieceBudget {
 public:
  explicit PieceBudget(size_t most) : most_(most) {}
  PieceBudget(const PieceBudget&) = delete;
  PieceBudget& operator=(const PieceBudget&) = delete;

 private:
  friend class HeldArea;
  const size_t most_;
  size_t used_ = 0;
};

// An area whose pieces count until it is let go, whatever becomes of it.
class HeldArea {
 public:
  HeldArea() = default;
  //   ENOMEM  `budget` has not so many left
  [[nodiscard]] static Result<HeldArea> Hold(PieceBudget& budget, Area area);
  HeldArea(HeldArea&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), area_(std::exchange(other.area_, {})) {}
  HeldArea& operator=(HeldArea&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(area_, other.area_);
    return *this;
  }
  ~HeldArea() { (void)LetGo(); }

  const Area& operator*() const { return area_; }
  const Area* operator->() const { return &area_; }
  // What it was; nothing is held any more.
  Area LetGo() {
    if (budget_ != nullptr) std::exchange(budget_, nullptr)->used_ -= area_.pieces.size();
    return std::exchange(area_, {});
  }

 private:
  HeldArea(PieceBudget& budget, Area area) : budget_(&budget), area_(std::move(area)) {
    budget.used_ += area_.pieces.size();
  }

  PieceBudget* budget_ = nullptr;
  Area area_;
};

}  // namespace vgpud::vfio
