// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/hostile_ptx.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "gpu/soft/code/op_table.h"

namespace vgpud::soft {
namespace {

constexpr const char* kTypes[] = {"b8",  "b16", "b32", "b64", "u8",  "u16", "u32",   "u64",    "s8",
                                  "s16", "s32", "s64", "f16", "f32", "f64", "f16x2", "bf16x2", "b128"};
constexpr const char* kSpaces[] = {"", ".global", ".shared", ".local", ".const", ".param"};
constexpr const char* kVectors[] = {"", "", ".v2", ".v4"};
constexpr const char* kSpecials[] = {"%tid.x",   "%ntid.y",      "%ctaid.x",          "%laneid", "%warpid",
                                     "%clock64", "%envreg1",     "%nctaid.z",         "%smid",   "%gridid",
                                     "WARP_SZ",  "%lanemask_lt", "%dynamic_smem_size"};
constexpr const char* kGeometries[] = {"1d", "2d", "3d", "a1d", "a2d", "cube", "acube"};
constexpr const char* kMatrices[] = {
    "wmma.load.a.sync.aligned.row.m16n16k16{s}.f16 {8}, [{a}], {r};",
    "wmma.load.c.sync.aligned.col.m16n16k16{s}.f32 {8}, [{a}];",
    "wmma.store.d.sync.aligned.row.m16n16k16{s}.f32 [{a}], {8}, {r};",
    "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {8}, {8}, {8}, {8};",
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {4}, {2}, {1}, {4};",
    "ldmatrix.sync.aligned.m8n8.x4{s}.b16 {4}, [{a}];",
    "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {1}, [{a}];",
};
constexpr const char* kAccesses[] = {
    "ld{s}{v}.{t} {D}, [{a}];",
    "ld.volatile{s}{v}.{t} {D}, [{a}];",
    "st{s}{v}.{t} [{a}], {D};",
    "st.release.sys{s}{v}.{t} [{a}], {D};",
    "ld.local{v}.{t} {D}, [{a}];",
    "st.local{v}.{t} [{a}], {D};",
    "ld.shared{v}.{t} {D}, [{a}];",
    "st.shared{v}.{t} [{a}], {D};",
    "ld.param.{t} {D}, [{P}];",
    "st.param.{t} [{P}], {D};",
    "ld.param.v4.{t} {D}, [{P}];",
    "atom{s}.{o}.{t} {D}, [{a}], {o1};",
    "atom{s}.cas.{t} {D}, [{a}], {o1}, {o1};",
    "red{s}.{o}.{t} [{a}], {o1};",
    "cp.async.ca.shared.global [{a}], [{a}], {i}, {r};",
    "cp.async.cg.shared.global [{a}], [{a}], 16;",
    "mbarrier.init.shared.b64 [{a}], {r};",
    "mbarrier.arrive.shared.b64 {d}, [{a}];",
    "mbarrier.try_wait.parity.shared.b64 {p}, [{a}], {r};",
    "cvta.to.global.u64 {d}, {d};",
    "cvta{s}.u64 {d}, {V};",
    "mov.u64 {d}, {V};",
    "mov.b64 {d}, {2};",
    "mov.b64 {2}, {d};",
    "isspacep{s} {p}, {d};",
    "createpolicy.fractional.L2::evict_last.b64 {d}, 1.0;",
    "prefetch.global.L2 [{a}];",
};
constexpr const char* kTextures[] = {
    "tex.{G}.v4.f32.f32 {4f}, [{d}, {C}];",
    "tex.{G}.v4.s32.s32 {4}, [{d}, {C}];",
    "tex.level.{G}.v4.f32.f32 {4f}, [{d}, {C}], {f};",
    "tld4.r.{G}.v4.f32.f32 {4f}, [{d}, {C}];",
    "txq.width.b32 {r}, [{d}];",
    "suq.height.b32 {r}, [{d}];",
    "suld.b.{G}.v2.b32.{m} {2}, [{d}, {C}];",
    "suld.b.{G}.b8.{m} {h}, [{d}, {C}];",
    "sust.b.{G}.v4.b32.{m} [{d}, {C}], {4};",
    "sust.p.{G}.v4.b32.{m} [{d}, {C}], {4};",
    "sured.b.add.{G}.u32.{m} [{d}, {C}], {r};",
    "sured.p.min.{G}.b64.{m} [{d}, {C}], {d};",
};
constexpr const char* kAtomics[] = {"add", "min", "max", "and", "or", "xor", "exch", "inc", "dec"};
constexpr const char* kOutside[] = {"trap", "clamp", "zero"};
constexpr const char* kProvided[] = {
    ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n",
    ".extern .func (.param .b64 r) malloc(.param .b64 a);\n",
    ".extern .func free(.param .b64 a);\n",
    ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);\n",
    (".extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(.param .b64 a, .param .align 4 .b8 b[12], .param "
     ".align 4 .b8 c[12], .param .b32 d);\n"),
    ".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 a, .param .b64 b);\n",
    ".extern .func (.param .b32 r) __cudaCDP2Malloc(.param .b64 a, .param .b64 b);\n",
};
constexpr const char* kProvidedCalls[] = {
    "call.uni (q4), vprintf, (q8, q9);",
    "call.uni (q8), malloc, (q9);",
    "call.uni free, (q8);",
    "call.uni __assertfail, (q8, q9, q4, q8, q9);",
    "call.uni (q8), __cudaCDP2GetParameterBufferV2, (q9, q12, q13, q4);",
    "call.uni (q4), __cudaCDP2LaunchDeviceV2, (q8, q9);",
    "call.uni (q4), __cudaCDP2Malloc, (q8, q9);",
};

const std::vector<const OpRow*>& PlainRows() {
  static const std::vector<const OpRow*> rows = [] {
    std::vector<const OpRow*> all;
    for (const OpRow* row : OpTable::Of(Isa::kSse4).Rows())
      if (row->name[0] != '@' && std::string_view(row->name) != "trap") all.push_back(row);
    std::sort(all.begin(), all.end(),
              [](const OpRow* a, const OpRow* b) { return std::string_view(a->name) < b->name; });
    return all;
  }();
  return rows;
}

class Writer {
 public:
  explicit Writer(FuzzBytes& in) : in_(in) {}
  std::string Write() {
    out_ = ".version 7.8\n.target sm_75\n.address_size 64\n";
    const uint8_t provided = in_.Byte();
    for (size_t n = 0; n < std::size(kProvided); ++n)
      if ((provided >> n & 1) != 0) out_ += kProvided[n];
    for (uint32_t n = in_.Pick(5); n != 0; --n) ModuleVariable();
    functions_ = in_.Pick(4);
    for (uint32_t n = 0; n < functions_; ++n) Header(n, ";\n");
    for (uint32_t n = 0; n < functions_; ++n) {
      Header(n, "\n");
      Body();
    }
    out_ +=
        ".visible .entry k(.param .b64 a0, .param .b64 a1, .param .b64 a2, .param .b32 a3, .param .align 16 .b8 a4[" +
        std::to_string(1 + in_.Pick(64)) + "])";
    if (in_.Chance(8)) out_ += " .reqntid " + Count() + ", " + Count();
    if (in_.Chance(8)) out_ += " .maxntid " + Count() + ", " + Count() + ", " + Count();
    out_ += "\n";
    Body();
    return std::move(out_);
  }

