// SPDX-License-Identifier: Apache-2.0
// What of the daemon's numbers is for whom.
#include "vgpud/registry/admission.h"

#include <gtest/gtest.h>

#include "tests/unit/vgpud/control/control_bed.h"
#include "vgpud/host/share_limits.h"

namespace vgpud::daemon {
namespace {

class AdmissionTest : public testing::Test, protected ControlBed {
 protected:
  // VFs that nobody has started.
  void Fill(size_t vfs) {
    for (auto number = static_cast<uint32_t>(registry_.all().size()); number < vfs; ++number) {
      VfSpec spec;
      spec.name = fmt::format("vf-{}", number);
      spec.vram_bytes = 1 << 20;
      registry_.Add(std::make_shared<Vf>(vfs_->gpus().first().of_vfs(), VfId{number}, Uuid{}, spec));
    }
  }
  std::string WhyNone(const Sharer& whose) {
    const auto number = admission_.FreeNumber("new", whose);
    return number ? "" : number.error().error;
  }

  const Sharer root_{"user 0", true}, user_{"user 7"};
  VfRegistry registry_;
  Admission admission_{vfs_->gpus(), registry_, vfs_->limits(), config_.placement};
};

TEST_F(AdmissionTest, SomeNumbersAreKeptForRoot) {
  constexpr PlaceLimit kLimit = share_limits::kVfs;
  Fill(kLimit.all - kLimit.reserved - 1);
  EXPECT_EQ("", WhyNone(user_));
  Fill(kLimit.all - kLimit.reserved);
  EXPECT_EQ("there are 960 vfs already, the most that all but root may have together: destroy one", WhyNone(user_));
  EXPECT_EQ("", WhyNone(root_));
  Fill(kLimit.all - 1);
  EXPECT_EQ("", WhyNone(root_));
  Fill(kLimit.all);
  EXPECT_EQ("there are 1024 vfs already, the most that one vgpud takes", WhyNone(root_));
}

}  // namespace
}  // namespace vgpud::daemon
