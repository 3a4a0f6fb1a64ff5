// SPDX-License-Identifier: Apache-2.0
#include "tools/libvirt/confined_user.h"

#include <gtest/gtest.h>

#include "tests/unit/libvirt/domains.h"

namespace vgpud::tools {
namespace {

const std::string kProfile =
    "#include <tunables/global>\n\nprofile libvirt-8f3c flags=(attach_disconnected) {\n"
    "  #include <abstractions/libvirt-qemu>\n  #include <libvirt/libvirt-8f3c.files>\n}\n";

XmlNode Labelled(const std::string& dac, const std::string& apparmor) {
  DomainParts parts;
  parts.arguments = "<seclabel type='dynamic' model='dac'><label>" + dac + "</label></seclabel>" +
                    "<seclabel type='dynamic' model='apparmor'><label>" + apparmor + "</label></seclabel>";
  return Parsed(DomainText(parts));
}

TEST(LibvirtConfinedUser, IsTheOneOfTheLabel) {
  EXPECT_EQ(QemuUser(Labelled("+64055:+64055", "")), 64055U);
  EXPECT_EQ(QemuUser(Labelled("+0:+0", "")), 0U);
  for (const char* label : {"", "qemu:qemu", "+", "+12", "+99999999999:+0", "+-1:+0"})
    EXPECT_EQ(QemuUser(Labelled(label, "")), std::nullopt) << label;
  EXPECT_EQ(QemuUser(Parsed(DomainText({}))), std::nullopt);
}

TEST(LibvirtConfinedUser, AProfileThatIsNoNameIsNone) {
  EXPECT_EQ(AppArmorProfile(Labelled("", "libvirt-8f3c1f5e-1d9c")), "libvirt-8f3c1f5e-1d9c");
  for (const char* label : {"", "unconfined", "libvirt-../../passwd", "libvirt-a/b", "libvirt-A"})
    EXPECT_EQ(AppArmorProfile(Labelled("", label)), "") << label;
}

TEST(LibvirtConfinedUser, RulesComeAndGoToTheByte) {
  Note note;
  note.hostdevs = {Named("a"), Named("b")};
  const auto with = WithRules(kProfile, note, kPlaces);
  ASSERT_TRUE(with);
  EXPECT_NE(with->find("  \"/run/vgpud/vf/a.sock\" rw, # vgpud\n  \"/run/vgpud/vf/b.sock\" rw, # vgpud\n"),
            std::string::npos);
  EXPECT_NE(with->find("held-state.vdi\" rk, # vgpud\n}\n"), std::string::npos);
  EXPECT_EQ(*WithRules(*with, note, kPlaces), *with);
  EXPECT_EQ(*WithRules(*with, {}, kPlaces), kProfile);
}

TEST(LibvirtConfinedUser, TextThatIsNoProfileIsRefused) {
  for (const char* text : {"", "}", "profile x {", "hello\n"})
    EXPECT_FALSE(WithRules(text, {}, kPlaces).has_value()) << text;
}

}  // namespace
}  // namespace vgpud::tools
