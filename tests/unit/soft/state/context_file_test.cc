// SPDX-License-Identifier: Apache-2.0
// A saved context written by hand, part by part as docs/saved-context.md has them, and what each part may not say.
#include <gmock/gmock.h>

#include "gpu/soft/code/program_fingerprint.h"
#include "tests/unit/soft/rig/state_fields.h"
#include "tests/unit/soft/state/family_ptx.h"
#include "tests/unit/soft/state/saved_context.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;

constexpr uint64_t kVa = 0x700000000000;
constexpr uint64_t kVram = 2 << 20;
const std::string kModule =
    ".version 7.8\n.target sm_75\n.address_size 64\n.global .u32 g[2] = {7, 8};\n.func f() { ret; }\n"
    ".visible .entry k(.param .u64 out) { .reg .b64 %rd<2>; ld.param.u64 %rd1, [out]; st.global.u32 [%rd1], 5; ret; "
    "}\n";

struct Block {
  uint64_t offset, asked;
  uint8_t pinned;
};
struct NamedPlace {
  std::string name;
  uint64_t address;
};

// What a context with the module above, its variable and an allocation of 64 bytes, in that order, is in a file: a
// launch of `k` that has not begun.
struct ContextFile {
  uint64_t magic = 0x1a54584355504756;
  uint32_t version = 7;
  uint32_t capability = 75;
  uint64_t clock = 1000;
  std::vector<Block> blocks = {{0, 8, 1}, {512, 64, 0}};
  uint64_t modules = 1;
  uint32_t parts = 1;
  std::string text = kModule;
  uint32_t most_registers = 0;
  uint64_t fingerprint = 0;
  std::vector<NamedPlace> places = {{"g", kVa}};
  uint64_t globals = 1;
  uint64_t grids = 1;
  uint8_t kind = 0;
  uint64_t module = 0;
  uint64_t function = 0;
  uint32_t grid[3] = {2, 1, 1};
  uint32_t block[3] = {32, 1, 1};
  uint32_t dynamic_shared = 0;
  uint8_t cooperative = 0;
  uint32_t cluster[3] = {0, 0, 0};
  uint64_t workspace = 0;
  uint64_t param_bytes = 8;
  std::vector<uint64_t> params = {kVa + 512};

  Bytes Written() const {
    StateFields out;
    out.U64(magic).U32(version).U32(capability).U64(clock).U64(kVram).U64(blocks.size());
    for (const Block& b : blocks) out.U64(b.offset).U64(b.asked).U8(b.pinned);
    out.U64(1 << 20).U64(0);  // heap
    out.U64(1 << 20).U64(0);  // output
    out.U64(0).U64(0);        // textures
    out.U64(modules).U32(parts);
    for (uint32_t n = 0; n < std::min(parts, 2u); ++n) out.Text(text);
    out.U32(most_registers).U64(fingerprint).U64(globals);
    for (const NamedPlace& p : places) out.Text(p.name).U64(p.address);
    out.U64(grids).U8(kind);
    if (kind == 1) out.U8(1);
    out.U64(module).U64(function);
    for (const uint32_t extent : grid) out.U32(extent);
    for (const uint32_t extent : block) out.U32(extent);
    out.U32(dynamic_shared).U8(cooperative);
    for (const uint32_t extent : cluster) out.U32(extent);
    if (cooperative != 0) out.U64(workspace);
    out.U64(param_bytes);
    for (const uint64_t param : params) out.U64(param);
    out.U64(0).U64(1).U64(0).U64(0).U32(0).U64(0);  // none of its blocks has begun
    out.U64(0);                                     // the page with the allocations
    std::vector<std::byte> page(4096);
    page[0] = std::byte{9};
    for (const std::byte b : page) out.Put(b);
    out.U64(UINT64_MAX);
    Bytes bytes = out.bytes();
    bytes.resize((bytes.size() + 7) / 8 * 8 + 8);
    Seal(bytes);
    return bytes;
  }
};

class ContextFiles : public testing::Test {
 protected:
  ContextFiles() {
    SoftMachine m(BestIsa(), kVram);
    EXPECT_EQ(m.Load(kModule).status, CuStatus::kSuccess);
    const auto& program = *static_cast<const SoftModule&>(*m.module).program();
    good.fingerprint = Fingerprint(program);
    good.function = *program.FindFunction("k");
    no_kernel = *program.FindFunction("f");
    functions = program.functions.size();
  }
  static GpuError Read(const ContextFile& file) {
    SoftMachine m(BestIsa(), kVram);
    auto restored = RestoreAll(m, file.Written());
    return restored ? GpuError{CuStatus::kSuccess, ""} : restored.error();
  }
  // What it says to the good file with one thing changed.
  template <class F>
  std::string With(F change) const {
    ContextFile file = good;
    change(file);
    return Read(file).text;
  }
  ContextFile good;
  uint64_t no_kernel = 0;
  uint64_t functions = 0;
};

