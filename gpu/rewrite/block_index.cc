// SPDX-License-Identifier: Apache-2.0
#include "gpu/rewrite/block_index.h"

#include "gpu/rewrite/facts.h"
#include "gpu/rewrite/plan.h"

namespace vgpud::rewrite {
namespace {

constexpr char kAxis[] = "xyz";

template <class Visit>
void ForEachRead(const ptx::Function& function, const Visit& visit) {
  for (const ptx::Instruction& instruction : function.code)
    for (const ptx::Operand& operand : instruction.operands)
      ForEach(operand, [&](const ptx::Operand& part) {
        bool grid = false;
        if (const auto component = BlockComponent(part, &grid)) visit(instruction, part, *component, grid);
      });
}

// $p0 = it is not the first thread of its block. `lop3`: the GPU is one of compute capability 5.0 or newer.
void PutIsFirst(Assembly& out, bool lop3) {
  if (lop3) {
    out.Put("mov.u32 %$r0, %tid.x;\nmov.u32 %$r1, %tid.y;\nmov.u32 %$r2, %tid.z;");
    out.Put("lop3.b32 %$r0, %$r0, %$r1, %$r2, 0xfe;\nsetp.ne.u32 %$p0, %$r0, 0;");
    return;
  }
  out.Put("mov.u32 %$r0, %tid.x;\nmov.u32 %$r1, %tid.y;\nor.b32 %$r0, %$r0, %$r1;");
  out.Put("mov.u32 %$r1, %tid.z;\nor.b32 %$r0, %$r0, %$r1;\nsetp.ne.u32 %$p0, %$r0, 0;");
}

}  // namespace

BlockUse UseOf(const ptx::Function& function) {
  BlockUse use;
  ForEachRead(function, [&](const ptx::Instruction&, const ptx::Operand&, uint32_t component, bool grid) {
    (grid ? use.grid : use.block)[component] = true;
  });
  return use;
}

void ReplaceReadsInKernel(const ptx::Function& kernel, std::string_view prefix, Edits& edits) {
  ForEachRead(kernel, [&](const ptx::Instruction&, const ptx::Operand& read, uint32_t component, bool grid) {
    edits.Replace(read.name, fmt::format("%{}{}{}", prefix, grid ? "grid" : "block", component));
  });
}

void ReplaceReadsInFunction(const ptx::Function& function, std::string_view prefix, Edits& edits) {
  Assembly declared(prefix);
  edits.Insert(function.places.body_open + 1, std::move(declared.Put("\n.reg .b32 %$at<6>;")).Take());
  ForEachRead(function, [&](const ptx::Instruction& in, const ptx::Operand& read, uint32_t component, bool grid) {
    const uint32_t index = component + (grid ? 3 : 0);
    Assembly load(prefix);
    load.Put("ld.shared.u32 %$at{}, [$block+{}];", index, 4 * index);
    edits.Insert(edits.OffsetOf(in.text), std::move(load).Take());
    edits.Replace(read.name, fmt::format("%{}at{}", prefix, index));
  });
}

void PutBlockRegisters(Assembly& out) {
  out.Put(
      "\n.reg .b32 %$block<3>;\n.reg .b32 %$grid<3>;\n.reg .b32 %$ticket;\n.reg .pred %$p<4>;\n.reg .b32 %$r<10>;\n"
      ".reg .b64 %$d<6>;");
}

uint32_t BytesOfFirst(const BlockUse& use) { return use.block[2] ? 12 : use.block[1] ? 8 : 4; }

// The first coordinate also says what becomes of the block: 0xffffffff: nothing, 0xfffffffe: it goes on, and its ticket
// is in front.
void PutBlockOfFirst(Assembly& out, const BlockUse& use, uint32_t at, bool slots) {
  out.Put(".shared .align 4 .b8 $words[{}];", at + BytesOfFirst(use));
  PutIsFirst(out, slots);
  out.Put("@%$p0 bra $told;\nmov.u32 %$block0, 0xffffffff;");
  if (slots) out.Put("mov.u32 %$r2, 0;\nst.shared.u32 [$words+4], %$block0;\nst.shared.u32 [$words+8], %$r2;");
  out.Put("ld.param.u64 %$d0, [$turn+{}];\nld.volatile.global.u32 %$r0, [%$d0];", offsetof(Turn, stop_word));
  out.Put("ld.param.u32 %$r1, [$turn+{}];\nsetp.ne.u32 %$p1, %$r0, %$r1;\n@%$p1 bra $tell;", offsetof(Turn, expected));
  out.Put("ld.param.u64 %$d0, [$turn+{}];\natom.global.add.u32 %$ticket, [%$d0], 1;", offsetof(Turn, control));
  if (slots) {
    out.Put("ld.param.u32 %$r1, [$turn+{}];\nsetp.ge.u32 %$p1, %$ticket, %$r1;\n@%$p1 bra $begins;",
            offsetof(Turn, going_on));
    out.Put("mov.u32 %$block0, 0xfffffffe;\nst.shared.u32 [$words], %$ticket;\nbra $tell;");
    out.Put("$begins:\nsub.u32 %$ticket, %$ticket, %$r1;");
  }
  out.Put("ld.param.u32 %$r1, [$turn+{}];\nsetp.ge.u32 %$p1, %$ticket, %$r1;\n@%$p1 bra $tell;",
          offsetof(Turn, blocks));
  PutBlockFromTicket(out, use);
  if (!use.block[0]) out.Put("mov.u32 %$block0, 0;");
  for (size_t i = 1; i < 3; ++i)
    if (use.block[i]) out.Put("st.shared.u32 [$words+{}], %$block{};", at + 4 * i, i);
  out.Put("$tell:\nst.shared.u32 [$words+{}], %$block0;\n$told:\nbar.sync 0;", at);
  for (size_t i = 0; i < 3; ++i)
    if (i == 0 || use.block[i]) out.Put("ld.shared.u32 %$block{}, [$words+{}];", i, at + 4 * i);
  if (slots)
    out.Put("setp.ge.u32 %$p1, %$block0, 0xfffffffe;\n@%$p1 bra $other;");
  else
    out.Put("setp.eq.u32 %$p1, %$block0, 0xffffffff;\n@%$p1 exit;");
}

void PutOther(Assembly& out) {
  out.Put("$other:\nsetp.eq.u32 %$p1, %$block0, 0xffffffff;\n@%$p1 exit;\nld.shared.u32 %$ticket, [$words];");
  out.Put("bra $go_on;");
}

void PutTicket(Assembly& out, Telling telling, uint32_t words) {
  const bool shared = telling == Telling::kShared;
  if (shared) out.Put(".shared .align 4 .b8 $words[{}];", words);
  PutIsFirst(out, false);
  if (!shared) out.Put("mov.u32 %$ticket, 0;");
  out.Put("@%$p0 bra $told;");
  out.Put("ld.param.u64 %$d0, [$turn+{}];\nld.volatile.global.u32 %$r0, [%$d0];", offsetof(Turn, stop_word));
  out.Put("ld.param.u32 %$r1, [$turn+{}];\nmov.u32 %$ticket, 0xffffffff;", offsetof(Turn, expected));
  for (uint32_t word = 1; word < words / 4; ++word)
    out.Put("mov.u32 %$r2, {};\nst.shared.u32 [$words+{}], %$r2;", word == 1 ? "0xffffffff" : "0", 4 * word);
  out.Put("setp.ne.u32 %$p1, %$r0, %$r1;\n@%$p1 bra $tell;");
  out.Put("ld.param.u64 %$d0, [$turn+{}];\natom.global.add.u32 %$ticket, [%$d0], 1;", offsetof(Turn, control));
  out.Put("$tell:");
  if (shared) {
    out.Put("st.shared.u32 [$words], %$ticket;\n$told:\nbar.sync 0;\nld.shared.u32 %$ticket, [$words];");
    return;
  }
  out.Put("$told:\nmov.u32 %$r0, 0;");
  for (int bit = 0; bit < 32; ++bit) {
    out.Put("and.b32 %$r1, %$ticket, {};\nsetp.ne.u32 %$p1, %$r1, 0;\nbar.red.or.pred %$p1, 0, %$p1;", 1u << bit);
    out.Put("selp.b32 %$r1, {}, 0, %$p1;\nor.b32 %$r0, %$r0, %$r1;", 1u << bit);
  }
  out.Put("mov.u32 %$ticket, %$r0;");
}

void PutGrid(Assembly& out, const BlockUse& use) {
  for (size_t i = 0; i < 3; ++i)
    if (use.grid[i]) out.Put("ld.param.u32 %$grid{}, [$turn+{}];", i, offsetof(Turn, grid) + 4 * i);
}

void PutBlockOfPiece(Assembly& out, const BlockUse& use) {
  for (size_t i = 0; i < 3; ++i) {
    if (!use.block[i]) continue;
    out.Put("mov.u32 %$block{}, %ctaid.{};\nld.param.u32 %$r1, [$turn+{}];", i, kAxis[i],
            offsetof(Turn, first) + 4 * i);
    out.Put("add.u32 %$block{0}, %$block{0}, %$r1;", i);
  }
}

void PutBlockFromTicket(Assembly& out, const BlockUse& use) {
  size_t last = 3;
  while (last != 0 && !use.block[last - 1]) --last;
  // In front of each axis: %$r0 = steps that the axes before have been left with.
  out.Put("mov.u32 %$r0, %$ticket;");
  for (size_t i = 0; i < last; ++i) {
    out.Put("ld.param.u32 %$r1, [$turn+{}];\nadd.u32 %$r0, %$r0, %$r1;", offsetof(Turn, first) + 4 * i);
    if (i == 2) {
      out.Put("mov.u32 %$block2, %$r0;");
      break;
    }
    out.Put("ld.param.u32 %$r1, [$turn+{}];", offsetof(Turn, grid) + 4 * i);
    if (use.block[i]) out.Put("rem.u32 %$block{}, %$r0, %$r1;", i);
    if (i + 1 < last) out.Put("div.u32 %$r0, %$r0, %$r1;");
  }
}

void PutBlockForFunctions(Assembly& out, bool registers) {
  if (!registers) out.Put("\n.reg .b32 %$at;");
  for (size_t i = 0; i < 6; ++i) {
    const char* of = i < 3 ? "block" : "grid";
    if (registers) {
      out.Put("st.shared.u32 [$block+{}], %${}{};", 4 * i, of, i % 3);
    } else {
      out.Put("mov.u32 %$at, %{}.{};\nst.shared.u32 [$block+{}], %$at;", i < 3 ? "ctaid" : "nctaid", kAxis[i % 3],
              4 * i);
    }
  }
}

void PutBlockVariable(Assembly& out) { out.Put("\n.shared .align 4 .b8 $block[{}];", kBlockVariableBytes); }

}  // namespace vgpud::rewrite
