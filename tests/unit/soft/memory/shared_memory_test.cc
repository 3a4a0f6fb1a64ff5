// SPDX-License-Identifier: Apache-2.0
// Memory of the host that kernels reach: where it has to lie, what is refused, and that kernels, copies and the host
// see each other's bytes.
#include "gpu/soft/memory/shared_memory.h"

#include <sys/mman.h>

#include <cstring>
#include <optional>

#include "base/mapping.h"
#include "base/sanitizer.h"
#include "gpu/soft/soft_gpu.h"
#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

constexpr uint64_t kPage = ReachSpace::kAlignment;
constexpr uint64_t kVram = 4 * kPage;
constexpr uint64_t kFirst = 0x6f0000000000;

std::span<std::byte> Piece(const ReachSpace& reach, uint64_t offset, uint64_t bytes) {
  return {reach.device_memory - ReachSpace::kBytes + offset, bytes};
}

TEST(SharedMemory, LiesInReachAtWholePagesAndNowhereTwice) {
  // Only addresses are looked at.
  const ReachSpace reach{reinterpret_cast<std::byte*>(uint64_t{0x300000000000})};
  constexpr uint64_t kBegin = ReachSpace::kGuard, kEnd = ReachSpace::kBytes - ReachSpace::kGuard;
  SharedMemory memory(reach);
  const auto add = [&](uint64_t offset, uint64_t bytes) { return memory.Add(Piece(reach, offset, bytes)); };
  EXPECT_FALSE(add(kBegin, 0));
  EXPECT_FALSE(add(kBegin - kPage, kPage)) << "in the guard";
  EXPECT_FALSE(add(kEnd - kPage, kPage + 1)) << "into the guard";
  EXPECT_FALSE(add(kEnd, kPage));
  EXPECT_FALSE(add(ReachSpace::kBytes, kPage)) << "device memory";
  EXPECT_FALSE(add(kBegin, ~uint64_t{0})) << "wraps";
  EXPECT_FALSE(add(kBegin + 4096, 4096)) << "not at a page";
  EXPECT_FALSE(memory.any());
  EXPECT_EQ(kBegin, add(kBegin, kPage + 4096));
  EXPECT_EQ(kBegin, add(kBegin, kPage + 4096)) << "once more the same";
  EXPECT_FALSE(add(kBegin, kPage)) << "a part of it";
  EXPECT_FALSE(add(kBegin + kPage, kPage)) << "across its end";
  EXPECT_EQ(kBegin + 2 * kPage, add(kBegin + 2 * kPage, 4096));
  EXPECT_EQ(kBegin + 4 * kPage, add(kBegin + 4 * kPage, 4096));
  EXPECT_FALSE(add(kBegin + 3 * kPage, kPage + 1)) << "into the next";
  EXPECT_EQ(kEnd - kPage, add(kEnd - kPage, kPage));

  EXPECT_TRUE(memory.Contains(kBegin, kPage + 4096));
  EXPECT_FALSE(memory.Contains(kBegin, kPage + 4097));
  EXPECT_FALSE(memory.Contains(kBegin - 1, 2));
  EXPECT_FALSE(memory.Contains(kBegin + 1, ~uint64_t{0}));
  EXPECT_TRUE(memory.Contains(kBegin + 2 * kPage + 4095, 1));

  EXPECT_FALSE(memory.Remove(Piece(reach, kBegin, kPage))) << "another size";
  EXPECT_FALSE(memory.Remove(Piece(reach, kBegin + kPage, 4096))) << "its middle";
  EXPECT_EQ(kBegin, memory.Remove(Piece(reach, kBegin, kPage + 4096)));
  EXPECT_FALSE(memory.Remove(Piece(reach, kBegin, kPage + 4096))) << "twice";
  EXPECT_FALSE(memory.Contains(kBegin, 1));
  EXPECT_EQ(kBegin, add(kBegin, kPage)) << "free again";
}

TEST(SharedMemory, NothingIsInReachOfADeviceThatIsAnywhere) {
  SharedMemory memory(ReachSpace{});
  EXPECT_FALSE(memory.possible());
  std::byte byte{};
  EXPECT_FALSE(memory.Add({&byte, 1}));
  EXPECT_FALSE(memory.Remove({&byte, 1}));
}

constexpr char kPtx[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry add(.param .u64 at){
.reg .b32 %r<3>; .reg .b64 %rd<3>;
ld.param.u64 %rd1,[at];
ld.global.u32 %r1,[%rd1]; add.u32 %r1,%r1,1; st.global.u32 [%rd1],%r1; ld.u32 %r2,[%rd1];
ret;
})";

