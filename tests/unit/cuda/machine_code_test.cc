// SPDX-License-Identifier: Apache-2.0
// Machine code of a toolkit that is newer than the host's driver.
#include "gpu/cuda/module/machine_code.h"

#include "gpu/cuda/memory/ranges.h"
#include "tests/unit/cuda/cuda_fixture.h"

namespace vgpud::driver {
namespace {

// The header of machine code without sections, of that ABI.
std::vector<std::byte> Cubin(uint8_t abi) {
  std::vector<std::byte> code(64);
  std::memcpy(code.data(),
              "\x7f"
              "ELF",
              4);
  code[8] = std::byte{abi};
  return code;
}

constexpr uint16_t kPtx = 1, kElf = 2;
// A fat binary of these entries, of sm_90, as docs/fatbin.md has it.
std::vector<std::byte> Fatbin(const std::vector<std::pair<uint16_t, std::vector<std::byte>>>& entries) {
  std::vector<std::byte> body;
  for (const auto& [kind, payload] : entries) {
    std::vector<std::byte> header(64);
    const auto put = [&header](size_t at, auto value) { std::memcpy(header.data() + at, &value, sizeof value); };
    put(0, kind);
    put(2, uint16_t{0x101});
    put(4, uint32_t{64});
    put(8, uint64_t{payload.size()});
    put(28, uint32_t{90});
    body.insert(body.end(), header.begin(), header.end());
    body.insert(body.end(), payload.begin(), payload.end());
  }
  std::vector<std::byte> image(16);
  const uint32_t magic = 0xba55ed50;
  const uint16_t version = 1, header_bytes = 16;
  const uint64_t bytes = body.size();
  std::memcpy(image.data(), &magic, 4);
  std::memcpy(image.data() + 4, &version, 2);
  std::memcpy(image.data() + 6, &header_bytes, 2);
  std::memcpy(image.data() + 8, &bytes, 8);
  image.insert(image.end(), body.begin(), body.end());
  return image;
}

const std::vector<std::byte> kText = Bytes(kWaitsForAll, sizeof kWaitsForAll);

class MachineCodeTest : public CudaGpuTest {
 protected:
  // What the driver is given, or why it is given nothing.
  std::string Given(const char* told, const std::vector<std::byte>& image) {
    const Told driver((std::string("notes=1 ") + told).c_str());
    const auto card = *Card::Open({Library(), {}});
    Ranges ranges;
    (void)Notes();
    const auto loaded = CudaModule::Load(*card, ranges, image);
    return loaded ? Notes() : Notes() + loaded.error().text;
  }
};

TEST_F(MachineCodeTest, ThatIsTooNewNeverReachesTheDriver) {
  EXPECT_EQ("load machine code\n", Given("version=12040", Cubin(7)));
  EXPECT_THAT(Given("version=12040", Cubin(8)),
              testing::AllOf(StartsWith("machine code of ELF ABI 8"), HasSubstr("12.4")));
  EXPECT_EQ("load machine code\n", Given("version=13000", Cubin(8)));
  EXPECT_THAT(Given("version=13000", Cubin(9)), StartsWith("machine code of ELF ABI 9"));
  EXPECT_EQ("load machine code\n", Given("version=14000", Cubin(9))) << "nobody knows yet";
}

TEST_F(MachineCodeTest, BesideItsPtxThatDoes) {
  EXPECT_EQ("load machine code\n", Given("version=12040", Fatbin({{kElf, Cubin(7)}, {kPtx, kText}})));
  EXPECT_EQ("load PTX\n", Given("version=12040", Fatbin({{kElf, Cubin(7)}, {kElf, Cubin(8)}, {kPtx, kText}})));
  EXPECT_EQ("load PTX\n", Given("version=12040", Fatbin({{kElf, Bytes("\x7f", 1)}, {kPtx, kText}})))
      << "it can't be told";
  EXPECT_THAT(Given("version=12040", Fatbin({{kElf, Cubin(8)}})), HasSubstr("no PTX for sm_91"));
}

}  // namespace
}  // namespace vgpud::driver