TEST_F(ContextFiles, TheGoodOneRuns) {
  SoftMachine m(BestIsa(), kVram);
  auto restored = RestoreAll(m, good.Written());
  ASSERT_TRUE(restored) << restored.error().text;
  EXPECT_EQ(m.Download<uint32_t>(GpuVa{kVa}, 1)[0], 9u) << "what the file says, not what the module begins with";
  ASSERT_EQ(restored->size(), 1u);
  EXPECT_EQ(m.Finish(*restored->front()).status, CuStatus::kSuccess);
  EXPECT_EQ(m.Download<uint32_t>(GpuVa{kVa + 512}, 1)[0], 5u);
  EXPECT_GE(m.module->vram_bytes(), 512u);
}

TEST_F(ContextFiles, OnlyAFreshContextIsReadInto) {
  const auto read = [&](void (*use)(SoftMachine&)) {
    SoftMachine m(BestIsa(), kVram);
    use(m);
    const auto restored = RestoreAll(m, good.Written());
    return restored ? "" : restored.error().text;
  };
  EXPECT_EQ(read([](SoftMachine& m) { m.gpu.SetPrintCapacity(1000); }), "");
  const auto refused = HasSubstr("into a fresh context only");
  EXPECT_THAT(read([](SoftMachine& m) { m.Alloc(1); }), refused);
  EXPECT_THAT(read([](SoftMachine& m) { m.Load(".version 7.8\n.target sm_75\n.address_size 64\n"); }), refused);
  EXPECT_THAT(read([](SoftMachine& m) {
                TextureDesc desc;
                desc.width = 1;
                desc.format = 1;
                desc.levels.push_back({m.Alloc(1), 0, 0});
                EXPECT_TRUE(m.gpu.CreateTexture(desc));
                EXPECT_TRUE(m.gpu.Free(desc.levels[0].address));
              }),
              refused);
  EXPECT_THAT(read([](SoftMachine& m) {
                m.gpu.SetCheck();
                EXPECT_EQ(m.LoadBody(".param .u64 at", "ld.param.u64 %rd1, [at]; ld.global.u8 %r1, [%rd1+1];").status,
                          CuStatus::kSuccess);
                const GpuVa at = m.Alloc(1);
                m.Run("k", {{1, 1, 1}, {1, 1, 1}, 0}, Params().Add(at));
                EXPECT_TRUE(m.gpu.Free(at));
                m.module.reset();
              }),
              refused)
      << "somebody would read what it printed";
}

TEST_F(ContextFiles, HeadersAreChecked) {
  EXPECT_EQ(With([](ContextFile&) {}), "");
  EXPECT_THAT(With([](ContextFile& f) { ++f.magic; }), HasSubstr("this is no saved context"));
  EXPECT_THAT(With([](ContextFile& f) { f.version = 6; }), HasSubstr("version 6, known is 7"));
  EXPECT_THAT(With([](ContextFile& f) { f.version = 8; }), HasSubstr("version 8, known is 7"));
  EXPECT_THAT(With([](ContextFile& f) { f.capability = 90; }),
              HasSubstr("it is of a GPU of compute capability 9.0, this one has 7.5"));
  EXPECT_EQ(With([](ContextFile& f) { f.clock = UINT64_MAX; }), "");
}

TEST_F(ContextFiles, ModulesAreChecked) {
  EXPECT_THAT(With([](ContextFile& f) { f.modules = 65537; }), HasSubstr("bad number of modules (0x10001)"));
  EXPECT_THAT(With([](ContextFile& f) { f.modules = 65536; }), testing::Not(HasSubstr("number of modules")));
  EXPECT_THAT(With([](ContextFile& f) { f.parts = 65537; }), HasSubstr("bad number of parts of a module (0x10001)"));
  EXPECT_THAT(With([](ContextFile& f) { f.parts = 65536; }), testing::Not(HasSubstr("number of parts")));
  EXPECT_THAT(With([](ContextFile& f) { f.text = "no ptx"; }), HasSubstr("saved context: "));
  EXPECT_THAT(With([](ContextFile& f) { f.globals = kVram / 512 + 1; }), HasSubstr("bad number of globals (0x1001)"));
  EXPECT_THAT(With([](ContextFile& f) { f.globals = kVram / 512; }), testing::Not(HasSubstr("number of globals")));
  EXPECT_THAT(With([](ContextFile& f) { f.places[0].name = std::string((1 << 20) + 1, 'g'); }),
              HasSubstr("bad length of a global's name (0x100001)"));
  EXPECT_THAT(With([](ContextFile& f) { f.places[0].name = std::string(1 << 20, 'g'); }), HasSubstr("it is not where"));
  EXPECT_THAT(With([](ContextFile& f) { f.places[0].address += 512; }), HasSubstr("it is not where its context says"));
  EXPECT_THAT(With([](ContextFile& f) { f.blocks[0].asked = 9; }), HasSubstr("it is not where its context says"));
  EXPECT_THAT(With([](ContextFile& f) { f.blocks[0].pinned = 0; }), HasSubstr("it is not where its context says"));
  EXPECT_THAT(With([](ContextFile& f) {
                f.places.push_back({"h", kVa + 512});
                f.globals = 2;
              }),
              HasSubstr("other globals than its context says"));
  EXPECT_THAT(With([](ContextFile& f) { ++f.fingerprint; }), HasSubstr("lays out the code of a module differently"));
  EXPECT_THAT(With([](ContextFile& f) { f.blocks[1].pinned = 1; }), HasSubstr("memory that nothing owns"));
}