// A device with room for shared memory in front of it, as in an executor.
class SharedWithKernels : public testing::Test {
 protected:
  void SetUp() override {
    if (!kFixedAddresses) GTEST_SKIP() << "a sanitizer's own memory is where this would be";
    const Mapping space = *Mapping::Reserve(ReachSpace::kBytes + (uint64_t{1} << 36));
    const auto up = reinterpret_cast<uintptr_t>(space.data()) + ReachSpace::kBytes + kPage - 1;
    reach.device_memory = reinterpret_cast<std::byte*>(up / kPage * kPage);
    shared = Piece(reach, ReachSpace::kGuard + kPage, kPage + 4096);
  }
  // Nothing is where `space` was.
  void Make() {
    gpu.emplace(kVram, BestIsa(), 1, nullptr, kDefaultCapability, reach);
    void* const at = ::mmap(shared.data(), shared.size(), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    ASSERT_EQ(static_cast<void*>(shared.data()), at);
    auto loaded = gpu->Load(std::as_bytes(std::span(kPtx, sizeof kPtx - 1)));
    ASSERT_TRUE(loaded);
    module = std::move(*loaded);
  }
  void TearDown() override {
    if (gpu) ::munmap(shared.data(), shared.size());
  }
  CuStatus Run(GpuVa at) {
    const auto grid =
        gpu->Launch(*module->Function("add"), {{1, 1, 1}, {1, 1, 1}, 0}, std::as_bytes(std::span(&at, 1)), 0);
    EXPECT_TRUE(grid);
    std::atomic<uint32_t> word{1};
    const auto result = (*grid)->Run({&word, 1}, 1000);
    return result ? CuStatus::kSuccess : result.error().status;
  }
  ReachSpace reach;
  std::span<std::byte> shared;
  std::optional<SoftGpu> gpu;
  std::unique_ptr<GpuModule> module;
};

TEST_F(SharedWithKernels, KernelsCopiesAndTheHostSeeTheSameBytes) {
  Make();
  const GpuVa at{kFirst + ReachSpace::kGuard + kPage};
  EXPECT_EQ(CuStatus::kIllegalAddress, Run(at)) << "not shared yet";
  const auto address = gpu->Share(shared, {});
  ASSERT_TRUE(address);
  EXPECT_EQ(at, *address);
  auto* const words = reinterpret_cast<uint32_t*>(shared.data());
  words[0] = 41;
  EXPECT_EQ(CuStatus::kSuccess, Run(at));
  EXPECT_EQ(42u, words[0]);
  const uint64_t last = Raw(at) + shared.size() - 4;
  EXPECT_EQ(CuStatus::kSuccess, Run(GpuVa{last}));
  EXPECT_EQ(1u, words[shared.size() / 4 - 1]);

  EXPECT_TRUE(gpu->Contains(at, shared.size()));
  EXPECT_FALSE(gpu->Contains(at, shared.size() + 1));
  const GpuVa device = *gpu->Alloc(4096);
  EXPECT_TRUE(gpu->CopyDev(device, at, 8));
  EXPECT_EQ(42u, *gpu->ReadWord(device, 4));
  EXPECT_TRUE(gpu->WriteWord(GpuVa{Raw(at) + 8}, 8, 7));
  EXPECT_EQ(7u, words[2]);
  for (const auto& [offset, bytes] : {std::pair{4, 8u}, {2, 4u}, {0, 2u}, {0, 16u}}) {
    EXPECT_FALSE(gpu->ReadWord(GpuVa{Raw(at) + offset}, bytes)) << offset << ' ' << bytes;
    EXPECT_FALSE(gpu->WriteWord(GpuVa{Raw(at) + offset}, bytes, 0)) << offset << ' ' << bytes;
  }
  EXPECT_FALSE(gpu->Share(shared.subspan(4096), {})) << "not at a page";

  gpu->Unshare(shared);
  EXPECT_EQ(CuStatus::kIllegalAddress, Run(at));
  EXPECT_FALSE(gpu->Contains(at, 1));
  EXPECT_FALSE(gpu->CopyDev(device, at, 8));
}

TEST_F(SharedWithKernels, SuchAContextIsNotSaved) {
  Make();
  GpuModule* const modules[] = {module.get()};
  const auto sink = [](std::span<const std::byte>) -> GpuResult<void> { return {}; };
  EXPECT_TRUE(gpu->Save(sink, modules, {}));
  ASSERT_TRUE(gpu->Share(shared, {}));
  EXPECT_EQ(CuStatus::kNotSupported, gpu->Save(sink, modules, {}).error().status);
}

TEST_F(SharedWithKernels, ManagedVariablesLieWhereTheyAreTold) {
  Make();
  constexpr char kManaged[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .global .attribute(.managed) .align 4 .u32 one = 5;
.visible .global .align 4 .u32 plain = 6;
.visible .global .attribute(.managed) .align 8 .b8 two[600];
.visible .entry nothing(){ ret; }
)";
  const auto load = [&] { return gpu->Load(std::as_bytes(std::span(kManaged, sizeof kManaged - 1))); };
  const GpuVa at = *gpu->Share(shared, {});
  {
    const auto inside = load();
    ASSERT_TRUE(inside);
    EXPECT_EQ(512u + 1024, (*inside)->managed_bytes());
    EXPECT_EQ(512u + 512 + 1024, (*inside)->vram_bytes());
  }
  std::memset(shared.data(), 0xee, shared.size());
  const auto there = [](const std::function<void()>& write) { return write(), true; };
  gpu->PlaceManaged(at, 1535, there);
  EXPECT_EQ(CuStatus::kInvalidValue, load().error().status);
  gpu->PlaceManaged(at, 1536, there);
  const auto outside = load();
  ASSERT_TRUE(outside);
  EXPECT_EQ(512u, (*outside)->vram_bytes());
  EXPECT_EQ(at, (*outside)->FindGlobal("one")->address);
  EXPECT_EQ(Raw(at) + 512, Raw((*outside)->FindGlobal("two")->address));
  EXPECT_LT(Raw(at) + shared.size(), Raw((*outside)->FindGlobal("plain")->address));
  EXPECT_EQ(5u, *gpu->ReadWord(at, 4)) << "its first value";
  EXPECT_EQ(std::byte{0}, shared[512 + 599]);
  EXPECT_EQ(std::byte{0xee}, shared[512 + 600]);
  EXPECT_EQ(std::vector<std::string>{"nothing"}, (*outside)->FunctionNames());
  const auto next = load();
  ASSERT_TRUE(next);
  EXPECT_LT(Raw(at) + shared.size(), Raw((*next)->FindGlobal("one")->address)) << "it was for one module";
}

// Its memory may be taken away at any time, but for the moments in which the loader says that it writes.
TEST_F(SharedWithKernels, ManagedVariablesAreWrittenOnlyWhileTheirMemoryIsThere) {
  Make();
  constexpr char kManaged[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .global .attribute(.managed) .align 8 .u64 pointer = generic(number);
.visible .global .align 4 .u32 number = 6;
.visible .global .attribute(.managed) .align 4 .b8 many[1500000] = {1, 2, 3};
.visible .entry nothing(){ ret; }
)";
  const auto load = [&] { return gpu->Load(std::as_bytes(std::span(kManaged, sizeof kManaged - 1))); };
  const GpuVa at = *gpu->Share(shared, {});
  constexpr uint64_t kBytes = 512 + 1500160;
  constexpr int kWrites = 3;  // of 1 MiB at most
  for (int allowed = 0; allowed <= kWrites; ++allowed) {
    std::memset(shared.data(), 0xee, shared.size());
    int writes = 0;
    const auto held = [&](bool yes) {
      ::mprotect(shared.data(), shared.size(), yes ? PROT_READ | PROT_WRITE : PROT_READ);
    };
    gpu->PlaceManaged(at, kBytes, [&](const std::function<void()>& write) {
      if (writes == allowed) return false;
      ++writes;
      held(true);
      write();
      held(false);
      return true;
    });
    held(false);  // who writes there now is ended by the host
    const auto loaded = load();
    held(true);
    EXPECT_EQ(allowed, writes);
    ASSERT_EQ(allowed == kWrites, loaded.has_value()) << allowed;
    if (!loaded) {
      EXPECT_EQ(CuStatus::kInvalidValue, loaded.error().status);
      EXPECT_NE(std::string::npos, loaded.error().text.find("was taken away while the module was loaded"));
      continue;
    }
    uint64_t pointer = 0;
    std::memcpy(&pointer, shared.data(), sizeof pointer);
    EXPECT_EQ(Raw((*loaded)->FindGlobal("number")->address), pointer);
    EXPECT_EQ(std::byte{3}, shared[512 + 2]);
    EXPECT_EQ(std::byte{0}, shared[512 + 1499999]);
    EXPECT_EQ(std::byte{0xee}, shared[512 + 1500000]);
  }
}

}  // namespace
}  // namespace vgpud::soft
