// SPDX-License-Identifier: Apache-2.0
// No instruction without an upper bound on how long it takes. Every row of the table of instructions, and every
// function of the device runtime, has a line here that says why it is short, or works in pieces; those are run with
// long operands, cut after each piece.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "gpu/soft/calls/extern_functions.h"
#include "gpu/soft/code/op_table.h"
#include "tests/unit/soft/rig/tensor_fixture.h"

namespace vgpud::soft {
namespace {

// What an instruction that does not work in pieces does at most: rows by the first word of their names, without the @
// of those that the decoder chooses. Copies, and whatever works in bulk, are named in full.
struct Bound {
  std::string_view names;  // separated by spaces
  std::string_view why;
};
constexpr Bound kBounds[] = {
    {"abs add addc and bfe bfi bfind bmsk brev clz copysign cos cvt div dp2a dp4a ex2 fma fns lg2 lop3 mad mad24 madc "
     "max min mov mul mul24 neg not or popc prmt rcp rem rsqrt sad selp set setp shf shl shr sin slct sqrt sub subc "
     "szext tanh testp xor cnot vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin "
     "vmin2 "
     "vmin4 vset vset2 vset4 vshl vshr vsub vsub2 vsub4 narrow widen pack unpack generic clock clock_hi globaltimer "
     "globaltimer_hi",
     "arithmetic on one value per lane"},
    {"ld st sync_ld sync_st atom", "32 bytes per lane at most, by the form of the instruction"},
    {"cp.async", "16 bytes per lane, by the form of the instruction"},
    {"cp.async.commit_group cp.async.wait_group cp.async.wait_all cp.async.bulk.commit_group cp.async.bulk.wait_group "
     "cp.async.bulk.wait_group.read cp.async.bulk.prefetch cp.async.bulk.prefetch.tensor prefetch prefetchu discard "
     "applypriority",
     "copies nothing"},
    {"mbarrier cp.async.mbarrier.arrive cp.async.mbarrier.arrive.noinc", "one object of 8 bytes per lane"},
    {"tensormap", "one map of 128 bytes per lane"},
    {"ldmatrix stmatrix movmatrix mma wmma", "fragments of fixed size, of a warp"},
    {"wgmma tcgen05", "tiles of fixed size; what takes long does one lane at a time"},
    {"tex tld4 texture txq suq cube", "16 taps of 8 texels per lane at most"},
    {"suld sust sured surface", "16 bytes per lane"},
    {"shfl vote match redux elect activemask", "the lanes of a warp"},
    {"bar barrier exit", "the warps of a block or cluster, 32 lanes each"},
    {"trap brkpt fence membar nanosleep pmevent griddepcontrol setmaxnreg", "nothing that grows"},
};
// As kBounds, of functions that do all lanes at once.
constexpr Bound kFunctionBounds[] = {
    {"__assertfail", "three texts of 1024 bytes and a number per lane"},
    {"malloc free __nv_aligned_device_malloc __cudaCDP2Malloc __cudaCDP2Free",
     "look-ups among the allocations, whose number is bounded; memory is not cleared"},
    {"cudaGraphSetConditional", "one word per lane"},
    {"__cudaCDP2GetParameterBufferV2 __cudaCDP2LaunchDeviceV2 __cudaCDP2LaunchDeviceV2_ptsz",
     "a record per lane; parameters are copied when the kernel begins, 32764 bytes at most"},
    {"__cudaCDP2GetLastError __cudaCDP2PeekAtLastError __cudaCDP2StreamCreateWithFlags __cudaCDP2StreamDestroy "
     "__cudaCDP2StreamWaitEvent __cudaCDP2StreamWaitEvent_ptsz __cudaCDP2EventCreateWithFlags __cudaCDP2EventRecord "
     "__cudaCDP2EventRecord_ptsz __cudaCDP2EventDestroy __cudaCDP2GetDevice __cudaCDP2GetDeviceCount",
     "one value per lane"},
};

std::string_view FirstWord(std::string_view name) { return name.substr(0, name.find('.')); }

// The reason that fits `name`; empty: there is none.
template <size_t kCount>
std::string_view BoundOf(std::string_view name, const Bound (&bounds)[kCount]) {
  if (name.starts_with('@')) name.remove_prefix(1);
  const bool in_full = FirstWord(name) == "cp" || name.find(".bulk") != std::string_view::npos;
  for (const Bound& b : bounds) {
    for (std::string_view rest = b.names; !rest.empty();) {
      const std::string_view opcode = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(opcode.size() + 1, rest.size()));
      if (opcode == (in_full ? name : FirstWord(name))) return b.why;
    }
  }
  return {};
}

TEST(Pieces, EveryRowHasABoundOrWorksInPieces) {
  std::map<std::string, size_t> missing;
  for (const OpRow* row : OpTable::Of(BestIsa()).Rows())
    if ((row->traits & kInPieces) == 0 && BoundOf(row->name, kBounds).empty())
      ++missing[std::string(FirstWord(row->name))];
  for (const auto& [name, rows] : missing)
    ADD_FAILURE() << name << ": " << rows << " rows; say in kBounds why they are short, or let them work in pieces";
}

TEST(Pieces, EveryFunctionOfTheDeviceRuntimeHasABoundOrDoesOneLaneAtATime) {
  for (const auto table : AllExternFunctions())
    for (const ExternFunction& f : table)
      EXPECT_NE(f.lanes == ExternFunction::Lanes::kAll, BoundOf(f.name, kFunctionBounds).empty())
          << f.name << ": say in kFunctionBounds why it is short, or let it do one lane at a time";
}

constexpr uint32_t kLong = 40 << 10;  // bytes that each lane's instruction works on: 2.5 pieces
constexpr uint32_t kShort = 256;
constexpr uint32_t kPieces = 3;
constexpr uint32_t kRowWords = 64;  // of the tensor

// An instruction of the row, with %rd1: the lanes' own piece of global memory, %r1: shared memory, %r2: an mbarrier,
// %r3: bytes, %rd3: a map of as many bytes, %rs1: both blocks of the cluster, %rs2: bytes of 16.
std::string InstructionOf(std::string_view row) {
  const std::string tells = "mbarrier::complete_tx::bytes";
  const std::map<std::string_view, std::string> copies = {
      {"@cp.async.bulk", "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], %r3;"},
      {"@cp.async.bulk.cp_mask", "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd1], [%r1], %r3, %rs2;"},
      {"@cp.async.bulk.multicast",
       "cp.async.bulk.shared::cluster.global." + tells + ".multicast::cluster [%r1], [%rd1], %r3, [%r2], %rs1;"},
      {"@cp.async.bulk.tensor.load",
       "cp.async.bulk.tensor.2d.shared::cluster.global." + tells + " [%r1], [%rd3, {0, 0}], [%r2];"},
      {"@cp.async.bulk.tensor.load.multicast", "cp.async.bulk.tensor.2d.shared::cluster.global." + tells +
                                                   ".multicast::cluster [%r1], [%rd3, {0, 0}], [%r2], %rs1;"},
      {"@cp.async.bulk.tensor.store", "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd3, {0, 0}], [%r1];"},
  };
  if (const auto it = copies.find(row); it != copies.end()) return it->second;
  constexpr std::string_view kTensor = "@cp.reduce.async.bulk.tensor.";
  constexpr std::string_view kBulk = "@cp.reduce.async.bulk.";
  if (row.starts_with(kTensor))
    return "cp.reduce.async.bulk.tensor.2d.global.shared::cta." + std::string(row.substr(kTensor.size())) +
           ".bulk_group [%rd3, {0, 0}], [%r1];";
  if (!row.starts_with(kBulk)) return {};
  std::string op(row.substr(kBulk.size()));
  if (op == "add.f16" || op == "add.bf16") op.insert(3, ".noftz");
  return "cp.reduce.async.bulk.global.shared::cta.bulk_group." + op + " [%rd1], [%r1], %r3;";
}

std::vector<std::string> RowsInPieces() {
  std::vector<std::string> names;
  for (const OpRow* row : OpTable::Of(BestIsa()).Rows())
    if ((row->traits & kInPieces) != 0) names.emplace_back(row->name);
  std::sort(names.begin(), names.end());
  return names;
}

struct PieceRun {
  Outcome outcome;
  std::vector<uint32_t> memory;  // all that the kernel can have written, shared memory last
};

class PiecesOf : public testing::TestWithParam<std::string> {
 protected:
  static constexpr uint32_t kThreads = 32;
  // Two blocks of a cluster; those of the second one only wait.
  static PieceRun RunWith(uint32_t bytes, uint64_t budget) {
    SoftMachine m(BestIsa(), 64 << 20, 1, **FindComputeCapability("9.0"));
    const Outcome loaded = m.LoadBody(".param .u64 memory, .param .u64 map, .param .u32 bytes", R"(
      .shared .align 1024 .b8 tile[40960]; .shared .align 8 .b8 bar[8];
      ld.param.u64 %rd2, [memory]; ld.param.u64 %rd3, [map]; ld.param.u32 %r3, [bytes]; mov.u32 %r1, tile;
      mov.u32 %r2, bar; mov.u32 %r30, %tid.x; mov.u16 %rs1, 3; mov.u16 %rs2, 0x5a3c; mov.u32 %r31, %cluster_ctarank;
      mul.wide.u32 %rd4, %r30, 1024; add.u64 %rd1, %rd2, %rd4; mbarrier.init.shared.b64 [%r2], 1000; mov.u32 %r4, %r30;
    FILL: shl.b32 %r5, %r4, 2; add.u32 %r6, %r1, %r5; mad.lo.u32 %r7, %r4, 2654435761, 7; st.shared.u32 [%r6], %r7;
      add.u32 %r4, %r4, 32; setp.lt.u32 %p1, %r4, 10240; @%p1 bra FILL;
      bar.sync 0; barrier.cluster.arrive; barrier.cluster.wait; setp.eq.u32 %p2, %r31, 0;
      @%p2 )" + InstructionOf(GetParam()) + R"(
      barrier.cluster.arrive; barrier.cluster.wait; mad.lo.u32 %r8, %r31, 40960, 2097152; cvt.u64.u32 %rd5, %r8;
      add.u64 %rd2, %rd2, %rd5; mov.u32 %r4, %r30;
    SHOW: shl.b32 %r5, %r4, 2; add.u32 %r6, %r1, %r5; ld.shared.u32 %r7, [%r6]; cvt.u64.u32 %rd6, %r5;
      add.u64 %rd6, %rd2, %rd6; st.global.u32 [%rd6], %r7; add.u32 %r4, %r4, 32; setp.lt.u32 %p1, %r4, 10240;
      @%p1 bra SHOW;)");
    if (loaded.status != CuStatus::kSuccess) return {loaded, {}};
    constexpr size_t kWords = (2097152 + 2 * kLong) / 4;
    std::vector<uint32_t> before(kWords);
    for (size_t n = 0; n < kWords; ++n) before[n] = static_cast<uint32_t>(n * 40503 + 1);
    const GpuVa memory = m.Upload(before);
    const TensorCase c = {
        "", VGPU_TENSOR_U32, 4, {kRowWords, bytes / 4 / kRowWords}, {kRowWords, bytes / 4 / kRowWords}, {0, 0}};
    const GpuVa map = m.Upload(std::vector<vgpu_tensor_map>{MapOf(c, memory)});
    LaunchShape shape{{2, 1, 1}, {kThreads, 1, 1}, 0};
    shape.cluster[0] = 2;
    shape.cluster[1] = shape.cluster[2] = 1;
    const Outcome ran = m.Run("k", shape, Params().Add(memory).Add(map).Add(bytes), budget, 1'000'000);
    return {ran, m.Download<uint32_t>(memory, kWords)};
  }
};

TEST_P(PiecesOf, TakeAnInstructionEachAndComeOutAsAtOnce) {
  ASSERT_FALSE(InstructionOf(GetParam()).empty()) << "there is no line for this row in InstructionOf";
  const PieceRun whole = RunWith(kLong, UINT64_MAX);
  ASSERT_EQ(whole.outcome.status, CuStatus::kSuccess) << whole.outcome.text;
  const PieceRun cut = RunWith(kLong, 1);
  ASSERT_EQ(cut.outcome.status, CuStatus::kSuccess) << cut.outcome.text;
  EXPECT_EQ(cut.memory, whole.memory);
  EXPECT_EQ(cut.outcome.instructions, whole.outcome.instructions);
  const PieceRun small = RunWith(kShort, UINT64_MAX);
  ASSERT_EQ(small.outcome.status, CuStatus::kSuccess) << small.outcome.text;
  EXPECT_GE(whole.outcome.instructions, small.outcome.instructions + kThreads * (kPieces - 1))
      << "what is long takes no more instructions than what is short";
}

INSTANTIATE_TEST_SUITE_P(, PiecesOf, testing::ValuesIn(RowsInPieces()), [](const auto& p) {
  std::string name = p.param;
  std::erase_if(name, [](char c) { return c == '@'; });
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

// What overlaps comes out as from one move, upwards and downwards.
TEST(Pieces, OverlapIsAsIfMovedAtOnce) {
  for (const int32_t shift : {16, -16, 12288}) {
    SoftMachine m(BestIsa(), 64 << 20, 1, **FindComputeCapability("9.0"));
    const uint32_t from = shift < 0 ? 16 : 0;
    const uint32_t to = static_cast<uint32_t>(static_cast<int32_t>(from) + shift);
    const Outcome loaded = m.LoadBody(".param .u64 out, .param .u32 from, .param .u32 to", R"(
      .shared .align 1024 .b8 tile[40960]; .shared .align 8 .b8 bar[8]; ld.param.u64 %rd1, [out];
      ld.param.u32 %r10, [from]; ld.param.u32 %r11, [to]; mov.u32 %r1, tile; mov.u32 %r2, bar; mov.u32 %r4, 0;
      mbarrier.init.shared.b64 [%r2], 1;
    FILL: shl.b32 %r5, %r4, 2; add.u32 %r6, %r1, %r5; st.shared.u32 [%r6], %r4; add.u32 %r4, %r4, 1;
      setp.lt.u32 %p1, %r4, 10240; @%p1 bra FILL; add.u32 %r10, %r10, %r1; add.u32 %r11, %r11, %r1;
      cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r11], [%r10], 28672, [%r2];
      cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 40960;)");
    ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
    const GpuVa out = m.Alloc(40960);
    const Outcome ran = m.Run("k", {{1, 1, 1}, {1, 1, 1}, 0}, Params().Add(out).Add(from).Add(to), 3);
    ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
    std::vector<uint32_t> expected(10240);
    for (uint32_t n = 0; n < expected.size(); ++n) expected[n] = n;
    std::memmove(expected.data() + to / 4, std::vector<uint32_t>(expected).data() + from / 4, 28672);
    EXPECT_EQ(m.Download<uint32_t>(out, 10240), expected) << shift;
  }
}

// A launch looks at the stop word while it places its parameters, and goes on where it was.
TEST(Pieces, ALaunchWithManyParametersIsLeftBeforeItBegins) {
  constexpr uint32_t kParams = 4000;
  std::string params = ".param .u64 out", body = "ld.param.u64 %rd1, [out]; mov.u32 %r1, 0;\n";
  Params values;
  SoftMachine m;
  const GpuVa out = m.Alloc(4);
  values.Add(out);
  uint32_t sum = 0;
  for (uint32_t n = 0; n < kParams; ++n) {
    params += ", .param .u32 p" + std::to_string(n);
    body += "ld.param.u32 %r2, [p" + std::to_string(n) + "]; mad.lo.u32 %r1, %r1, 3, %r2;\n";
    values.Add(n * 77);
    sum = sum * 3 + n * 77;
  }
  const Outcome loaded = m.LoadBody(params, body + "st.global.u32 [%rd1], %r1;");
  ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  const auto grid = m.Launch("k", {{1, 1, 1}, {1, 1, 1}, 0}, values);
  ASSERT_NE(grid, nullptr);
  std::atomic<uint32_t> word{1};
  uint32_t looks = 0;
  for (;; ++looks) {
    const auto ran = grid->Run({&word, 0}, UINT64_MAX);  // the word says stop
    ASSERT_TRUE(ran) << ran.error().text;
    ASSERT_EQ(*ran, GpuGrid::Progress::kStopped);
    ASSERT_EQ(grid->warp_instructions(), 0u);
    if (looks == kParams) break;
  }
  const Outcome ran = m.Finish(*grid);
  ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
  EXPECT_EQ(m.Download<uint32_t>(out, 1)[0], sum);
}

// What one lane prints may take most of a millisecond.
TEST(Pieces, LanesThatPrintAreInstructionsOfTheirOwn) {
  const auto instructions = [](uint32_t lanes) {
    SoftMachine m;
    const Outcome loaded = m.LoadBody(".param .u32 lanes", R"(
      ld.param.u32 %r1, [lanes]; mov.u32 %r2, %tid.x; setp.ge.u32 %p1, %r2, %r1; @%p1 bra END; mov.u64 %rd1, text;
      { .param .b64 format; .param .b64 arguments; .param .b32 printed;
        st.param.b64 [format], %rd1; st.param.b64 [arguments], 0;
        call (printed), vprintf, (format, arguments); ld.param.b32 %r3, [printed]; }
    END:)",
                                      ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
                                      ".global .align 1 .b8 text[4] = {104, 105, 10, 0};");
    EXPECT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
    const Outcome ran = m.Run("k", {{1, 1, 1}, {32, 1, 1}, 0}, Params().Add(lanes), 1);
    EXPECT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
    EXPECT_EQ(m.gpu.printed_bytes(), 3 * lanes);
    return ran.instructions;
  };
  EXPECT_GE(instructions(32), instructions(1) + 31);
}

}  // namespace
}  // namespace vgpud::soft