TEST_F(ContextFiles, GridsAreChecked) {
  EXPECT_THAT(With([](ContextFile& f) { f.grids = 65537; }), HasSubstr("bad number of grids (0x10001)"));
  EXPECT_THAT(With([](ContextFile& f) { f.grids = 65536; }), testing::Not(HasSubstr("number of grids")));
  EXPECT_THAT(With([](ContextFile& f) { f.kind = 2; }), HasSubstr("bad kind of a grid (0x2)"));
  EXPECT_THAT(With([](ContextFile& f) { f.module = 1; }), HasSubstr("a grid of module 1 of 1"));
  EXPECT_THAT(With([&](ContextFile& f) { f.function = no_kernel; }), HasSubstr("which is no kernel"));
  EXPECT_THAT(With([&](ContextFile& f) { f.function = functions; }), HasSubstr("which is no kernel"));
  for (int d = 0; d < 3; ++d) {
    EXPECT_THAT(With([&](ContextFile& f) { f.grid[d] = 0; }), HasSubstr("grid dimension " + std::to_string(d)));
    EXPECT_THAT(With([&](ContextFile& f) { f.block[d] = 0; }), HasSubstr("block dimension " + std::to_string(d)));
  }
  EXPECT_EQ(With([](ContextFile& f) { f.dynamic_shared = 64 << 10; }), "");
  EXPECT_THAT(With([](ContextFile& f) { f.dynamic_shared = (64 << 10) + 1; }), HasSubstr("dynamic shared memory"));
  EXPECT_EQ(With([](ContextFile& f) { std::fill_n(f.cluster, 3, 1); }), "");
  EXPECT_THAT(With([](ContextFile& f) { f.cluster[0] = 2; }), HasSubstr("0 blocks of a cluster in dimension 1"));
  EXPECT_THAT(With([](ContextFile& f) { f.cooperative = 2; }), HasSubstr("bad kind of a launch (0x2)"));
  EXPECT_THAT(With([](ContextFile& f) { f.param_bytes = 7; }), HasSubstr("7 bytes of parameters, the kernel has 8"));
  EXPECT_THAT(With([](ContextFile& f) { f.param_bytes = 65537; }), HasSubstr("bad bytes of parameters (0x10001)"));
  EXPECT_EQ(With([](ContextFile& f) {
              f.param_bytes = 65536;
              f.params.resize(8192);
            }),
            "");
}

TEST_F(ContextFiles, ACooperativeGridHasItsMemory) {
  const auto cooperative = [](uint64_t workspace, Block block) {
    return [=](ContextFile& f) {
      f.cooperative = 1;
      f.workspace = workspace;
      f.blocks.push_back(block);
    };
  };
  EXPECT_EQ(With(cooperative(kVa + 1024, {1024, 512, 1})), "");
  EXPECT_THAT(With(cooperative(kVa + 512, {1024, 512, 1})), HasSubstr("a cooperative grid without its memory"));
  EXPECT_THAT(With(cooperative(kVa + 1024, {1024, 511, 1})), HasSubstr("a cooperative grid without its memory"));
  EXPECT_THAT(With(cooperative(kVa + 1024, {1024, 512, 0})), HasSubstr("a cooperative grid without its memory"));
  EXPECT_THAT(With(cooperative(kVa, {1024, 512, 1})), HasSubstr("a cooperative grid without its memory"))
      << "that is the module's";
  EXPECT_THAT(With([](ContextFile& f) {
                f.cooperative = 1;
                f.grid[0] = 129;
              }),
              HasSubstr("at most 128 can be resident at once"));
}

TEST_F(ContextFiles, AGridThatLaunchesOthersIsOfAFamily) {
  ContextFile file = good;
  file.text = family_ptx::kHeader + family_ptx::Kernel("k", family_ptx::Launch("k", "1"));
  SoftMachine m(BestIsa(), kVram);
  ASSERT_EQ(m.Load(file.text).status, CuStatus::kSuccess);
  const auto& program = *static_cast<const SoftModule&>(*m.module).program();
  file.fingerprint = Fingerprint(program);
  file.function = *program.FindFunction("k");
  file.places.clear();
  file.globals = 0;
  file.blocks = {{512, 64, 0}};
  file.param_bytes = 16;
  file.params = {0, 0};
  EXPECT_THAT(Read(file).text, HasSubstr("launches kernels, but not with what it launched"));
  file.kind = 1;
  EXPECT_THAT(Read(file).text, testing::Not(HasSubstr("but not with")));
}

}  // namespace
}  // namespace vgpud::soft
