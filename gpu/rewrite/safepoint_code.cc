// SPDX-License-Identifier: Apache-2.0
#include "gpu/rewrite/safepoint_code.h"

#include <algorithm>

#include "base/checked.h"
#include "gpu/rewrite/opcodes.h"
#include "gpu/rewrite/slot_layout.h"

namespace vgpud::rewrite {
namespace {

uint64_t RoundedUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

}  // namespace

SafepointCode::SafepointCode(const ptx::Module& module, const ptx::Function& kernel, const Reach& reach,
                             const SafepointPlan& plan, uint32_t poll_after, bool functions_ask)
    : kernel_(kernel),
      plan_(plan),
      poll_after_(poll_after),
      functions_ask_(functions_ask),
      use_(functions_ask ? kWholeBlock : UseOf(kernel)) {
  const auto add = [&](const ptx::Variable& variable, bool shared) {
    const bool words = variable.align >= 4;
    Piece piece{variable.name, words ? variable.bytes / 4 : 0, words ? variable.bytes % 4 : variable.bytes, 0};
    if (shared) {
      piece.at = shared_bytes_;
      shared_bytes_ = RoundedUp(shared_bytes_ + variable.bytes, 4);
      shared_.push_back(std::move(piece));
    } else {
      // A word in front of them: where they lie, which must be the same when the thread goes on.
      piece.at = first_register_word_;
      first_register_word_ += MustFit<uint32_t>(1 + piece.words + piece.bytes);
      local_.push_back(std::move(piece));
    }
  };
  for (const ptx::Variable& variable : kernel.variables)
    if (variable.bytes != 0) add(variable, variable.space == ptx::Space::kShared);
  for (const uint32_t index : reach.shared) add(module.variables[index], true);
  thread_words_ = first_register_word_;
  for (const Safepoint& point : plan.points)
    thread_words_ = std::max(thread_words_, first_register_word_ + RegisterWords(point));
  if (!reach.dynamic_shared) return;
  for (const ptx::Variable& variable : module.variables) {
    if (variable.space != ptx::Space::kShared || (!variable.is_extern && variable.bytes != 0)) continue;
    if (dynamic_ && variable.align < 4) continue;
    dynamic_ = true;
    dynamic_name_ = variable.name;
    dynamic_words_ = variable.align >= 4;
  }
}

uint32_t SafepointCode::RegisterWords(const Safepoint& point) const {
  uint32_t words = 0;
  for (const uint32_t reg : point.alive) words += SizeOf(kernel_.registers[reg].type) == 8 ? 2 : 1;
  return words;
}

void SafepointCode::Fill(KernelPlan& plan) const {
  plan.thread_words = thread_words_;
  plan.shared_bytes = shared_bytes_;
  plan.safepoints = MustFit<uint32_t>(plan_.points.size());
}

void SafepointCode::PutRegisters(Assembly& out) const {
  out.Put(
      ".reg .b32 %$left_to_poll;\n.reg .pred %$seen;\n.reg .pred %$ask;\n.reg .b32 %$slot;\n.reg .b32 %$id;\n"
      ".reg .b32 %$rank;\n.reg .b32 %$ranks;\n.reg .b32 %$thread;\n.reg .b32 %$threads;\n.reg .b64 %$base;\n"
      ".reg .b64 %$at;\n.reg .b64 %$step;\n.reg .b16 %$h;");
}

void SafepointCode::PutFork(Assembly& out) const {
  out.Put("ld.param.u32 %$r1, [$turn+{}];\nsetp.lt.u32 %$p1, %$ticket, %$r1;", offsetof(Turn, going_on));
  out.Put("@%$p1 bra $go_on;\nsub.u32 %$ticket, %$ticket, %$r1;");
}

void SafepointCode::PutStart(Assembly& out) const {
  out.Put("mov.u32 %$left_to_poll, {};", poll_after_);
  // Barriers ask for it.
  if (std::any_of(plan_.points.begin(), plan_.points.end(), [](const Safepoint& point) { return point.is_barrier; }))
    out.Put("setp.ne.u32 %$seen, %$left_to_poll, %$left_to_poll;");
}

// In front of a branch back: the count is part of its condition, so that it costs two instructions each time round.
// Only when the branch is not taken so, one finds out why.
void SafepointCode::EditBranch(size_t k, std::string_view prefix, Edits& edits) const {
  const ptx::Instruction& branch = kernel_.code[plan_.points[k].instruction];
  const size_t begin = edits.OffsetOf(branch.text);
  Assembly before(prefix);
  before.Put("sub.u32 %$left_to_poll, %$left_to_poll, {};", plan_.points[k].weight);
  if (branch.opcode != "bra") {
    before.Put("setp.lt.s32 %$ask, %$left_to_poll, 0;\n@%$ask bra $poll{0};\n$on{0}:", k);
    edits.Insert(begin, std::move(before).Take());
    return;
  }
  const bool guarded = branch.guard != ptx::kNoIndex;
  const std::string_view guard = guarded ? std::string_view(kernel_.registers[branch.guard].name) : "";
  const char* sign = branch.guard_negated ? "!" : "";
  before.Put("setp.ge{}.s32 %$ask, %$left_to_poll, 0{}{}{};", guarded ? ".and" : "", guarded ? ", " : "",
             guarded ? sign : "", guard);
  before.PutRaw(fmt::format("@%{}ask bra {};\n", prefix, branch.operands[0].name));
  if (guarded) before.PutRaw(fmt::format("@{}{} bra {}past{};\n", branch.guard_negated ? "" : "!", guard, prefix, k));
  before.Put("bra $poll{0};\n$on{0}:", k);
  edits.Insert(begin, std::move(before).Take());
  if (guarded) edits.Insert(begin + branch.text.size() + 1, fmt::format("\n{}past{}:\n", prefix, k));
}

// In place of a barrier, or in front of one that reduces.
void SafepointCode::EditBarrier(size_t k, std::string_view prefix, Edits& edits) const {
  const Safepoint& point = plan_.points[k];
  const ptx::Instruction& barrier = kernel_.code[point.instruction];
  const size_t begin = edits.OffsetOf(barrier.text);
  Assembly before(prefix);
  const bool guarded = barrier.guard != ptx::kNoIndex;
  if (guarded)
    before.PutRaw(fmt::format("@{}{} bra {}skip{};\n", barrier.guard_negated ? "" : "!",
                              kernel_.registers[barrier.guard].name, prefix, k));
  if (point.polls) {
    before.Put("sub.u32 %$left_to_poll, %$left_to_poll, {};\nsetp.lt.s32 %$ask, %$left_to_poll, 0;", point.weight);
    before.Put("@%$ask bra $poll{};", k);
  }
  before.Put("$on{}:\nbarrier.red.or.pred %$ask, {}, %$seen;", k, plan_.barrier);
  const std::string leave = fmt::format("@%{0}ask bra {0}leave{1}", prefix, k);
  if (HasModifier(barrier, "red")) {
    // Its own guard is left to it.
    before.PutRaw(leave + ";\n");
    if (guarded) before.Put("$skip{}:", k);
    edits.Insert(begin, std::move(before).Take());
    return;
  }
  edits.Insert(begin, std::move(before).Take());
  edits.Replace(barrier.text, leave);
  if (guarded) edits.Insert(begin + barrier.text.size() + 1, fmt::format("\n{}skip{}:\n", prefix, k));
}

void SafepointCode::EditPoints(std::string_view prefix, Edits& edits) const {
  for (size_t k = 0; k < plan_.points.size(); ++k)
    plan_.points[k].is_barrier ? EditBarrier(k, prefix, edits) : EditBranch(k, prefix, edits);
}

void SafepointCode::PutPoll(Assembly& out, size_t k) const {
  const Safepoint& point = plan_.points[k];
  out.Put("$poll{}:\nmov.u32 %$left_to_poll, {};\nld.param.u64 %$d0, [$turn+{}];", k, poll_after_,
          offsetof(Turn, stop_word));
  out.Put("ld.volatile.global.u32 %$r0, [%$d0];\nld.param.u32 %$r1, [$turn+{}];", offsetof(Turn, expected));
  // Without slots nobody leaves in the middle.
  out.Put("ld.param.u32 %$r2, [$turn+{}];\nsetp.ne.u32 %$ask, %$r2, 0;", offsetof(Turn, slots));
  out.Put("setp.ne.and.u32 %${}, %$r0, %$r1, %$ask;", point.is_barrier ? "seen" : "ask");
  if (point.is_barrier) {
    out.Put("bra $on{};", k);
    return;
  }
  if (plan_.leaving == Leaving::kTogether) out.Put("barrier.red.or.pred %$ask, {}, %$ask;", plan_.barrier);
  out.Put("@!%$ask bra $on{};", k);
  // The others hear of it where they wait for this one.
  if (plan_.leaving == Leaving::kAlone) out.Put("barrier.red.or.pred %$ask, {}, %$ask;", plan_.barrier);
}

void SafepointCode::PutThread(Assembly& out) const {
  out.Put("mov.u32 %$r0, %tid.z;\nmov.u32 %$r1, %ntid.y;\nmov.u32 %$r2, %tid.y;\nmad.lo.u32 %$r0, %$r0, %$r1, %$r2;");
  out.Put("mov.u32 %$r2, %ntid.x;\nmov.u32 %$r3, %tid.x;\nmad.lo.u32 %$thread, %$r0, %$r2, %$r3;");
  out.Put("mul.lo.u32 %$r1, %$r1, %$r2;\nmov.u32 %$r2, %ntid.z;\nmul.lo.u32 %$threads, %$r1, %$r2;");
  out.Put("ld.param.u64 %$d0, [$turn+{}];\nld.param.u64 %$d1, [$turn+{}];\ncvt.u64.u32 %$d2, %$slot;",
          offsetof(Turn, saved), offsetof(Turn, slot_bytes));
  out.Put("mad.lo.u64 %$base, %$d2, %$d1, %$d0;\nmul.wide.u32 %$step, %$threads, 4;");
}

void SafepointCode::PutRegistersOf(Assembly& out, const Safepoint& point, bool save) const {
  // %$at: word `first_register_word_` of the thread, then on.
  out.Put("mul.wide.u32 %$d0, %$thread, 4;\nadd.u64 %$at, %$base, %$d0;\nmul.wide.u32 %$d0, %$threads, {};",
          4 * first_register_word_);
  out.Put("add.u64 %$at, %$at, %$d0;\nadd.u64 %$at, %$at, {};", kSlotHeaderBytes);
  for (const uint32_t index : point.alive) {
    const ptx::Register& reg = kernel_.registers[index];
    const uint32_t bytes = SizeOf(reg.type);
    if (reg.type == ptx::Type::kPred) {
      if (save)
        out.Put("selp.u32 %$r0, 1, 0, {};\nst.global.u32 [%$at], %$r0;", reg.name);
      else
        out.Put("ld.global.u32 %$r0, [%$at];\nsetp.ne.u32 {}, %$r0, 0;", reg.name);
    } else if (bytes == 8) {
      if (save)
        out.Put(
            "mov.b64 {{%$r0, %$r1}}, {};\nst.global.u32 [%$at], %$r0;\nadd.u64 %$at, %$at, %$step;\n"
            "st.global.u32 [%$at], %$r1;",
            reg.name);
      else
        out.Put(
            "ld.global.u32 %$r0, [%$at];\nadd.u64 %$at, %$at, %$step;\nld.global.u32 %$r1, [%$at];\n"
            "mov.b64 {}, {{%$r0, %$r1}};",
            reg.name);
    } else {
      if (save)
        out.Put("st.global.b{} [%$at], {};", 8 * bytes, reg.name);
      else
        out.Put("ld.global.b{} {}, [%$at];", 8 * bytes, reg.name);
    }
    out.Put("add.u64 %$at, %$at, %$step;");
  }
}

void SafepointCode::PutLocal(Assembly& out, bool save) const {
  uint32_t label = 0;
  for (const Piece& piece : local_) {
    out.Put("mul.wide.u32 %$d0, %$thread, 4;\nadd.u64 %$at, %$base, %$d0;\nmul.wide.u32 %$d0, %$threads, {};",
            4 * piece.at);
    out.Put("add.u64 %$at, %$at, %$d0;\nadd.u64 %$at, %$at, {};\nmov.u64 %$d1, {};\ncvt.u32.u64 %$r1, %$d1;",
            kSlotHeaderBytes, piece.name);
    if (save) {
      out.Put("st.global.u32 [%$at], %$r1;");
    } else {
      // Its addresses may be in registers and in memory.
      out.Put("ld.global.u32 %$r0, [%$at];\nsetp.ne.u32 %$p1, %$r0, %$r1;\n@%$p1 trap;");
    }
    out.Put("add.u64 %$at, %$at, %$step;");
    for (const uint32_t width : {4u, 1u}) {
      const uint64_t count = width == 4 ? piece.words : piece.bytes;
      if (count == 0) continue;
      const char* name = save ? "save" : "load";
      out.Put("mov.u32 %$r1, {};\n${}_local{}:", count, name, label);
      if (width == 4)
        out.Put(save ? "ld.local.u32 %$r0, [%$d1];\nst.global.u32 [%$at], %$r0;"
                     : "ld.global.u32 %$r0, [%$at];\nst.local.u32 [%$d1], %$r0;");
      else
        out.Put(save ? "ld.local.u8 %$h, [%$d1];\nst.global.u8 [%$at], %$h;"
                     : "ld.global.u8 %$h, [%$at];\nst.local.u8 [%$d1], %$h;");
      out.Put("add.u64 %$at, %$at, %$step;\nadd.u64 %$d1, %$d1, {};\nsub.u32 %$r1, %$r1, 1;", width);
      out.Put("setp.ne.u32 %$p1, %$r1, 0;\n@%$p1 bra ${}_local{};", name, label++);
    }
  }
}

// Elements rank, rank + ranks, ... of a piece, of which there are %$r4; %$r5 = where in shared memory, %$d1 = where in
// the slot.
void SafepointCode::PutCopy(Assembly& out, bool save, uint32_t width, uint32_t* label) const {
  const char* name = save ? "save" : "load";
  out.Put("mov.u32 %$r2, %$rank;\n${0}_shared{1}:\nsetp.ge.u32 %$p1, %$r2, %$r4;\n@%$p1 bra ${0}d_shared{1};", name,
          *label);
  out.Put("mad.lo.u32 %$r3, %$r2, {0}, %$r5;\nmul.wide.u32 %$d2, %$r2, {0};\nadd.u64 %$d2, %$d1, %$d2;", width);
  if (width == 4)
    out.Put(save ? "ld.shared.u32 %$r0, [%$r3];\nst.global.u32 [%$d2], %$r0;"
                 : "ld.global.u32 %$r0, [%$d2];\nst.shared.u32 [%$r3], %$r0;");
  else
    out.Put(save ? "ld.shared.u8 %$h, [%$r3];\nst.global.u8 [%$d2], %$h;"
                 : "ld.global.u8 %$h, [%$d2];\nst.shared.u8 [%$r3], %$h;");
  out.Put("add.u32 %$r2, %$r2, %$ranks;\nbra ${0}_shared{1};\n${0}d_shared{1}:", name, (*label)++);
}

void SafepointCode::PutShared(Assembly& out, bool save) const {
  uint32_t label = 0;
  // %$at: the shared area of the slot.
  out.Put("mul.wide.u32 %$d0, %$threads, {};", 4 * thread_words_);
  out.Put("add.u64 %$d0, %$d0, 15;\nand.b64 %$d0, %$d0, -16;\nadd.u64 %$at, %$base, %$d0;\nadd.u64 %$at, %$at, {};",
          kSlotHeaderBytes);
  const auto copy = [&](const Piece& piece, uint64_t skip, uint32_t width, const std::string& count) {
    out.Put("mov.u32 %$r4, " + count + ";");
    out.Put("mov.u32 %$r5, {};", piece.name);
    if (skip != 0) out.Put("add.u32 %$r5, %$r5, {};", skip);
    out.Put("add.u64 %$d1, %$at, {};", piece.at + skip);
    PutCopy(out, save, width, &label);
  };
  for (const Piece& piece : shared_) {
    if (piece.words != 0) copy(piece, 0, 4, std::to_string(piece.words));
    if (piece.bytes != 0) copy(piece, 4 * piece.words, 1, std::to_string(piece.bytes));
  }
  if (!dynamic_) return;
  const Piece piece{dynamic_name_, 0, 0, RoundedUp(shared_bytes_, 16)};
  out.Put("ld.param.u32 %$r6, [$turn+{}];", offsetof(Turn, dynamic_shared));
  if (dynamic_words_) {
    out.Put("shr.u32 %$r7, %$r6, 2;");
    copy(piece, 0, 4, "%$r7");
    // The bytes behind the last whole word.
    out.Put("and.b32 %$r4, %$r6, 3;\nand.b32 %$r7, %$r6, -4;\nmov.u32 %$r5, {};\nadd.u32 %$r5, %$r5, %$r7;",
            piece.name);
    out.Put("cvt.u64.u32 %$d1, %$r7;\nadd.u64 %$d1, %$d1, %$at;\nadd.u64 %$d1, %$d1, {};", piece.at);
    PutCopy(out, save, 1, &label);
  } else {
    copy(piece, 0, 1, "%$r6");
  }
}

void SafepointCode::PutCoordinates(Assembly& out, bool save) const {
  for (size_t i = 0; i < 3; ++i) {
    if (!use_.block[i]) continue;
    if (save)
      out.Put("st.global.u32 [%$base+{0}], %$block{1};", kSlotBlock + 4 * i, i);
    else
      out.Put("ld.global.u32 %$block{1}, [%$base+{0}];", kSlotBlock + 4 * i, i);
  }
}

// All threads of the block that have not ended come here, each once.
void SafepointCode::PutLeave(Assembly& out, size_t k) const {
  const uint32_t id = plan_.barrier;
  out.Put("$leave{}:", k);
  if (plan_.waits_for_copies) out.Put("cp.async.wait_all;");
  out.Put("atom.shared.add.u32 %$rank, [$words+8], 1;\nbarrier.sync {};\nld.shared.u32 %$ranks, [$words+8];", id);
  out.Put("setp.ne.u32 %$p0, %$rank, 0;\n@%$p0 bra $know{0};\nld.shared.u32 %$slot, [$words+4];", k);
  out.Put("ld.param.u64 %$d0, [$turn+{}];\nld.param.u32 %$r1, [$turn+{}];", offsetof(Turn, control),
          offsetof(Turn, slots));
  out.Put("setp.ne.u32 %$p1, %$slot, 0xffffffff;\n@%$p1 bra $have{};\natom.global.add.u32 %$r2, [%$d0+{}], 1;", k,
          offsetof(Control, claimed));
  out.Put("ld.param.u32 %$r3, [$turn+{}];\nadd.u32 %$r2, %$r2, %$r3;\nsetp.ge.u32 %$p1, %$r2, %$r1;",
          offsetof(Turn, going_on));
  out.Put("@%$p1 bra $know{};", k);
  out.Put("mul.wide.u32 %$d1, %$r2, 4;\nadd.u64 %$d1, %$d0, %$d1;\nld.global.u32 %$slot, [%$d1+{}];", sizeof(Control));
  out.Put("st.shared.u32 [$words+4], %$slot;\n$have{}:\nadd.u32 %$r2, %$r1, %$slot;\nmul.wide.u32 %$d1, %$r2, 4;", k);
  out.Put("add.u64 %$d1, %$d0, %$d1;\nmov.u32 %$r3, 1;\nst.global.u32 [%$d1+{}], %$r3;", sizeof(Control));
  out.Put("$know{}:\nbarrier.sync {};\nld.shared.u32 %$slot, [$words+4];", k, id);
  // No slot is left: the block goes on to its end, or its next turn.
  out.Put("setp.ne.u32 %$p1, %$slot, 0xffffffff;\n@%$p1 bra $leaves{};\n@%$p0 bra $stays{};", k, k);
  out.Put("mov.u32 %$r2, 0;\nst.shared.u32 [$words+8], %$r2;\n$stays{}:\nbarrier.sync {};", k, id);
  out.Put("mov.u32 %$left_to_poll, 0x7fffffff;\nsetp.ne.u32 %$seen, %$rank, %$rank;\nbra $on{0};\n$leaves{0}:", k);
  PutThread(out);
  PutRegistersOf(out, plan_.points[k], true);
  out.Put("mov.u32 %$id, {};\nbra $left;", k + 1);
}

void SafepointCode::PutLeft(Assembly& out) const {
  // Threads that have ended do not come here: their words say so.
  out.Put("$left:\nmov.u32 %$r0, %$rank;\nmov.u32 %$r1, 0;\n$clear:\nsetp.ge.u32 %$p1, %$r0, %$threads;");
  out.Put("@%$p1 bra $cleared;\nmul.wide.u32 %$d0, %$r0, 4;\nadd.u64 %$d0, %$base, %$d0;");
  out.Put("st.global.u32 [%$d0+{}], %$r1;\nadd.u32 %$r0, %$r0, %$ranks;\nbra $clear;\n$cleared:\nbarrier.sync {};",
          kSlotHeaderBytes, plan_.barrier);
  out.Put("mul.wide.u32 %$d0, %$thread, 4;\nadd.u64 %$d0, %$base, %$d0;\nst.global.u32 [%$d0+{}], %$id;",
          kSlotHeaderBytes);
  PutLocal(out, true);
  PutShared(out, true);
  out.Put("setp.ne.u32 %$p1, %$rank, 0;\n@%$p1 exit;");
  PutCoordinates(out, true);
  out.Put("exit;");
}

void SafepointCode::PutGoOn(Assembly& out) const {
  out.Put("$go_on:\nld.param.u64 %$d0, [$turn+{}];\nmul.wide.u32 %$d1, %$ticket, 4;\nadd.u64 %$d1, %$d0, %$d1;",
          offsetof(Turn, control));
  out.Put("ld.global.u32 %$slot, [%$d1+{}];\n@%$p0 bra $follow;", sizeof(Control));
  out.Put("st.shared.u32 [$words+4], %$slot;\nld.param.u32 %$r1, [$turn+{}];\nadd.u32 %$r1, %$r1, %$slot;",
          offsetof(Turn, slots));
  out.Put("mul.wide.u32 %$d1, %$r1, 4;\nadd.u64 %$d1, %$d0, %$d1;\nmov.u32 %$r1, 0;\nst.global.u32 [%$d1+{}], %$r1;",
          sizeof(Control));
  out.Put("$follow:");
  PutThread(out);
  PutCoordinates(out, false);
  PutGrid(out, use_);
  if (functions_ask_) PutBlockForFunctions(out, true);
  out.Put("mov.u32 %$rank, %$thread;\nmov.u32 %$ranks, %$threads;");
  PutShared(out, false);
  out.Put(
      "barrier.sync 0;\nmul.wide.u32 %$d0, %$thread, 4;\nadd.u64 %$d0, %$base, %$d0;\nld.global.u32 %$id, [%$d0+{}];",
      kSlotHeaderBytes);
  out.Put("setp.eq.u32 %$p1, %$id, 0;\n@%$p1 exit;");
  PutLocal(out, false);
  PutStart(out);
  for (size_t k = 0; k < plan_.points.size(); ++k)
    out.Put("setp.eq.u32 %$p1, %$id, {};\n@%$p1 bra $again{};", k + 1, k);
  out.Put("trap;");
  for (size_t k = 0; k < plan_.points.size(); ++k) {
    out.Put("$again{}:", k);
    PutRegistersOf(out, plan_.points[k], false);
    out.Put("bra $on{};", k);
  }
}

void SafepointCode::PutEnd(Assembly& out) const {
  out.Put("\nexit;");
  for (size_t k = 0; k < plan_.points.size(); ++k) {
    if (plan_.points[k].polls) PutPoll(out, k);
    PutLeave(out, k);
  }
  PutLeft(out);
  PutGoOn(out);
}

}  // namespace vgpud::rewrite
