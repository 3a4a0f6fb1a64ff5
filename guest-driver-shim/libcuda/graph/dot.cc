// SPDX-License-Identifier: Apache-2.0
// Graphs as DOT files: a box for each graph, child graphs in the box of their node.
#include <cstdarg>
#include <cstdio>
#include <memory>
#include <string>

#include "guest-driver-shim/libcuda/graph/conditional.h"

namespace vgpud::cuda {
namespace {

constexpr const char* kTypeNames[] = {
    "KERNEL",       "MEMCPY",           "MEMSET",         "HOST",      "GRAPH",    "EMPTY",        "WAIT_EVENT",
    "EVENT_RECORD", "EXT_SEMAS_SIGNAL", "EXT_SEMAS_WAIT", "MEM_ALLOC", "MEM_FREE", "BATCH_MEM_OP", "CONDITIONAL"};
constexpr unsigned kKnownFlags = CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS * 2 - 1;

__attribute__((format(printf, 1, 2))) std::string Text(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

// Inside of quotes, as DOT has them.
std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? '?' : c;
  }
  return out + '"';
}

const char* Memory(int type) {
  return type == CU_MEMORYTYPE_HOST ? "HOST" : type == CU_MEMORYTYPE_ARRAY ? "ARRAY" : "DEVICE";
}
const void* Address(int type, const void* host, CUdeviceptr device, CUarray array) {
  if (type == CU_MEMORYTYPE_ARRAY) return array;
  return type == CU_MEMORYTYPE_HOST ? host : reinterpret_cast<const void*>(device);
}

// What stands in a node's label behind its type, for each kind of parameters.
struct Details {
  unsigned flags;
  bool Wants(int flag) const { return (flags & (static_cast<unsigned>(flag) | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE)) != 0; }

  std::string operator()(const std::monostate&) const { return ""; }
  std::string operator()(const std::shared_ptr<EmbeddedGraph>&) const { return ""; }
  std::string operator()(const std::shared_ptr<const ConditionalParams>& p) const {
    if (!Wants(CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS)) return "";
    return Text("\nhandle 0x%llx, %zu graphs", p->condition->address, p->graphs.size());
  }
  std::string operator()(const std::shared_ptr<const KernelParams>& kernel) const {
    const CUDA_KERNEL_NODE_PARAMS_v2_st& p = kernel->told;
    std::string text = "\n" + kernel->name;
    if (Wants(CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES))
      text += Text("\nfunction %p", p.func != nullptr ? static_cast<void*>(p.func) : static_cast<void*>(p.kern));
    if (Wants(CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS))
      text += Text("\ngrid (%u, %u, %u) block (%u, %u, %u) shared %u", p.gridDimX, p.gridDimY, p.gridDimZ, p.blockDimX,
                   p.blockDimY, p.blockDimZ, p.sharedMemBytes);
    if (!Wants(CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_ATTRIBUTES)) return text;
    for (const auto& [id, value] : kernel->attributes) text += Text("\nattribute %d: %d", id, value[0]);
    return text;
  }
  std::string operator()(const CUDA_MEMCPY3D_st& p) const {
    std::string text = Text("\n%s to %s", Memory(p.srcMemoryType), Memory(p.dstMemoryType));
    if (!Wants(CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS)) return text;
    return text + Text("\n%p to %p, %zu x %zu x %zu", Address(p.srcMemoryType, p.srcHost, p.srcDevice, p.srcArray),
                       Address(p.dstMemoryType, p.dstHost, p.dstDevice, p.dstArray), p.WidthInBytes, p.Height, p.Depth);
  }
  std::string operator()(const CUDA_MEMSET_NODE_PARAMS_st& p) const {
    if (!Wants(CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS)) return "";
    return Text("\n0x%llx pitch %zu value 0x%x element %u, %zu x %zu", p.dst, p.pitch, p.value, p.elementSize, p.width,
                p.height);
  }
  std::string operator()(const CUDA_HOST_NODE_PARAMS_st& p) const {
    if (!Wants(CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS)) return "";
    return Text("\nfunction %p data %p", reinterpret_cast<void*>(p.fn), p.userData);
  }
  std::string operator()(const CUevent& event) const {
    return Wants(CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS) ? Text("\nevent %p", static_cast<void*>(event)) : "";
  }
  std::string operator()(const std::shared_ptr<const AllocParams>& p) const {
    if (!Wants(CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS)) return "";
    return Text("\n%zu bytes at 0x%llx", p->told.bytesize, p->told.dptr);
  }
  std::string operator()(const FreeParams& p) const {
    return Wants(CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS) ? Text("\n0x%llx", p.address) : "";
  }
};

// Graphs are numbered as they are met, nodes as they were added.
class Printer {
 public:
  explicit Printer(unsigned flags) : details_{flags} {}

  void Print(Graph& graph) {
    const unsigned number = ++graphs_;
    out_ += Text("subgraph cluster_%u {\nlabel=\"graph_%u\";\n", number, number);
    MutexLock lock(graph.mutex);
    std::map<CUgraphNode, size_t> index;
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      const GraphNode& node = *graph.nodes[n];
      index[node.handle] = n;
      std::string label = Text("%zu\n%s", n, kTypeNames[node.type]) + std::visit(details_, node.work.params);
      if (details_.Wants(CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES)) label += Text("\nnode %p", static_cast<void*>(node.handle));
      out_ += Name(number, n) + " [shape=\"box\", label=" + Quoted(label) + "];\n";
      if (const auto* const child = std::get_if<std::shared_ptr<EmbeddedGraph>>(&node.work.params))
        Print(*(*child)->graph);
      if (const auto* const conditional = std::get_if<std::shared_ptr<const ConditionalParams>>(&node.work.params))
        for (const auto& inside : (*conditional)->graphs) Print(*inside->graph);
    }
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      for (const CUgraphNode from : graph.nodes[n]->after)
        if (const auto it = index.find(from); it != index.end())
          out_ += Name(number, it->second) + " -> " + Name(number, n) + ";\n";
    out_ += "}\n";
  }
  std::string text() const { return "digraph dot {\n" + out_ + "}\n"; }

 private:
  static std::string Name(unsigned graph, size_t node) { return Text("\"graph_%u_node_%zu\"", graph, node); }

  Details details_;
  unsigned graphs_ = 0;
  std::string out_;
};

}  // namespace
}  // namespace vgpud::cuda

using namespace vgpud::cuda;

CU_API(cuGraphDebugDotPrint)(CUgraph handle, const char* path, unsigned flags) {
  if (const CUresult error = Driver::Get().Ready()) return error;
  const auto graph = Graphs().Find(handle);
  if (graph == nullptr || path == nullptr || (flags & ~kKnownFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  Printer printer(flags);
  printer.Print(*graph);
  const std::string text = printer.text();
  FILE* const file = fopen(path, "we");
  if (file == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
  const bool written = fwrite(text.data(), 1, text.size(), file) == text.size();
  return fclose(file) == 0 && written ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}
