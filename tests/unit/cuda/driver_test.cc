// SPDX-License-Identifier: Apache-2.0
// What the driver finds in its process, and what it needs when it makes its context once more.
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gpu/cuda/driver/card_files.h"
#include "gpu/cuda/driver/environment.h"
#include "tests/unit/cuda/cuda_fixture.h"

namespace vgpud::driver {
namespace {

TEST_F(CudaGpuTest, TheDriverIsLoadedInAnEnvironmentOfItsOwn) {
  static const auto loaded_with = reinterpret_cast<const char* (*)()>(
      ::dlsym(::dlopen(Library().c_str(), RTLD_NOW | RTLD_NOLOAD), "FakeCudaLoadedWith"));
  const std::string environment = std::string("\n") + loaded_with();
  for (const char* line : {"\nCUDA_CACHE_DISABLE=1\n", "\nCUDA_MODULE_LOADING=EAGER\n",
                           "\nCUDA_FORCE_PRELOAD_LIBRARIES=1\n", "\nCUDA_MPS_PIPE_DIRECTORY=/proc/no-mps\n"})
    EXPECT_THAT(environment, HasSubstr(line));
  EXPECT_THAT(environment, testing::Not(HasSubstr("\nHOME=")));
  EXPECT_NE(0, ::mkdir("/proc/no-mps", 0700)) << "nobody can make it";
}

TEST_F(CudaGpuTest, AfterAResetTheContextIsMadeAgain) {
  for (int program = 0; program < 3; ++program) {
    const auto memory = gpu_->Alloc(64);
    ASSERT_TRUE(memory) << memory.error().text;
    EXPECT_TRUE(gpu_->WriteWord(*memory, 4, 7));
    auto grid = Launch();
    ASSERT_TRUE(grid) << grid.error().text;
    grid->reset();
    module_.reset();
    gpu_.reset();
    gpu_ = Backend().MakeGpu();
  }
}

TEST_F(CudaGpuTest, TheNameOfAThreadNeedsNoFile) {
  for (const char* name : {"fopen", "fopen64"}) {
    const auto open = reinterpret_cast<decltype(&std::fopen)>(::dlsym(RTLD_DEFAULT, name));
    std::FILE* const named = open("/proc/self/task/999999999/comm", "w");
    ASSERT_NE(nullptr, named) << name;
    EXPECT_GE(std::fputs("name", named), 0);
    EXPECT_EQ(0, std::fclose(named));
  }
  for (const char* path :
       {"/proc/self/task/999999999/stat", "/proc/self/task//comm", "/proc/self/task/1/2/comm", "/nowhere/comm"}) {
    errno = 0;
    EXPECT_EQ(nullptr, std::fopen(path, "w")) << path;
    EXPECT_NE(0, errno) << path;
  }
}

TEST(Compilers, AMissingOneIsNamed) {
  if (::dlopen("libnvidia-nvvm.so.4", RTLD_LAZY) != nullptr) GTEST_SKIP() << "this machine has the driver";
  testing::internal::CaptureStderr();
  LoadCompilers("/nowhere/libcuda.so.1");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, testing::AllOf(HasSubstr("libnvidia-ptxjitcompiler.so.1"), HasSubstr("can't be loaded"),
                                   HasSubstr("libnvidia-nvvm.so.4")));
}

class CardFilesTest : public testing::Test {
 protected:
  CardFilesTest() {
    std::filesystem::create_directories(folder_ / "gpus/0000:65:00.0");
    std::filesystem::create_directories(folder_ / "dev/nvidia-caps");
    std::ofstream(folder_ / "gpus/0000:65:00.0/information")
        << "Model: \t\t NVIDIA H100 PCIe\nIRQ:   \t\t 42\nGPU UUID: \t GPU-0a1b2c3d-0000-1111-2222-333344445555\n"
           "Bus Location: \t 0000:65:00.0\nDevice Minor: \t 3\nGPU Firmware: \t 550.163.01\n";
    for (const char* name : {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset", "nvidia0", "nvidia3",
                             "nvidia-caps/nvidia-cap1"})
      std::ofstream(folder_ / "dev" / name) << "";
  }
  ~CardFilesTest() override { std::filesystem::remove_all(folder_); }
  CardFacts Facts(const std::string& address) { return ReadCardFacts(address, (folder_ / "gpus").string()); }
  std::vector<std::string> Files(const std::string& address, bool of_mig = false) {
    auto files = DeviceFilesOf(address, of_mig, (folder_ / "dev").string(), (folder_ / "gpus").string());
    for (std::string& file : files) file = file.substr((folder_ / "dev").string().size() + 1);
    std::sort(files.begin(), files.end());
    return files;
  }
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("card_files." + std::to_string(::getpid()));
};

TEST_F(CardFilesTest, AreFoundByTheAddressInEachForm) {
  for (const char* address : {"0000:65:00.0", "65:00.0", "00000000:65:00.0"}) {
    EXPECT_EQ("GPU-0a1b2c3d-0000-1111-2222-333344445555", Facts(address).uuid) << address;
    EXPECT_EQ(3u, Facts(address).minor) << address;
  }
  EXPECT_EQ("", Facts("0000:66:00.0").uuid);
  EXPECT_FALSE(Facts("0000:66:00.0").minor);
}

TEST_F(CardFilesTest, AreThoseOfTheCardAndNoOther) {
  EXPECT_EQ((std::vector<std::string>{"nvidia-uvm", "nvidia3", "nvidiactl"}), Files("0000:65:00.0"));
  EXPECT_EQ((std::vector<std::string>{"nvidia-caps/nvidia-cap1", "nvidia-uvm", "nvidia3", "nvidiactl"}),
            Files("0000:65:00.0", true));
  EXPECT_EQ((std::vector<std::string>{"nvidia-uvm", "nvidia0", "nvidia3", "nvidiactl"}), Files("0000:66:00.0"))
      << "where the module does not tell";
}

}  // namespace
}  // namespace vgpud::driver
