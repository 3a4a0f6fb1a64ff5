// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: a context with valid kernels, hostile launches and memory operations in any order, and saved
// contexts with bytes changed that are read back and go on.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gpu/soft/code/inst.h"
#include "gpu/soft/state/checksum.h"
#include "tests/fuzz/hostile_run.h"

namespace vgpud::soft {
namespace {

constexpr const char* kKernels = R"(.version 7.8
.target sm_75
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.extern .func (.param .b64 r) malloc(.param .b64 a);
.extern .func free(.param .b64 a);
.extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(.param .b64 a, .param .align 4 .b8 b[12], .param .align 4 .b8 c[12], .param .b32 d);
.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 a, .param .b64 b);
.global .align 8 .b64 table[4] = {1, generic(table)+8, 3, 4};
.const .b32 scale[2] = {5, 6};
.extern .shared .b32 dynamic[];
.func (.param .b64 y) deep(.param .b64 n) {
  .reg .b64 %d<4>; .reg .pred %p; .local .b64 keep[3];
  ld.param.b64 %d0, [n]; st.local.b64 [keep+8], %d0; setp.eq.u64 %p, %d0, 0; mov.u64 %d1, 0;
  @%p bra DONE; sub.u64 %d1, %d0, 1;
  { .param .b64 a; .param .b64 b; st.param.b64 [a], %d1; call (b), deep, (a); ld.param.b64 %d1, [b]; }
  DONE: ld.local.b64 %d2, [keep+8]; add.u64 %d1, %d1, %d2; st.param.b64 [y], %d1; ret;
}
.visible .entry child(.param .b64 out) .maxntid 64, 1, 1 {
  .reg .b64 %d<2>; ld.param.b64 %d0, [out]; st.global.b32 [%d0+16], 7; ret;
}
.visible .entry k(.param .b64 out, .param .b64 n, .param .b64 image, .param .b32 mode) {
  .reg .b64 %d<12>; .reg .b32 %r<12>; .reg .pred %p<4>; .reg .f32 %f<8>; .shared .b32 tile[64];
  ld.param.b64 %d0, [out]; ld.param.b64 %d1, [n]; ld.param.b64 %d2, [image]; ld.param.b32 %r0, [mode];
  mov.u32 %r1, %tid.x; mul.wide.u32 %d3, %r1, 4; add.u64 %d3, %d0, %d3;
  and.b32 %r2, %r0, 1; setp.ne.u32 %p0, %r2, 0; @%p0 bra A;
  st.shared.b32 [tile+4], %r1; bar.sync 0; ld.shared.b32 %r3, [tile+4]; st.global.b32 [%d3], %r3; st.shared.b32 [dynamic], %r1;
  A: and.b32 %r2, %r0, 2; setp.ne.u32 %p0, %r2, 0; @%p0 bra B;
  { .param .b64 a; .param .b64 b; st.param.b64 [a], %d1; call (b), deep, (a); ld.param.b64 %d4, [b]; }
  st.global.b32 [%d3], %r3; atom.global.add.u32 %r4, [%d0], %r1;
  B: and.b32 %r2, %r0, 4; setp.ne.u32 %p0, %r2, 0; @%p0 bra C;
  cvt.rn.f32.u32 %f0, %r1; tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d2, {%f0, %f0}]; st.global.f32 [%d3], %f1;
  C: and.b32 %r2, %r0, 8; setp.ne.u32 %p0, %r2, 0; @%p0 bra D;
  suld.b.2d.v4.b32.zero {%r5, %r6, %r7, %r8}, [%d2, {%r0, %r1}]; st.global.b32 [%d3], %r5;
  D: and.b32 %r2, %r0, 16; setp.ne.u32 %p0, %r2, 0; @%p0 bra E;
  { .param .b32 a; .param .b64 b; .param .b64 c; st.param.b64 [b], %d0; st.param.b64 [c], %d1; call (a), vprintf, (b, c); }
  E: and.b32 %r2, %r0, 32; setp.ne.u32 %p0, %r2, 0; @%p0 bra F;
  { .param .b64 a; .param .b64 b; st.param.b64 [b], %d1; call (a), malloc, (b); ld.param.b64 %d5, [a]; st.param.b64 [b], %d5; call free, (b); }
  F: and.b32 %r2, %r0, 64; setp.ne.u32 %p0, %r2, 0; @%p0 bra G;
  mov.u64 %d6, child;
  { .param .b64 a; .param .b64 b; .param .align 4 .b8 c[12]; .param .align 4 .b8 d[12]; .param .b32 e; .param .b32 g;
    st.param.b64 [b], %d6; st.param.b32 [c], 1; st.param.b32 [c+4], 1; st.param.b32 [c+8], 1; st.param.b32 [d], %r0; st.param.b32 [d+4], 1;
    st.param.b32 [d+8], 1; st.param.b32 [e], 0; call (a), __cudaCDP2GetParameterBufferV2, (b, c, d, e); ld.param.b64 %d7, [a];
    setp.eq.u64 %p1, %d7, 0; @%p1 bra G; st.global.b64 [%d7], %d0; st.param.b64 [a], %d7; st.param.b64 [b], %d1;
    call (g), __cudaCDP2LaunchDeviceV2, (a, b); }
  G: mov.u64 %d8, table; ld.global.b64 %d9, [%d8+8]; st.global.b64 [%d0+8], %d9; ret;
}
)";

