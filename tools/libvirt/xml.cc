// SPDX-License-Identifier: Apache-2.0
#include "tools/libvirt/xml.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace vgpud::tools {
namespace {

bool IsBlank(const XmlNode& node) {
  return node.kind == XmlNode::Kind::kText && node.text.find_first_not_of(" \t\r\n") == std::string::npos;
}

std::string Escape(std::string_view text, bool in_attribute) {
  static constexpr struct {
    char byte;
    const char* word;
    bool in_text;
  } kWords[] = {{'&', "&amp;", true},    {'<', "&lt;", true},    {'>', "&gt;", true},    {'\r', "&#13;", true},
                {'\'', "&apos;", false}, {'"', "&quot;", false}, {'\n', "&#10;", false}, {'\t', "&#9;", false}};
  std::string out;
  for (const char byte : text) {
    const auto* const row = std::find_if(std::begin(kWords), std::end(kWords), [&](const auto& each) {
      return each.byte == byte && (each.in_text || in_attribute);
    });
    if (row == std::end(kWords))
      out += byte;
    else
      out += row->word;
  }
  return out;
}

void Write(const XmlNode& node, std::string& out) {
  switch (node.kind) {
    case XmlNode::Kind::kText:
      out += Escape(node.text, false);
      return;
    case XmlNode::Kind::kCdata:
      out += fmt::format("<![CDATA[{}]]>", node.text);
      return;
    case XmlNode::Kind::kComment:
      out += fmt::format("<!--{}-->", node.text);
      return;
    case XmlNode::Kind::kInstruction:
      out += fmt::format("<?{}{}{}?>", node.name, node.text.empty() ? "" : " ", node.text);
      return;
    case XmlNode::Kind::kElement:
      break;
  }
  out.append("<").append(node.name);
  for (const XmlAttribute& each : node.attributes)
    out.append(fmt::format(" {}='{}'", each.name, Escape(each.value, true)));
  if (node.children.empty()) {
    out.append("/>");
    return;
  }
  out.append(">");
  for (const XmlNode& child : node.children) Write(child, out);
  out.append(fmt::format("</{}>", node.name));
}

XmlNode Blank(size_t depth) {
  XmlNode node;
  node.kind = XmlNode::Kind::kText;
  node.text.assign(1, '\n').append(2 * depth, ' ');
  return node;
}

}  // namespace

std::string XmlNode::Get(std::string_view attribute) const {
  for (const XmlAttribute& each : attributes)
    if (each.name == attribute) return each.value;
  return {};
}

bool XmlNode::Has(std::string_view attribute) const {
  return std::any_of(attributes.begin(), attributes.end(), [&](const auto& each) { return each.name == attribute; });
}

void XmlNode::Set(std::string_view attribute, std::string value) {
  for (XmlAttribute& each : attributes) {
    if (each.name != attribute) continue;
    each.value = std::move(value);
    return;
  }
  attributes.push_back({std::string(attribute), std::move(value)});
}

void XmlNode::Unset(std::string_view attribute) {
  std::erase_if(attributes, [&](const auto& each) { return each.name == attribute; });
}

const XmlNode* XmlNode::Child(std::string_view its_name) const {
  for (const XmlNode& child : children)
    if (child.IsElement(its_name)) return &child;
  return nullptr;
}

XmlNode* XmlNode::Child(std::string_view its_name) {
  return const_cast<XmlNode*>(std::as_const(*this).Child(its_name));
}

const XmlNode* XmlNode::At(std::initializer_list<std::string_view> way) const {
  const XmlNode* node = this;
  for (const std::string_view step : way)
    if (node != nullptr) node = node->Child(step);
  return node;
}

std::string XmlNode::Inside() const {
  std::string out;
  for (const XmlNode& child : children)
    if (child.kind == Kind::kText || child.kind == Kind::kCdata) out += child.text;
  return out;
}

std::string WriteXml(const XmlNode& node) {
  std::string out;
  Write(node, out);
  return out;
}

std::string WriteXml(const XmlDocument& document) {
  std::string out;
  for (const XmlNode& node : document.before) out.append(WriteXml(node)).append(1, '\n');
  out.append(WriteXml(document.root)).append(1, '\n');
  for (const XmlNode& node : document.after) out.append(WriteXml(node)).append(1, '\n');
  return out;
}

void PutIn(XmlNode& parent, XmlNode child, size_t depth) {
  auto& children = parent.children;
  if (children.empty()) {
    children.push_back(Blank(depth + 1));
    children.push_back(std::move(child));
    children.push_back(Blank(depth));
    return;
  }
  if (!IsBlank(children.back())) {
    children.push_back(std::move(child));
    return;
  }
  const auto at = children.insert(children.end() - 1, Blank(depth + 1));
  children.insert(at + 1, std::move(child));
}

void TakeOut(XmlNode& parent, size_t index) {
  auto& children = parent.children;
  children.erase(children.begin() + static_cast<std::ptrdiff_t>(index));
  if (index > 0 && IsBlank(children[index - 1]))
    children.erase(children.begin() + static_cast<std::ptrdiff_t>(index) - 1);
  if (children.size() == 1 && IsBlank(children[0])) children.clear();
}

bool TakeOut(XmlNode& parent, std::string_view name) {
  for (size_t i = 0; i < parent.children.size(); ++i) {
    if (!parent.children[i].IsElement(name)) continue;
    TakeOut(parent, i);
    return true;
  }
  return false;
}

std::string PrefixOf(const XmlNode& root, std::string_view space) {
  for (const XmlAttribute& each : root.attributes)
    if (each.value == space && each.name.starts_with("xmlns:")) return each.name.substr(6);
  return {};
}

}  // namespace vgpud::tools
