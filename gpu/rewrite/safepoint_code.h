// SPDX-License-Identifier: Apache-2.0
// The code of safepoints: asking, saving, leaving, and going on.
#pragma once

#include "gpu/rewrite/assembly.h"
#include "gpu/rewrite/block_index.h"
#include "gpu/rewrite/edits.h"
#include "gpu/rewrite/plan.h"
#include "gpu/rewrite/safepoint_plan.h"

namespace vgpud::rewrite {

// $words: the ticket, the block's slot (0xffffffff = none yet), how many threads have come to leave.
inline constexpr uint32_t kSafepointWordBytes = 12;

class SafepointCode {
 public:
  SafepointCode(const ptx::Module& module, const ptx::Function& kernel, const Reach& reach, const SafepointPlan& plan,
                uint32_t poll_after, bool functions_ask);
  // How much each thread and block has to save.
  void Fill(KernelPlan& plan) const;
  // At the begin of the body, behind PutBlockRegisters.
  void PutRegisters(Assembly& out) const;
  // Behind PutTicket: blocks that go on go their way; $ticket becomes a number among the fresh ones.
  void PutFork(Assembly& out) const;
  // In front of the program's own code.
  void PutStart(Assembly& out) const;
  // At the safepoints.
  void EditPoints(std::string_view prefix, Edits& edits) const;
  // At the end of the body.
  void PutEnd(Assembly& out) const;

 private:
  struct Piece {  // of memory that is saved: by words, and bytes behind them
    std::string name;
    uint64_t words;
    uint64_t bytes;
    uint64_t at;  // in its area
  };
  void EditBranch(size_t index, std::string_view prefix, Edits& edits) const;
  void EditBarrier(size_t index, std::string_view prefix, Edits& edits) const;
  void PutPoll(Assembly& out, size_t index) const;
  void PutLeave(Assembly& out, size_t index) const;
  void PutThread(Assembly& out) const;
  void PutRegistersOf(Assembly& out, const Safepoint& point, bool save) const;
  void PutLocal(Assembly& out, bool save) const;
  void PutShared(Assembly& out, bool save) const;
  void PutCopy(Assembly& out, bool save, uint32_t width, uint32_t* label) const;
  void PutLeft(Assembly& out) const;
  void PutGoOn(Assembly& out) const;
  void PutCoordinates(Assembly& out, bool save) const;
  uint32_t RegisterWords(const Safepoint& point) const;

  const ptx::Function& kernel_;
  const SafepointPlan& plan_;
  uint32_t poll_after_;
  bool functions_ask_;
  BlockUse use_;
  std::vector<Piece> local_;   // `at` in words of a thread
  std::vector<Piece> shared_;  // `at` in bytes of the shared area
  bool dynamic_ = false;
  std::string dynamic_name_;
  bool dynamic_words_ = false;
  uint32_t first_register_word_ = 1;
  uint32_t thread_words_ = 1;
  uint64_t shared_bytes_ = 0;
};

}  // namespace vgpud::rewrite
