// SPDX-License-Identifier: Apache-2.0
// XML as values: what libxml2 read becomes a tree that can be copied, compared and changed. Only the space inside of
// tags and the kind of quotes are lost: WriteXml writes them as libvirt does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vgpud::tools {

struct XmlAttribute {
  std::string name;  // as written: with its prefix; "xmlns" and "xmlns:x" are attributes like others
  std::string value;
  bool operator==(const XmlAttribute&) const = default;
};

struct XmlNode {
  enum class Kind { kElement, kText, kCdata, kComment, kInstruction };
  Kind kind = Kind::kElement;
  std::string name;   // of an element as written, with its prefix; of an instruction its target
  std::string space;  // namespace of an element, empty: none
  std::string text;   // of all others
  std::vector<XmlAttribute> attributes;
  std::vector<XmlNode> children;
  bool operator==(const XmlNode&) const = default;

  bool IsElement(std::string_view its_name) const { return kind == Kind::kElement && name == its_name; }
  // Empty: it has none of that name.
  std::string Get(std::string_view attribute) const;
  bool Has(std::string_view attribute) const;
  void Set(std::string_view attribute, std::string value);
  void Unset(std::string_view attribute);
  // The first child element of that name, nullptr: none.
  const XmlNode* Child(std::string_view its_name) const;
  XmlNode* Child(std::string_view its_name);
  // The element at the end of a way like {"features", "acpi"}.
  const XmlNode* At(std::initializer_list<std::string_view> way) const;
  // All text directly inside.
  std::string Inside() const;
};

struct XmlDocument {
  std::vector<XmlNode> before;  // comments and instructions around the root
  XmlNode root;
  std::vector<XmlNode> after;
  bool operator==(const XmlDocument&) const = default;
};

// At most kMaxXmlBytes, no DOCTYPE (so no entities of its own), UTF-8 or with its encoding declared. Errors name
// `what`, the line and the reason.
inline constexpr size_t kMaxXmlBytes = size_t{4} << 20;
[[nodiscard]] Result<XmlDocument> ParseXml(std::string_view text, const std::string& what);
// ParseXml(WriteXml(x)) is x.
std::string WriteXml(const XmlDocument& document);
std::string WriteXml(const XmlNode& node);

// Puts `child` last into `parent`, whose depth below the root is `depth`, on a line of its own where the others have
// theirs. TakeOut undoes it to the byte.
void PutIn(XmlNode& parent, XmlNode child, size_t depth);
// Takes out the child number `index`, with the space before it.
void TakeOut(XmlNode& parent, size_t index);
// Takes out the first child element of that name; false: there was none.
bool TakeOut(XmlNode& parent, std::string_view name);
// The prefix that `root` binds to a namespace, empty: none.
std::string PrefixOf(const XmlNode& root, std::string_view space);

}  // namespace vgpud::tools
