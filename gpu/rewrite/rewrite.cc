// SPDX-License-Identifier: Apache-2.0
#include "gpu/rewrite/rewrite.h"

#include <algorithm>

#include "base/checked.h"
#include "gpu/ptx/parser.h"
#include "gpu/rewrite/assembly.h"
#include "gpu/rewrite/block_index.h"
#include "gpu/rewrite/bounds.h"
#include "gpu/rewrite/edits.h"
#include "gpu/rewrite/facts.h"
#include "gpu/rewrite/limits.h"
#include "gpu/rewrite/safepoint_code.h"
#include "gpu/rewrite/safepoint_plan.h"

namespace vgpud::rewrite {
namespace {

// One kernel on its way.
struct Kernel {
  uint32_t index;
  Reach reach;
  bool asks = false;  // a function that it may call reads %ctaid or %nctaid
  KernelPlan plan;
};

class Rewriter {
 public:
  Rewriter(const ptx::Module& module, std::string_view prefix, const Options& options)
      : module_(module),
        prefix_(prefix),
        options_(options),
        facts_(module),
        budget_(Limits::kAnalysisSteps),
        edits_(module.text) {}
  Rewritten Run() {
    std::vector<Kernel> kernels;
    for (const auto& function : module_.functions) loops_.push_back(HasLoops(*function));
    for (uint32_t i = 0; i < module_.functions.size(); ++i)
      if (const ptx::Function& function = *module_.functions[i]; function.is_kernel && !function.is_extern)
        kernels.push_back(Look(i));
    if (!facts_.whole().empty()) {
      for (Kernel& kernel : kernels) Refuse(kernel, facts_.whole());
      return {module_.text, Plans(std::move(kernels))};
    }
    LetFunctionsAsk(kernels);
    bool any = false;
    for (Kernel& kernel : kernels) any |= Touch(kernel);
    if (!any) return {module_.text, Plans(std::move(kernels))};
    if (functions_ask_) RewriteFunctions(kernels);
    std::string originals;
    for (const Kernel& kernel : kernels)
      if (!kernel.plan.piece_entry.empty()) originals += PieceOf(kernel);
    if (options_.keep_originals)
      for (const Kernel& kernel : kernels) originals += OriginalOf(kernel);
    return {std::move(edits_).Apply() + originals, Plans(std::move(kernels))};
  }

 private:
  static std::vector<KernelPlan> Plans(std::vector<Kernel>&& kernels) {
    std::vector<KernelPlan> plans;
    for (Kernel& kernel : kernels) plans.push_back(std::move(kernel.plan));
    return plans;
  }
  static void Refuse(Kernel& kernel, std::string why) {
    kernel.plan.rung = Rung::kNone;
    kernel.plan.reasons.push_back(std::move(why));
  }
  const ptx::Function& FunctionOf(const Kernel& kernel) const { return *module_.functions[kernel.index]; }
  static bool HasRoom(const Kernel& kernel, uint32_t bytes) {
    return kernel.reach.static_shared_bytes + bytes <= Limits::kStaticSharedBytes;
  }

  Kernel Look(uint32_t index) {
    Kernel kernel;
    kernel.index = index;
    kernel.reach = facts_.ReachOf(index);
    kernel.plan.name = kernel.plan.entry = module_.functions[index]->name;
    kernel.asks = kernel.reach.too_large || std::any_of(kernel.reach.functions.begin(), kernel.reach.functions.end(),
                                                        [&](uint32_t callee) { return facts_.of(callee).reads_block; });
    kernel.plan.rung = Rung::kBlocks;
    const ptx::Function& function = FunctionOf(kernel);
    const uint32_t most = module_.version >= 81 ? Limits::kParamBytes : Limits::kOldParamBytes;
    const uint64_t turn_offset = (uint64_t{function.param_bytes} + 7) / 8 * 8;
    if (kernel.reach.too_large) Refuse(kernel, "it may call too many functions");
    if (!kernel.reach.grid_wide.empty()) Refuse(kernel, kernel.reach.grid_wide);
    if (function.is_redeclared) Refuse(kernel, "it is declared more than once");
    if (turn_offset + sizeof(Turn) > most) Refuse(kernel, "no parameter can be added: its own take all the room");
    if (options_.best == Rung::kNone) Refuse(kernel, "it is left as it is");
    kernel.plan.turn_offset = MustFit<uint32_t>(turn_offset);
    return kernel;
  }

  // Device functions read their block from shared memory, if all kernels can leave it there.
  void LetFunctionsAsk(std::vector<Kernel>& kernels) {
    const auto asks = [](const Kernel& kernel) { return kernel.asks; };
    functions_ask_ = std::any_of(kernels.begin(), kernels.end(), asks);
    const bool room = std::all_of(kernels.begin(), kernels.end(), [&](const Kernel& kernel) {
      return !kernel.asks || HasRoom(kernel, kBlockVariableBytes + kWordBytes);
    });
    if (room) return;
    functions_ask_ = false;
    for (Kernel& kernel : kernels)
      if (kernel.asks) Refuse(kernel, "a function that it calls reads %ctaid or %nctaid, and no shared memory is left");
  }