 private:
  // Mostly what is there, seldom anything.
  std::string Count() { return std::to_string(in_.Chance(8) ? in_.Number() : 1 + in_.Pick(64)); }
  std::string Size() { return std::to_string(in_.Chance(4) ? in_.Number() : 1 + in_.Pick(256)); }
  std::string Align() { return in_.Chance(3) ? " .align " + std::to_string(1u << in_.Pick(18)) : ""; }
  void ModuleVariable() {
    static constexpr const char* kPlaces[] = {".global",          ".const",          ".shared",
                                              ".visible .global", ".extern .shared", ".weak .global"};
    const std::string name = "v" + std::to_string(variables_++);
    const char* place = in_.Of(kPlaces);
    out_ += std::string(place) + Align() + " ." + in_.Of(kTypes) + " " + name;
    out_ += std::string_view(place) == ".extern .shared" ? "[]" : "[" + Size() + "]";
    if (in_.Chance(3)) {
      out_ += " = {";
      for (uint32_t n = in_.Pick(6); n != 0; --n)
        out_ += (in_.Chance(4) ? "generic(v0)+" : "") + std::to_string(in_.Number()) + ", ";
      out_ += "1}";
    }
    out_ += ";\n";
  }
  void Header(uint32_t n, const char* end) {
    out_ += ".func (.param .b64 y0, .param .b8 y1[" + std::to_string(9 * n + 1) + "]) f" + std::to_string(n) +
            "(.param .b64 a0, .param .b32 a3, .param .align 8 .b8 a4[24])" + end;
  }
  void Body() {
    out_ +=
        "{\n.reg .b16 %h<4>; .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .f32 %f<4>; .reg .f64 %g<4>; .reg .pred %p<4>;\n"
        ".param .b32 q4; .param .b64 q8; .param .b64 q9; .param .align 4 .b8 q12[12]; .param .align 4 .b8 q13[12];\n"
        "ld.param.b64 %d0, [a0]; ld.param.b32 %r0, [a3]; mov.u32 %r1, %tid.x; cvt.u64.u32 %d1, %r1; add.u64 %d1, "
        "%d0, %d1;\nld.param.b64 %d2, [a4];\n";
    depth_ = 1;
    labels_ = locals_ = 0;
    label_open_.assign(1, {});
    for (uint32_t left = 30; left != 0 && !in_.empty(); --left) {
      const uint8_t choice = in_.Byte();
      if (choice == 0xff) break;
      Statement(choice);
    }
    while (depth_ != 0) CloseBlock();
  }
  void CloseBlock() {
    for (const std::string& label : label_open_.back()) out_ += label + ":\n";
    label_open_.pop_back();
    out_ += depth_ == 1 ? "ret;\n}\n" : "}\n";
    --depth_;
  }
  void Statement(uint8_t choice) {
    if (choice < 90) return PlainRow();
    if (choice < 150) return Template(in_.Of(kAccesses));
    if (choice < 165) return Template(in_.Of(kTextures));
    if (choice < 172) return Template(in_.Of(kMatrices));
    if (choice < 190) return Call();
    if (choice < 205) return Local();
    if (choice < 225) return Branch();
    if (choice < 235 && depth_ < 70) {
      out_ += "{\n";
      ++depth_;
      label_open_.emplace_back();
      return;
    }
    if (choice < 245) {
      if (depth_ > 1) CloseBlock();
      return;
    }
    static constexpr const char* kOdd[] = {"bar.sync {b};",
                                           "bar.arrive {b}, {i};",
                                           "bar.red.popc.u32 {r}, {b}, {p};",
                                           "exit;",
                                           "ret;",
                                           "membar.gl;",
                                           "bar.warp.sync {r};",
                                           "activemask.b32 {r};",
                                           "shfl.sync.bfly.b32 {r}|{p}, {r}, {r}, {i}, {r};",
                                           "vote.sync.ballot.b32 {r}, {p}, {r};"};
    Template(in_.Of(kOdd));
  }
  void Guard() {
    if (in_.Chance(4)) out_ += std::string(in_.Chance(2) ? "@!" : "@") + "%p" + std::to_string(in_.Pick(4)) + " ";
  }
  void PlainRow() {
    const auto& rows = PlainRows();
    const OpRow& row = *rows[in_.Pick(static_cast<uint32_t>(rows.size()))];
    Guard();
    out_ += row.name;
    bool first = true;
    for (const char* kind = row.operands; *kind != 0; ++kind) {
      if (*kind == '?' && in_.Chance(2)) break;
      if (*kind == '?' || *kind == 'c' || *kind == 'C' || *kind == 'x' || *kind == '-') continue;
      out_ += first ? " " : ", ";
      first = false;
      Operand(in_.Chance(24) ? static_cast<char>("dDpaA"[in_.Pick(5)]) : *kind);
    }
    out_ += ";\n";
  }
  void Operand(char kind) {
    const bool wide = kind == 'D' || kind == 'A';
    const bool predicate = kind == 'P' || kind == 'p' || kind == 'Q';
    const bool read = kind == 'a' || kind == 'A' || kind == 'p';
    if (predicate) {
      out_ += "%p" + std::to_string(in_.Pick(4));
      return;
    }
    if (read && in_.Chance(4)) return Immediate();
    if (read && in_.Chance(12)) {
      out_ += in_.Of(kSpecials);
      return;
    }
    out_ += (wide ? "%d" : "%r") + std::to_string(in_.Pick(8));
  }
  void Immediate() { out_ += (in_.Chance(4) ? "-" : "") + std::to_string(in_.Number() >> 1); }
  std::string Variable() {
    const uint32_t all = variables_ + locals_;
    if (all == 0 || in_.Chance(16)) return "f0";
    const uint32_t n = in_.Pick(all);
    return n < variables_ ? "v" + std::to_string(n) : "w" + std::to_string(n - variables_);
  }
  void Address() {
    const uint32_t kind = in_.Pick(8);
    out_ += kind < 5 ? "%d" + std::to_string(in_.Pick(4)) : kind == 5 ? "%r" + std::to_string(in_.Pick(8)) : Variable();
    if (in_.Chance(2)) out_ += "+" + std::to_string(in_.Number() >> 1);
  }
  void Parameter() {
    static constexpr const char* kNames[] = {"a0", "a3", "a4", "q4", "q8", "q9", "q12", "q13", "y0", "y1"};
    out_ += in_.Of(kNames);
    if (in_.Chance(2)) out_ += "+" + std::to_string(in_.Number() >> 1);
  }
  void List(uint32_t count, const char* reg) {
    out_ += "{";
    for (uint32_t n = 0; n < count; ++n) out_ += (n == 0 ? "" : ", ") + (reg + std::to_string(in_.Pick(4)));
    out_ += "}";
  }
  void Data() {
    const std::string_view type = type_;
    const bool wide = type.find("64") != type.npos;
    const char* reg = type == "f64" ? "%g" : type == "f32" ? "%f" : wide ? "%d" : "%r";
    if (in_.Chance(16)) reg = "%h";
    if (lanes_ == 1) {
      out_ += reg + std::to_string(in_.Pick(4));
    } else {
      List(lanes_, reg);
    }
  }
  void Placeholder(std::string_view what) {
    const auto reg = [&](const char* prefix, uint32_t count) { out_ += prefix + std::to_string(in_.Pick(count)); };
    if (what == "s") out_ += in_.Of(kSpaces);
    if (what == "t") out_ += type_ = in_.Of(kTypes);
    if (what == "v") {
      const char* vector = in_.Of(kVectors);
      lanes_ = vector[0] == 0 ? 1 : static_cast<uint32_t>(vector[2] - '0');
      out_ += vector;
    }
    if (what == "D") Data();
    if (what == "o1") {
      lanes_ = 1;
      Data();
    }
    if (what == "a") Address();
    if (what == "P") Parameter();
    if (what == "r") reg("%r", 8);
    if (what == "d") reg("%d", 8);
    if (what == "f") reg("%f", 4);
    if (what == "h") reg("%h", 4);
    if (what == "p") reg("%p", 4);
    if (what == "i") Immediate();
    if (what == "b") out_ += std::to_string(in_.Chance(8) ? in_.Number() : in_.Pick(17));
    if (what == "o") out_ += in_.Of(kAtomics);
    if (what == "m") out_ += in_.Of(kOutside);
    if (what == "V") out_ += Variable();
    if (what == "G") out_ += in_.Of(kGeometries);
    if (what == "C") List(1u << in_.Pick(3), in_.Chance(2) ? "%r" : "%f");
    if (what == "4f") List(4, "%f");
    if (what.size() == 1 && what[0] >= '1' && what[0] <= '8') List(static_cast<uint32_t>(what[0] - '0'), "%r");
  }
  void Template(std::string_view text) {
    Guard();
    lanes_ = 1;
    type_ = "b32";
    while (!text.empty()) {
      const size_t open = std::min(text.find('{'), text.size());
      out_ += text.substr(0, open);
      if (open == text.size()) break;
      const size_t close = text.find('}', open);
      Placeholder(text.substr(open + 1, close - open - 1));
      text = text.substr(close + 1);
    }
    out_ += "\n";
  }
  void Local() {
    static constexpr const char* kPlaces[] = {".local", ".shared", ".local", ".param", ".reg"};
    const char* place = in_.Of(kPlaces);
    if (std::string_view(place) == ".reg") {
      out_ += ".reg .b64 %x" + std::to_string(registers_++) + "<" + std::to_string(in_.Number()) + ">;\n";
      return;
    }
    const bool is_param = std::string_view(place) == ".param";
    out_ += std::string(place) + Align() + " ." + in_.Of(kTypes) + (is_param ? " z" : " w") +
            std::to_string(is_param ? registers_++ : locals_++) + "[" + Size() + "];\n";
  }
  void Branch() {
    Guard();
    const std::string label = "L" + std::to_string(labels_++);
    if (in_.Chance(3)) {  // backwards
      out_ += "bra " + label + "b;\n" + label + "b:\n";
      return;
    }
    if (in_.Chance(6)) {
      out_ += "brx.idx %r" + std::to_string(in_.Pick(8)) + ", " + label + "t;\n" + label + "t: .branchtargets " +
              label + ", " + label + ";\n";
    } else {
      out_ += "bra " + label + ";\n";
    }
    label_open_.back().push_back(label);
  }
  void Call() {
    const uint32_t kind = in_.Pick(4);
    if (kind == 0) {
      out_ += std::string("{ st.param.b64 [q8], %d0; st.param.b64 [q9], %d2; st.param.b32 [q4], %r0; ") +
              in_.Of(kProvidedCalls) + " ld.param.b64 %d3, [q8]; }\n";
      return;
    }
    const std::string size = Size();
    out_ += "{ .param .b64 r0; .param .b8 r1[" + size + "]; .param .b64 b0; .param .b32 b1; .param .b8 b2[" + size +
            "]; st.param.b64 [b0], %d0; ";
    if (kind == 1) {
      out_ += "mov.u64 %d7, " + (in_.Chance(4) ? "k" : "f" + std::to_string(in_.Pick(4))) +
              "; call (r0, r1), %d7, (b0, b1, b2);";
    } else {
      out_ += "call (r0, r1), f" + std::to_string(in_.Pick(4)) + ", (b0, b1, b2);";
    }
    out_ += " ld.param.b64 %d3, [r0]; }\n";
  }

  FuzzBytes& in_;
  std::string out_;
  uint32_t functions_ = 0;
  uint32_t variables_ = 0;
  uint32_t locals_ = 0;
  uint32_t registers_ = 0;
  uint32_t labels_ = 0;
  uint32_t depth_ = 0;
  uint32_t lanes_ = 1;
  std::string type_;
  std::vector<std::vector<std::string>> label_open_;
};

}  // namespace

std::string HostilePtx(FuzzBytes& in) { return Writer(in).Write(); }

}  // namespace vgpud::soft
