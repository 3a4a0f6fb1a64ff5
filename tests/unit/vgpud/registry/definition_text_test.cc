// SPDX-License-Identifier: Apache-2.0
// The text of VF definitions: what is written is read again, and nothing else is believed.
#include "vgpud/registry/definition_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "sched/knobs.h"

namespace vgpud::daemon {
namespace {

using Json = nlohmann::json;

VfDefinition Example() {
  VfDefinition definition;
  definition.spec.name = "guest-a";
  definition.spec.vram_bytes = uint64_t{3} << 30;
  definition.spec.host_memory_bytes = uint64_t{1} << 30;
  definition.spec.view.paused = true;
  definition.spec.owner = {.user = 1000, .group = 0xfffffffe};
  definition.uuid = *UuidFromText("6ba7b810-9dad-11d1-80b4-00c04fd430c8");
  definition.number = 7;
  definition.vfio_user_socket = "/run/vgpud/vf/guest-a.sock";
  return definition;
}

void ExpectSame(const VfDefinition& a, const VfDefinition& b) {
  EXPECT_EQ(a.spec.name, b.spec.name);
  EXPECT_EQ(a.spec.vram_bytes, b.spec.vram_bytes);
  EXPECT_EQ(a.spec.host_memory_bytes, b.spec.host_memory_bytes);
  EXPECT_EQ(a.spec.view.paused, b.spec.view.paused);
  EXPECT_EQ(a.spec.owner, b.spec.owner);
  for (const KnobRow& row : Knobs()) {
    if (!row.per_vf) continue;
    EXPECT_EQ(KnobOf(a.spec.view, row.knob), KnobOf(b.spec.view, row.knob)) << row.name;
  }
  EXPECT_EQ(a.uuid, b.uuid);
  EXPECT_EQ(a.number, b.number);
  EXPECT_EQ(a.vfio_user_socket, b.vfio_user_socket);
}

std::string WhyNot(const std::string& text) {
  const auto parsed = ParseDefinition(text);
  return parsed ? "" : parsed.error().error;
}

TEST(Definition, EveryValueOfEveryKnobIsReadAsItWasWritten) {
  ExpectSame(Example(), *ParseDefinition(ToText(Example())));
  std::mt19937_64 random(20261123);
  for (const KnobRow& row : Knobs()) {
    if (!row.per_vf) continue;
    std::vector<uint64_t> values = {row.min, row.max, KnobOf(VfView{}, row.knob)};
    for (int i = 0; i < 200; ++i) values.push_back(row.min + random() % (row.max - row.min + 1));
    for (const uint64_t value : values) {
      VfDefinition definition = Example();
      SetKnob(definition.spec.view, row.knob, value);
      const auto again = ParseDefinition(ToText(definition));
      ASSERT_TRUE(again) << row.name << " " << value << ": " << again.error().error;
      ExpectSame(definition, *again);
    }
  }
}

TEST(Definition, AFieldThatIsMissingUnknownOrOfAnotherKindIsRefused) {
  const Json right = Json::parse(ToText(Example()));
  for (const auto& [field, value] : right.items()) {
    Json without = right, other = right;
    without.erase(field);
    other[field] = Json::array();
    const bool may_lack =
        field.starts_with("owner_") ||
        std::any_of(Knobs().begin(), Knobs().end(), [&](const KnobRow& row) { return row.name == field; });
    EXPECT_EQ(may_lack, WhyNot(without.dump()).empty()) << field;
    EXPECT_NE("", WhyNot(other.dump())) << field;
  }
  Json more = right;
  more["wieght"] = 5;
  EXPECT_EQ(0u, WhyNot(more.dump()).find("unknown field \"wieght\""));
}

TEST(Definition, WhatIsWrongIsNamed) {
  Json json = Json::parse(ToText(Example()));
  const auto with = [&](const char* field, const Json& value) {
    Json changed = json;
    changed[field] = value;
    return WhyNot(changed.dump());
  };
  EXPECT_EQ("version 2 is unknown, this vgpud knows 1", with("version", 2));
  EXPECT_EQ("uuid \"x\" is none", with("uuid", "x"));
  EXPECT_EQ("number 1024 is out of range: allowed is 0 to 1023", with("number", 1024));
  EXPECT_EQ(0u, with("vram_bytes", 1).find("vram_bytes 1 is out of range: allowed is "));
  EXPECT_EQ(0u, with("name", "../x").find("name \"../x\" is not usable"));
  EXPECT_EQ("paused must be true or false, not 1", with("paused", 1));
  EXPECT_EQ(0u, WhyNot("").find("it is not JSON"));
  EXPECT_EQ("it must be a JSON object", WhyNot("[]"));
}

// Cut off anywhere, or with bytes changed: refused, or a definition that is written as it was read.
TEST(Definition, TornTextIsRefused) {
  const std::string right = ToText(Example());
  for (size_t length = 0; length + 2 < right.size(); ++length) EXPECT_NE("", WhyNot(right.substr(0, length))) << length;
  std::mt19937_64 random(20261123);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = right;
    for (uint64_t changes = 1 + random() % 3; changes > 0; --changes)
      text[random() % text.size()] = static_cast<char>(random() % 256);
    const auto parsed = ParseDefinition(text);
    if (!parsed) {
      ++refused;
      continue;
    }
    const auto again = ParseDefinition(ToText(*parsed));
    ASSERT_TRUE(again) << text;
    ExpectSame(*parsed, *again);
  }
  EXPECT_GT(refused, 1000);
  EXPECT_LT(refused, 3000);
}

TEST(Definition, SaysWhichUserMadeIt) {
  VfDefinition definition = Example();
  EXPECT_EQ(std::string::npos, ToText(definition).find("\"user\"")) << "an older vgpud does not know it";
  definition.spec.user = 4294967294;
  EXPECT_EQ(definition.spec.user, ParseDefinition(ToText(definition))->spec.user);
  std::string text = ToText(definition);
  text.replace(text.find("4294967294"), 10, "4294967296");
  EXPECT_EQ("user 4294967296 is not the number of a user", WhyNot(text));
}

TEST(Definition, NamesItsGpuUnlessThatHasNoName) {
  VfDefinition definition = Example();
  definition.spec.gpu = "left";
  EXPECT_EQ("left", ParseDefinition(ToText(definition))->spec.gpu);
  definition.spec.gpu = kUnnamedGpu;
  EXPECT_FALSE(Json::parse(ToText(definition)).contains("gpu")) << "an older vgpud would not read it";
  EXPECT_EQ("", ParseDefinition(ToText(definition))->spec.gpu);
}

}  // namespace
}  // namespace vgpud::daemon