  // Where it can be left; nothing: the reason is noted.
  std::optional<SafepointPlan> PlanOf(Kernel& kernel) {
    if (options_.best != Rung::kSafepoints) return std::nullopt;
    std::string reason;
    std::optional<SafepointPlan> plan;
    const bool loops = loops_[kernel.index] || std::any_of(kernel.reach.functions.begin(), kernel.reach.functions.end(),
                                                           [&](uint32_t callee) { return loops_[callee]; });
    Bound bound;
    if (!loops || options_.pieces) bound = BoundOf(module_, FunctionOf(kernel), kMostOfShort, budget_);
    const uint32_t most = bound.needs_launch() ? 0 : Evaluate(bound, {}, {1, 1, 1});
    if (most != 0 && (!loops || most <= kMostOfShort)) {
      kernel.plan.most_instructions = most;
      kernel.plan.complete = true;
      return std::nullopt;
    }
    const uint64_t text_bytes = FunctionOf(kernel).places.body_close - FunctionOf(kernel).places.name_end;
    if (bound.needs_launch() && !kernel.asks && text_bytes <= growth_left_) {
      growth_left_ -= text_bytes;
      kernel.plan.bound = std::move(bound);
      kernel.plan.piece_entry = fmt::format("{}${}piece", kernel.plan.name, prefix_);
    }
    if (module_.version < 60 || module_.target.sm < 70) {
      reason = "it is made for GPUs before 7.0";
    } else if (!HasRoom(kernel, kSafepointWordBytes + (kernel.asks ? kBlockVariableBytes : 0))) {
      reason = "no shared memory is left";
    } else {
      plan = PlanSafepoints(module_, FunctionOf(kernel), kernel.reach, budget_, &reason);
    }
    if (plan && TextOf(kernel, *plan) > growth_left_) {
      reason = "its text would become too long";
      plan.reset();
    }
    if (plan) growth_left_ -= TextOf(kernel, *plan);
    kernel.plan.complete = plan ? plan->reasons.empty() : reason.empty();
    if (plan) kernel.plan.reasons = plan->reasons;
    if (!plan && !reason.empty()) kernel.plan.reasons.push_back(reason);
    return plan;
  }

  // At most so many bytes are added to its text.
  uint64_t TextOf(const Kernel& kernel, const SafepointPlan& plan) const {
    constexpr uint64_t kOfKernel = 16 << 10, kOfPoint = 8 << 10, kOfVariable = 3 << 10, kOfRegister = 400, kNames = 8;
    const ptx::Function& function = FunctionOf(kernel);
    uint64_t bytes = kOfKernel;
    for (const Safepoint& point : plan.points) {
      bytes += kOfPoint + kNames * function.code[point.instruction].text.size();
      for (const uint32_t reg : point.alive) bytes += kOfRegister + kNames * function.registers[reg].name.size();
    }
    const auto add = [&](const ptx::Variable& variable) { bytes += kOfVariable + kNames * variable.name.size(); };
    for (const ptx::Variable& variable : function.variables) add(variable);
    for (const uint32_t index : kernel.reach.shared) add(module_.variables[index]);
    return bytes;
  }

  // False: its text stays.
  bool Touch(Kernel& kernel) {
    if (kernel.plan.rung == Rung::kNone) return false;
    const ptx::Function& function = FunctionOf(kernel);
    const auto plan = PlanOf(kernel);
    std::optional<SafepointCode> code;
    Assembly end(prefix_);
    if (plan) {
      code.emplace(module_, function, kernel.reach, *plan, std::min(options_.poll_after, Limits::kPollAfter),
                   kernel.asks);
      code->PutEnd(end);
    }
    const BlockUse use = kernel.asks ? kWholeBlock : UseOf(function);
    const uint32_t own_words = code ? kSafepointWordBytes : 0, all_words = own_words + BytesOfFirst(use);
    const bool by_first = HasRoom(kernel, all_words + (kernel.asks ? kBlockVariableBytes : 0));
    kernel.plan.pieces = options_.pieces && kernel.plan.most_instructions != 0 && !kernel.asks;
    const uint32_t words = kernel.plan.pieces ? 0 : by_first ? all_words : code ? kSafepointWordBytes : kWordBytes;
    const bool shared = HasRoom(kernel, words);
    if (shared) kernel.plan.added_shared_bytes += words;
    if (options_.keep_originals) {
      const std::string behind = fmt::format("${}turns", prefix_);
      kernel.plan.entry += behind;
      edits_.Insert(function.places.name_end, behind);
    }
    AddParameter(function, edits_, 0);
    if (options_.most_threads != nullptr && function.max_threads[0] == 0)
      if (const auto most = options_.most_threads->find(function.name); most != options_.most_threads->end())
        edits_.Insert(function.places.body_open, fmt::format("\n.maxntid {}\n", most->second));
    Assembly out(prefix_);
    PutBlockRegisters(out);
    if (code) code->PutRegisters(out);
    if (kernel.plan.pieces) {
      PutBlockOfPiece(out, use);
    } else if (by_first) {
      PutBlockOfFirst(out, use, own_words, code.has_value());
      if (code) PutOther(end);
    } else {
      PutTicket(out, shared ? Telling::kShared : Telling::kBarriers, shared ? words : 0);
      if (code) code->PutFork(out);
      out.Put("ld.param.u32 %$r1, [$turn+{}];\nsetp.ge.u32 %$p1, %$ticket, %$r1;\n@%$p1 exit;", offsetof(Turn, blocks));
      PutBlockFromTicket(out, use);
    }
    PutGrid(out, use);
    if (kernel.asks) PutBlockForFunctions(out, true);
    if (code) code->PutStart(out);
    edits_.Insert(function.places.body_open + 1, std::move(out).Take());
    ReplaceReadsInKernel(function, prefix_, edits_);
    if (!code) return true;
    kernel.plan.rung = Rung::kSafepoints;
    code->Fill(kernel.plan);
    code->EditPoints(prefix_, edits_);
    edits_.Insert(function.places.body_close, std::move(end).Take());
    return true;
  }