class Session {
 public:
  Session() : machine_(std::make_unique<HostileMachine>()) { Load(); }
  void Step(FuzzBytes& in) {
    switch (in.Pick(16)) {
      case 0:
        if (const auto at = gpu().Alloc(in.Number())) addresses_.push_back(*at);
        break;
      case 1:
        gpu().Free(Address(in));
        break;
      case 2:
      case 3:
        Copy(in);
        break;
      case 4:
        gpu().CopyDev(Address(in), Address(in), in.Number());
        break;
      case 5:
        gpu().Fill(Address(in), in.Raw<uint32_t>(), uint32_t{1} << in.Pick(3), in.Number());
        break;
      case 6:
        Texture(in);
        break;
      case 7:
        gpu().DestroyTexture(in.Chance(2) ? in.Number() : Handle(in));
        break;
      case 8:
        gpu().SetHeapBytes(in.Number() % (1 << 20));
        break;
      case 9:
        gpu().SetPrintCapacity(in.Number());
        break;
      case 10: {
        std::vector<std::byte> text(in.Byte());
        bool to_stderr = false;
        gpu().TakePrinted(text, &to_stderr);
        break;
      }
      case 11:
        SaveAndRestore(in);
        break;
      default:
        if (const FunctionInfo* function = module_->Function(in.Chance(4) ? "child" : "k"))
          machine_->Run(*function, in, 2000);
        break;
    }
  }

