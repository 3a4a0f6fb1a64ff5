// SPDX-License-Identifier: Apache-2.0
// ParseXml: libxml2's tree becomes ours.
#include <fmt/core.h>
#include <libxml/parser.h>
#include <libxml/tree.h>

#include <memory>

#include "tools/libvirt/xml.h"

namespace vgpud::tools {
namespace {

struct FreeParser {
  void operator()(xmlParserCtxtPtr context) const {
    if (context->myDoc != nullptr) xmlFreeDoc(context->myDoc);
    xmlFreeParserCtxt(context);
  }
};

std::string Words(const xmlChar* text) { return text == nullptr ? "" : reinterpret_cast<const char*>(text); }

std::string Name(const xmlNs* space, const xmlChar* name) {
  return space != nullptr && space->prefix != nullptr ? Words(space->prefix) + ":" + Words(name) : Words(name);
}

std::string Value(const xmlAttr* attribute) {
  std::string out;
  for (const xmlNode* part = attribute->children; part != nullptr; part = part->next) out += Words(part->content);
  return out;
}

// libxml2 refuses more than 256 levels.
XmlNode Take(const xmlNode* from) {
  static constexpr struct {
    xmlElementType type;
    XmlNode::Kind kind;
  } kKinds[] = {{XML_TEXT_NODE, XmlNode::Kind::kText},
                {XML_CDATA_SECTION_NODE, XmlNode::Kind::kCdata},
                {XML_COMMENT_NODE, XmlNode::Kind::kComment},
                {XML_PI_NODE, XmlNode::Kind::kInstruction}};
  XmlNode node;
  for (const auto& row : kKinds)
    if (row.type == from->type) node.kind = row.kind;
  if (from->type != XML_ELEMENT_NODE) {
    if (from->type == XML_PI_NODE) node.name = Words(from->name);
    node.text = Words(from->content);
    return node;
  }
  node.name = Name(from->ns, from->name);
  if (from->ns != nullptr) node.space = Words(from->ns->href);
  for (const xmlAttr* each = from->properties; each != nullptr; each = each->next)
    node.attributes.push_back({Name(each->ns, each->name), Value(each)});
  // Where libvirt writes them, which the parser does not say: last in elements of its own, first in others' metadata.
  std::vector<XmlAttribute> spaces;
  for (const xmlNs* space = from->nsDef; space != nullptr; space = space->next)
    spaces.push_back({space->prefix == nullptr ? "xmlns" : "xmlns:" + Words(space->prefix), Words(space->href)});
  const bool is_libvirts = node.name.find(':') == std::string::npos;
  node.attributes.insert(is_libvirts ? node.attributes.end() : node.attributes.begin(), spaces.begin(), spaces.end());
  for (const xmlNode* child = from->children; child != nullptr; child = child->next)
    node.children.push_back(Take(child));
  return node;
}

std::string Reason(xmlParserCtxtPtr context) {
  const xmlError* error = xmlCtxtGetLastError(context);
  if (error == nullptr || error->message == nullptr) return "it is not XML";
  std::string words = error->message;
  while (!words.empty() && words.back() == '\n') words.pop_back();
  return fmt::format("line {}: {}", error->line, words);
}

}  // namespace

Result<XmlDocument> ParseXml(std::string_view text, const std::string& what) {
  if (text.size() > kMaxXmlBytes)
    return Fail(std::errc::file_too_large,
                fmt::format("{}: {} bytes are more than a domain needs (at most {})", what, text.size(), kMaxXmlBytes));
  const std::unique_ptr<xmlParserCtxt, FreeParser> context(xmlNewParserCtxt());
  if (context == nullptr) return Fail(std::errc::not_enough_memory, what + ": no memory for an XML parser");
  const xmlDoc* document = xmlCtxtReadMemory(context.get(), text.data(), static_cast<int>(text.size()), nullptr,
                                             nullptr, XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
  context->myDoc = const_cast<xmlDoc*>(document);
  if (document == nullptr)
    return Fail(std::errc::invalid_argument,
                fmt::format("{}: {} (put it right and try again)", what, Reason(context.get())));
  if (document->intSubset != nullptr)
    return Fail(std::errc::invalid_argument,
                fmt::format("{}: it has a DOCTYPE, which no domain needs: take it out", what));
  XmlDocument out;
  bool seen_root = false;
  for (const xmlNode* node = document->children; node != nullptr; node = node->next) {
    if (node->type == XML_ELEMENT_NODE) {
      out.root = Take(node);
      seen_root = true;
    } else {
      (seen_root ? out.after : out.before).push_back(Take(node));
    }
  }
  return out;
}

}  // namespace vgpud::tools