  // The kernel as the program has it, once more; nothing when it was not touched.
  std::string OriginalOf(const Kernel& kernel) const {
    if (kernel.plan.rung == Rung::kNone) return {};
    const ptx::Function& function = FunctionOf(kernel);
    const ptx::Places& places = function.places;
    const std::string_view text = module_.text;
    Assembly inside(prefix_);
    if (functions_ask_ && kernel.asks) PutBlockForFunctions(inside, false);
    const char* linkage = function.is_weak ? ".weak " : function.is_visible ? ".visible " : "";
    return fmt::format("\n{}.entry {}{}{}{}\n", linkage, function.name,
                       text.substr(places.name_end, places.body_open + 1 - places.name_end), std::move(inside).Take(),
                       text.substr(places.body_open + 1, places.body_close - places.body_open));
  }

  // Beside the kernel that can be left in the middle one that goes in pieces: for launches that turn out to be short.
  std::string PieceOf(const Kernel& kernel) const {
    const ptx::Function& function = FunctionOf(kernel);
    const ptx::Places& places = function.places;
    Edits edits(std::string_view(module_.text).substr(0, places.body_close).substr(places.name_end));
    AddParameter(function, edits, places.name_end);
    Assembly out(prefix_);
    PutBlockRegisters(out);
    const BlockUse use = UseOf(function);
    PutBlockOfPiece(out, use);
    PutGrid(out, use);
    edits.Insert(places.body_open + 1 - places.name_end, std::move(out).Take());
    ReplaceReadsInKernel(function, prefix_, edits);
    return fmt::format("\n.visible .entry {}{}}}\n", kernel.plan.piece_entry, std::move(edits).Apply());
  }

  // `begin`: where the text of `edits` begins in the module's.
  void AddParameter(const ptx::Function& function, Edits& edits, size_t begin) const {
    const ptx::Places& places = function.places;
    std::string parameter = fmt::format(".param .align 8 .b8 {}turn[{}]\n", prefix_, sizeof(Turn));
    if (places.params_open == 0)
      edits.Insert(places.name_end - begin, "(" + parameter + ")");
    else
      edits.Insert(places.params_close - begin, (function.params.empty() ? "" : ",\n") + parameter);
  }

  void RewriteFunctions(std::vector<Kernel>& kernels) {
    Assembly variable(prefix_);
    PutBlockVariable(variable);
    edits_.Insert(module_.head_end, std::move(variable).Take());
    for (uint32_t i = 0; i < module_.functions.size(); ++i)
      if (const ptx::Function& function = *module_.functions[i];
          !function.is_kernel && !function.is_extern && facts_.of(i).reads_block)
        ReplaceReadsInFunction(function, prefix_, edits_);
    for (Kernel& kernel : kernels) {
      if (!kernel.asks) continue;
      kernel.plan.added_shared_bytes += kBlockVariableBytes;
      if (kernel.plan.rung != Rung::kNone) continue;
      Assembly out(prefix_);
      PutBlockForFunctions(out, false);
      edits_.Insert(FunctionOf(kernel).places.body_open + 1, std::move(out).Take());
    }
  }

  const ptx::Module& module_;
  std::string_view prefix_;
  const Options& options_;
  ModuleFacts facts_;
  std::vector<bool> loops_;  // by function
  Budget budget_;
  uint64_t growth_left_ = Limits::kGrowthBytes;
  Edits edits_;
  bool functions_ask_ = false;
};

}  // namespace

GpuResult<Rewritten> Rewrite(std::string_view text, const Options& options) {
  auto module = ptx::Parse(text);
  if (!module) return tl::unexpected(std::move(module).error());
  const auto prefix = FreshPrefix((*module)->text);
  if (!prefix) return GpuFail(CuStatus::kInvalidPtx, "its names leave none for a rewriter");
  return Rewriter(**module, *prefix, options).Run();
}

}  // namespace vgpud::rewrite