 private:
  SoftGpu& gpu() { return machine_->gpu; }
  void Load() {
    const std::string_view text(kKernels);
    auto module = gpu().Load(std::as_bytes(std::span(text)));
    if (!module) {
      std::fprintf(stderr, "%s\n", module.error().text.c_str());
      std::abort();
    }
    module_ = std::move(*module);
  }
  GpuVa Address(FuzzBytes& in) {
    const uint64_t base = addresses_.empty() || in.Chance(2)
                              ? Raw(machine_->memory)
                              : Raw(addresses_[in.Pick(static_cast<uint32_t>(addresses_.size()))]);
    return GpuVa{in.Chance(3) ? base + in.Number() : in.Chance(8) ? in.Number() : base};
  }
  uint64_t Handle(FuzzBytes& in) { return machine_->handles[in.Pick(static_cast<uint32_t>(machine_->handles.size()))]; }
  void Copy(FuzzBytes& in) {
    std::vector<std::byte> bytes(in.Number() % 8192);
    for (std::byte& b : bytes) b = std::byte{static_cast<uint8_t>(in.empty() ? 0x25 : in.Byte())};
    if (in.Chance(2)) {
      gpu().CopyIn(Address(in), bytes);
    } else {
      gpu().CopyOut(bytes, Address(in));
    }
  }
  void Texture(FuzzBytes& in) {
    TextureDesc desc;
    desc.shape = static_cast<TextureDesc::Shape>(in.Pick(6));
    const uint8_t flags = in.Byte();
    desc.layered = (flags & 1) != 0;
    desc.surface = (flags & 2) != 0;
    desc.linear = (flags & 4) != 0;
    desc.normalized = (flags & 8) != 0;
    desc.read_float = (flags & 16) != 0;
    desc.mip_linear = (flags & 32) != 0;
    desc.srgb = (flags & 64) != 0;
    for (uint32_t* extent : {&desc.width, &desc.height, &desc.depth, &desc.layers})
      *extent = in.Chance(3) ? static_cast<uint32_t>(in.Number()) : 1 + in.Pick(16);
    static constexpr uint32_t kFormats[] = {1, 2, 3, 8, 9, 10, 0x10, 0x20, 0x30};
    desc.format = in.Of(kFormats);
    desc.channels = in.Pick(6);
    for (auto& address : desc.address) address = static_cast<TextureDesc::Address>(in.Pick(5));
    desc.lod_bias = static_cast<float>(in.Byte()) - 128;
    desc.lod_max = in.Byte();
    for (uint32_t n = in.Pick(5); n != 0; --n)
      desc.levels.push_back({Address(in), in.Chance(2) ? in.Number() : 64, in.Chance(2) ? in.Number() : 1024});
    if (const auto handle = gpu().CreateTexture(desc)) machine_->handles.push_back(*handle);
  }
  // A grid that has begun goes into a new context, with some bytes of it changed.
  void SaveAndRestore(FuzzBytes& in) {
    const FunctionInfo* function = module_->Function("k");
    auto grid = gpu().Launch(*function, {{2, 1, 1}, {33, 1, 1}, 16}, machine_->Params(in, function->param_bytes), 64);
    if (!grid) return;
    std::atomic<uint32_t> word{0};
    const auto begun = (*grid)->Run({&word, 0}, 1 + in.Pick(200));
    if (!begun || *begun == GpuGrid::Progress::kDone) return;
    std::string saved;
    GpuModule* modules[] = {module_.get()};
    GpuGrid* grids[] = {grid->get()};
    const auto sink = [&](std::span<const std::byte> bytes) -> GpuResult<void> {
      saved.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return {};
    };
    if (!gpu().Save(sink, modules, grids)) return;
    for (uint32_t n = in.Pick(4); n != 0 && !saved.empty(); --n) {
      const size_t at = in.Raw<uint32_t>() % saved.size();
      saved[in.Chance(2) ? at : at % std::min<size_t>(saved.size(), 4096)] = static_cast<char>(in.Byte());
    }
    // The checksum is against damage, not against malice.
    if (saved.size() >= 16 && !in.Chance(8)) {
      Checksum sum;
      sum.Add(std::as_bytes(std::span(saved)).first(saved.size() - 8));
      const uint64_t value = sum.value();
      std::memcpy(saved.data() + saved.size() - 8, &value, sizeof value);
    }
    auto fresh = std::make_unique<HostileMachine>(HostileMachine::Bare{});
    size_t at = 0;
    const auto source = [&](std::span<std::byte> out) -> GpuResult<size_t> {
      const size_t bytes = std::min(out.size(), saved.size() - at);
      std::memcpy(out.data(), saved.data() + at, bytes);
      at += bytes;
      return bytes;
    };
    auto restored = fresh->gpu.Restore(source);
    if (!restored) return CheckText(restored.error());
    for (const auto& g : restored->grids)
      for (int piece = 0; piece < 4; ++piece)
        if (const auto r = g->Run({&word, 0}, 300); !r || *r == GpuGrid::Progress::kDone) break;
  }

  std::unique_ptr<HostileMachine> machine_;
  std::unique_ptr<GpuModule> module_;
  std::vector<GpuVa> addresses_;
};

}  // namespace
}  // namespace vgpud::soft

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  vgpud::FuzzBytes in(data, size);
  vgpud::soft::Session session;
  for (int steps = 0; steps < 40 && !in.empty(); ++steps) session.Step(in);
  return 0;
}
