// SPDX-License-Identifier: Apache-2.0
// Whose a VF is, from what vgpud and libvirt say.
#include "tools/libvirt/ownership.h"

#include <gtest/gtest.h>

#include "tests/unit/libvirt/domains.h"

namespace vgpud::tools {
namespace {

using Kind = OwnershipStep::Kind;

const DomainId kA{"guest-a", "u-a"}, kB{"guest-b", "u-b"};

VfState Vf(const DomainId& domain, bool ends = false, bool connected = false) {
  return {"v", "vf-uuid", domain, ends, connected};
}

TEST(OwnershipTest, EveryCase) {
  const std::vector<RunningDomain> nobody, has{{kB, {}}, {kA, {"other", "v"}}}, without{{kA, {"other"}}};
  const struct {
    const char* what;
    VfState vf;
    const std::vector<RunningDomain>& running;
    std::vector<Kind> steps;
  } kRows[] = {
      {"nobody's", Vf({}), nobody, {}},
      {"nobody's, connected", Vf({}, false, true), nobody, {}},
      {"known already", Vf(kA), has, {}},
      {"known already, made for it", Vf(kA, true, true), has, {}},
      {"not known yet", Vf({}), has, {Kind::kGive}},
      {"not known yet, connected", Vf({}, false, true), has, {Kind::kGive}},
      {"was another's", Vf(kB), has, {Kind::kGive}},
      {"renamed", Vf({"old", "u-a"}), has, {Kind::kGive}},
      {"about to be plugged in", Vf(kA, true), without, {}},
      {"its domain has ended", Vf(kB), without, {Kind::kTake}},
      {"its domain has ended, made for it", Vf(kB, true), without, {Kind::kDestroy}},
      {"its domain has ended, QEMU has not", Vf(kB, true, true), without, {}},
      {"no domain at all", Vf(kA, true), nobody, {Kind::kDestroy}},
  };
  for (const auto& row : kRows) {
    std::vector<Kind> kinds;
    for (const OwnershipStep& step : PlanOwnership({row.vf}, row.running)) {
      kinds.push_back(step.kind);
      EXPECT_EQ("v", step.vf) << row.what;
      EXPECT_EQ("vf-uuid", step.vf_uuid) << row.what;
      EXPECT_EQ(step.kind == Kind::kGive ? kA : row.vf.domain, step.domain) << row.what;
    }
    EXPECT_EQ(row.steps, kinds) << row.what;
  }
}

TEST(OwnershipTest, ADomainsVfsAreThoseOfItsNoteAndOfItsArguments) {
  XmlNode domain = Parsed(
      "<domain type='kvm'><name>guest-a</name><uuid>u-a</uuid>"
      "<os><type arch='x86_64' machine='q35'>hvm</type></os></domain>");
  EXPECT_TRUE(VfsOf(domain, kPlaces).empty());
  EXPECT_EQ((DomainId{"guest-a", "u-a"}), IdOf(domain));
  ASSERT_TRUE(Attach(domain, Named("one"), kPlaces));
  EXPECT_EQ(std::set<std::string>{"one"}, VfsOf(domain, kPlaces));
  EXPECT_EQ(std::set<std::string>{"one"}, VfsOf(domain, {"/elsewhere"})) << "the note has the name";
  XmlNode by_hand = Parsed(
      "<domain xmlns:q='http://libvirt.org/schemas/domain/qemu/1.0'><q:commandline><q:arg value='-device'/><q:arg "
      "value='{\"driver\":\"vfio-user-pci\",\"socket\":{\"type\":\"unix\",\"path\":\"/run/vgpud/vf/two.sock\"}}'/>"
      "</q:commandline></domain>");
  EXPECT_EQ(std::set<std::string>{"two"}, VfsOf(by_hand, kPlaces));
  EXPECT_TRUE(VfsOf(by_hand, {"/elsewhere"}).empty()) << "another vgpud's socket";
  EXPECT_EQ(DomainId{}, IdOf(by_hand));
}

}  // namespace
}  // namespace vgpud::tools
