// Textures, surfaces and arrays of every shape through the runtime, each texel compared with what the host computes.
// usage: texture
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "check.h"

namespace {

constexpr int kWidth = 37, kHeight = 19, kDepth = 5;
constexpr int kOutside = 3;  // texels around the image that are read as well

int wrong = 0;

// Where thread n of a volume of w x h x d stands.
__device__ int3 place(int w, int h) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  return make_int3(n % w, n / w % h, n / w / h);
}

float value(int x, int y, int z) { return static_cast<float>(x * x + 100 * y + 3000 * z); }

void compare(const char* what, const std::vector<float>& got, const std::function<float(size_t)>& expected,
             float tolerance = 0) {
  for (size_t i = 0; i < got.size(); ++i) {
    const float want = expected(i);
    if (std::fabs(got[i] - want) <= tolerance) continue;
    if (wrong++ < 10) std::printf("%s: value %zu is %g, expected %g\n", what, i, got[i], want);
    return;
  }
}

template <class T>
class Device {
 public:
  explicit Device(size_t count) : count_(count) { CUDA_CHECK(cudaMalloc(&data_, count * sizeof(T))); }
  explicit Device(const std::vector<T>& host) : Device(host.size()) {
    CUDA_CHECK(cudaMemcpy(data_, host.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~Device() { CUDA_CHECK(cudaFree(data_)); }
  Device(const Device&) = delete;
  T* get() const { return data_; }
  std::vector<T> host() const {
    std::vector<T> out(count_);
    CUDA_CHECK(cudaMemcpy(out.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return out;
  }

 private:
  T* data_ = nullptr;
  size_t count_;
};

cudaArray_t make_array(const cudaChannelFormatDesc& format, cudaExtent extent, unsigned flags, const void* texels,
                       size_t texel_bytes) {
  cudaArray_t array;
  CUDA_CHECK(cudaMalloc3DArray(&array, &format, extent, flags));
  cudaMemcpy3DParms copy{};
  const size_t rows = extent.height == 0 ? 1 : extent.height, slices = extent.depth == 0 ? 1 : extent.depth;
  copy.srcPtr = make_cudaPitchedPtr(const_cast<void*>(texels), extent.width * texel_bytes, extent.width, rows);
  copy.dstArray = array;
  copy.extent = make_cudaExtent(extent.width, rows, slices);
  copy.kind = cudaMemcpyHostToDevice;
  CUDA_CHECK(cudaMemcpy3D(&copy));
  return array;
}

cudaTextureObject_t texture_of(cudaArray_t array, const cudaTextureDesc& how) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureObject_t texture;
  CUDA_CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
  return texture;
}

std::vector<float> image() {
  std::vector<float> texels;
  for (int z = 0; z < kDepth; ++z)
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x) texels.push_back(value(x, y, z));
  return texels;
}

int clamped(int i, int n) { return i < 0 ? 0 : i < n ? i : n - 1; }

// --- filters and addresses of a 2D image ---

extern "C" __global__ void sample_2d(cudaTextureObject_t texture, float* out, int w, int h, float step, float origin_x,
                                     float origin_y, float scale_x, float scale_y) {
  const int3 at = place(w, h);
  if (at.z != 0) return;
  out[at.y * w + at.x] = tex2D<float>(texture, (origin_x + at.x * step) * scale_x, (origin_y + at.y * step) * scale_y);
}

float texel_at(int x, int y, cudaTextureAddressMode mode) {
  const auto fold = [&](int i, int n) {
    if (mode == cudaAddressModeWrap) return ((i % n) + n) % n;
    if (mode == cudaAddressModeMirror) {
      const int period = ((i % (2 * n)) + 2 * n) % (2 * n);
      return period < n ? period : 2 * n - 1 - period;
    }
    return clamped(i, n);
  };
  if (mode == cudaAddressModeBorder && (x < 0 || y < 0 || x >= kWidth || y >= kHeight)) return -5;
  return value(fold(x, kWidth), fold(y, kHeight), 0);
}

void filters_and_addresses() {
  const std::vector<float> texels = image();
  const cudaArray_t array = make_array(cudaCreateChannelDesc<float>(), make_cudaExtent(kWidth, kHeight, 0),
                                       cudaArrayDefault, texels.data(), sizeof(float));
  constexpr int kSteps = 4;  // samples per texel
  const int w = (kWidth + 2 * kOutside) * kSteps, h = (kHeight + 2 * kOutside) * kSteps;
  Device<float> out(w * h);
  for (const cudaTextureAddressMode mode :
       {cudaAddressModeClamp, cudaAddressModeBorder, cudaAddressModeWrap, cudaAddressModeMirror}) {
    for (const bool linear : {false, true}) {
      // Wrap and mirror are for normalised coordinates only.
      const bool normalized = mode == cudaAddressModeWrap || mode == cudaAddressModeMirror;
      cudaTextureDesc how{};
      how.addressMode[0] = how.addressMode[1] = mode;
      how.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
      how.normalizedCoords = normalized;
      how.borderColor[0] = -5;
      const cudaTextureObject_t texture = texture_of(array, how);
      // An eighth of a texel off the grid: no sample lies on the edge between two texels.
      constexpr float kStep = 1.0f / kSteps, kOrigin = -kOutside + 0.125f;
      sample_2d<<<(w * h + 127) / 128, 128>>>(texture, out.get(), w, h, kStep, kOrigin, kOrigin,
                                              normalized ? 1.0f / kWidth : 1, normalized ? 1.0f / kHeight : 1);
      CUDA_CHECK_LAUNCH();
      const auto expected = [&](size_t i) {
        const double x = kOrigin + static_cast<int>(i % w) * kStep, y = kOrigin + static_cast<int>(i / w) * kStep;
        if (!linear) return texel_at(std::floor(x), std::floor(y), mode);
        const int left = std::floor(x - 0.5), top = std::floor(y - 0.5);
        const double a = x - 0.5 - left, b = y - 0.5 - top;
        return static_cast<float>((1 - a) * (1 - b) * texel_at(left, top, mode) +
                                  a * (1 - b) * texel_at(left + 1, top, mode) +
                                  (1 - a) * b * texel_at(left, top + 1, mode) + a * b * texel_at(left + 1, top + 1, mode));
      };
      // Weights have 8 bits; normalising may move a sample by one of their steps.
      compare("filters", out.host(), expected, linear ? (normalized ? 4.0f : 0.01f) : 0);
      CUDA_CHECK(cudaDestroyTextureObject(texture));
    }
  }
  CUDA_CHECK(cudaFreeArray(array));
}

// --- 1D, 3D, layers and cubes ---

extern "C" __global__ void read_shapes(cudaTextureObject_t line, cudaTextureObject_t volume, cudaTextureObject_t lines,
                                       cudaTextureObject_t layers, float* out, int w, int h, int d) {
  const int3 at = place(w, h);
  if (at.z >= d) return;
  const float x = at.x + 0.5f, y = at.y + 0.5f, z = at.z + 0.5f;
  float* to = out + 4 * ((at.z * h + at.y) * w + at.x);
  to[0] = tex1D<float>(line, x);
  to[1] = tex3D<float>(volume, x, y, z);
  to[2] = tex1DLayered<float>(lines, x, at.z);
  to[3] = tex2DLayered<float>(layers, x, y, at.z);
}

void shapes() {
  const std::vector<float> texels = image();
  std::vector<float> lines_texels;
  for (int z = 0; z < kDepth; ++z)
    for (int x = 0; x < kWidth; ++x) lines_texels.push_back(value(x, 0, z));
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  const cudaArray_t arrays[] = {
      make_array(format, make_cudaExtent(kWidth, 0, 0), cudaArrayDefault, texels.data(), sizeof(float)),
      make_array(format, make_cudaExtent(kWidth, kHeight, kDepth), cudaArrayDefault, texels.data(), sizeof(float)),
      make_array(format, make_cudaExtent(kWidth, 0, kDepth), cudaArrayLayered, lines_texels.data(), sizeof(float)),
      make_array(format, make_cudaExtent(kWidth, kHeight, kDepth), cudaArrayLayered, texels.data(), sizeof(float)),
  };
  cudaTextureObject_t textures[4];
  for (int i = 0; i < 4; ++i) textures[i] = texture_of(arrays[i], cudaTextureDesc{});
  constexpr int kCount = kWidth * kHeight * kDepth;
  Device<float> out(4 * kCount);
  read_shapes<<<(kCount + 127) / 128, 128>>>(textures[0], textures[1], textures[2], textures[3], out.get(), kWidth,
                                             kHeight, kDepth);
  CUDA_CHECK_LAUNCH();
  compare("shapes", out.host(), [](size_t i) {
    const int n = static_cast<int>(i / 4), x = n % kWidth, y = n / kWidth % kHeight, z = n / kWidth / kHeight;
    const float expected[] = {value(x, 0, 0), value(x, y, z), value(x, 0, z), value(x, y, z)};
    return expected[i % 4];
  });
  for (int i = 0; i < 4; ++i) {
    CUDA_CHECK(cudaDestroyTextureObject(textures[i]));
    CUDA_CHECK(cudaFreeArray(arrays[i]));
  }
}

extern "C" __global__ void read_cube(cudaTextureObject_t cube, float* out, int n) {
  const int3 at = place(n, n);
  if (at.z >= 6) return;
  const float s = (2 * at.x + 1.0f) / n - 1, t = (2 * at.y + 1.0f) / n - 1;
  const float3 directions[6] = {make_float3(1, -t, -s), make_float3(-1, -t, s), make_float3(s, 1, t),
                                make_float3(s, -1, -t), make_float3(s, -t, 1),  make_float3(-s, -t, -1)};
  const float3 d = directions[at.z];
  out[(at.z * n + at.y) * n + at.x] = texCubemap<float>(cube, d.x, d.y, d.z);
}

void cubes() {
  constexpr int kFace = 8, kCount = kFace * kFace * 6;
  std::vector<float> texels;
  for (int i = 0; i < kCount; ++i) texels.push_back(static_cast<float>(i * 3));
  const cudaArray_t array = make_array(cudaCreateChannelDesc<float>(), make_cudaExtent(kFace, kFace, 6),
                                       cudaArrayCubemap, texels.data(), sizeof(float));
  cudaTextureDesc how{};
  how.normalizedCoords = 1;
  const cudaTextureObject_t texture = texture_of(array, how);
  Device<float> out(kCount);
  read_cube<<<(kCount + 127) / 128, 128>>>(texture, out.get(), kFace);
  CUDA_CHECK_LAUNCH();
  compare("cube", out.host(), [&](size_t i) { return texels[i]; });
  CUDA_CHECK(cudaDestroyTextureObject(texture));
  CUDA_CHECK(cudaFreeArray(array));
}

// --- formats, and memory that is no array ---

extern "C" __global__ void read_memory(cudaTextureObject_t bytes, cudaTextureObject_t rows, cudaTextureObject_t shorts,
                                       float* out, int w, int h) {
  const int3 at = place(w, h);
  if (at.z != 0) return;
  const int n = at.y * w + at.x;
  const uchar4 four = tex1Dfetch<uchar4>(bytes, n);
  out[4 * n] = four.x + four.y + four.z + four.w;
  const float2 two = tex2D<float2>(rows, at.x + 0.5f, at.y + 0.5f);
  out[4 * n + 1] = two.x;
  out[4 * n + 2] = two.y;
  out[4 * n + 3] = tex1Dfetch<float>(shorts, n);
}

void memory() {
  constexpr int kCount = kWidth * kHeight;
  std::vector<uchar4> colours;
  std::vector<float2> pairs;
  std::vector<int16_t> shorts;
  for (int i = 0; i < kCount; ++i) {
    colours.push_back(make_uchar4(i, i / 3, i / 7, 255));
    pairs.push_back(make_float2(i, -i));
    shorts.push_back(static_cast<int16_t>(i * 97 - 32768));
  }
  const Device<uchar4> bytes(colours);
  const Device<int16_t> numbers(shorts);
  float2* rows;
  size_t pitch;
  CUDA_CHECK(cudaMallocPitch(&rows, &pitch, kWidth * sizeof(float2), kHeight));
  CUDA_CHECK(cudaMemcpy2D(rows, pitch, pairs.data(), kWidth * sizeof(float2), kWidth * sizeof(float2), kHeight,
                          cudaMemcpyHostToDevice));
  cudaResourceDesc linear{}, pitched{};
  linear.resType = cudaResourceTypeLinear;
  linear.res.linear.devPtr = bytes.get();
  linear.res.linear.desc = cudaCreateChannelDesc<uchar4>();
  linear.res.linear.sizeInBytes = kCount * sizeof(uchar4);
  pitched.resType = cudaResourceTypePitch2D;
  pitched.res.pitch2D = {rows, cudaCreateChannelDesc<float2>(), kWidth, kHeight, pitch};
  cudaTextureDesc how{};
  cudaTextureObject_t textures[3];
  CUDA_CHECK(cudaCreateTextureObject(&textures[0], &linear, &how, nullptr));
  CUDA_CHECK(cudaCreateTextureObject(&textures[1], &pitched, &how, nullptr));
  linear.res.linear.devPtr = numbers.get();
  linear.res.linear.desc = cudaCreateChannelDesc<short>();
  linear.res.linear.sizeInBytes = kCount * sizeof(int16_t);
  how.readMode = cudaReadModeNormalizedFloat;
  CUDA_CHECK(cudaCreateTextureObject(&textures[2], &linear, &how, nullptr));
  Device<float> out(4 * kCount);
  read_memory<<<(kCount + 127) / 128, 128>>>(textures[0], textures[1], textures[2], out.get(), kWidth, kHeight);
  CUDA_CHECK_LAUNCH();
  compare("memory", out.host(), [&](size_t i) {
    const size_t n = i / 4;
    const float number = std::fmax(shorts[n] / 32767.0f, -1.0f);
    const float expected[] = {static_cast<float>(colours[n].x + colours[n].y + colours[n].z + colours[n].w), pairs[n].x,
                              pairs[n].y, number};
    return expected[i % 4];
  });
  cudaResourceDesc told{};
  CUDA_CHECK(cudaGetTextureObjectResourceDesc(&told, textures[1]));
  if (told.resType != cudaResourceTypePitch2D || told.res.pitch2D.devPtr != rows) {
    std::printf("memory: the texture tells of another resource\n");
    ++wrong;
  }
  for (const cudaTextureObject_t texture : textures) CUDA_CHECK(cudaDestroyTextureObject(texture));
  CUDA_CHECK(cudaFree(rows));
}

// --- surfaces ---

extern "C" __global__ void write_surfaces(cudaSurfaceObject_t flat, cudaSurfaceObject_t layered,
                                          cudaSurfaceObject_t volume, int w, int h, int d) {
  const int3 at = place(w, h);
  if (at.z >= d) return;
  const int number = (at.z * h + at.y) * w + at.x;
  if (at.z == 0) {
    // Once to the right of its place, where it is wanted, and once outside, where it is dropped.
    surf2Dwrite(make_short2(number, -number), flat, at.x * sizeof(short2), at.y);
    surf2Dwrite(make_short2(7, 7), flat, (w + at.x) * sizeof(short2), at.y, cudaBoundaryModeZero);
  }
  surf2DLayeredwrite(static_cast<unsigned char>(number), layered, at.x, at.y, at.z);
  surf3Dwrite(number, volume, at.x * sizeof(int), at.y, at.z);
}

extern "C" __global__ void read_surfaces(cudaSurfaceObject_t flat, cudaSurfaceObject_t layered,
                                         cudaSurfaceObject_t volume, float* out, int w, int h, int d) {
  const int3 at = place(w, h);
  if (at.z >= d) return;
  float* to = out + 4 * ((at.z * h + at.y) * w + at.x);
  const short2 pair = surf2Dread<short2>(flat, at.x * sizeof(short2), at.y);
  to[0] = pair.x;
  to[1] = pair.y;
  to[2] = surf2DLayeredread<unsigned char>(layered, at.x, at.y, at.z);
  to[3] = surf3Dread<int>(volume, (at.x + 1000) * sizeof(int), at.y, at.z, cudaBoundaryModeClamp);
}

void surfaces() {
  cudaArray_t arrays[3];
  const cudaChannelFormatDesc formats[] = {cudaCreateChannelDesc<short2>(), cudaCreateChannelDesc<unsigned char>(),
                                           cudaCreateChannelDesc<int>()};
  const cudaExtent flat = make_cudaExtent(kWidth, kHeight, 0), deep = make_cudaExtent(kWidth, kHeight, kDepth);
  CUDA_CHECK(cudaMalloc3DArray(&arrays[0], &formats[0], flat, cudaArraySurfaceLoadStore));
  CUDA_CHECK(cudaMalloc3DArray(&arrays[1], &formats[1], deep, cudaArrayLayered | cudaArraySurfaceLoadStore));
  CUDA_CHECK(cudaMalloc3DArray(&arrays[2], &formats[2], deep, cudaArraySurfaceLoadStore));
  cudaSurfaceObject_t surfaces[3];
  for (int i = 0; i < 3; ++i) {
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = arrays[i];
    CUDA_CHECK(cudaCreateSurfaceObject(&surfaces[i], &resource));
  }
  constexpr int kCount = kWidth * kHeight * kDepth;
  const int blocks = (kCount + 127) / 128;
  Device<float> out(4 * kCount);
  write_surfaces<<<blocks, 128>>>(surfaces[0], surfaces[1], surfaces[2], kWidth, kHeight, kDepth);
  CUDA_CHECK_LAUNCH();
  read_surfaces<<<blocks, 128>>>(surfaces[0], surfaces[1], surfaces[2], out.get(), kWidth, kHeight, kDepth);
  CUDA_CHECK_LAUNCH();
  compare("surfaces", out.host(), [](size_t i) {
    const int n = static_cast<int>(i / 4), in_layer = n % (kWidth * kHeight);
    const float expected[] = {static_cast<float>(static_cast<short>(in_layer)),
                              static_cast<float>(static_cast<short>(-in_layer)), static_cast<float>(n % 256),
                              static_cast<float>(n / kWidth * kWidth + kWidth - 1)};
    return expected[i % 4];
  });
  // Back to the host: the array's rows, and a part of them.
  std::vector<short2> rows(kWidth * kHeight);
  CUDA_CHECK(cudaMemcpy2DFromArray(rows.data(), kWidth * sizeof(short2), arrays[0], 0, 0, kWidth * sizeof(short2),
                                   kHeight, cudaMemcpyDeviceToHost));
  std::vector<float> firsts;
  for (const short2& pair : rows) firsts.push_back(pair.x);
  compare("rows", firsts, [](size_t i) { return static_cast<float>(i); });
  std::vector<short2> part(4 * 3);
  CUDA_CHECK(cudaMemcpy2DFromArray(part.data(), 4 * sizeof(short2), arrays[0], 10 * sizeof(short2), 7,
                                   4 * sizeof(short2), 3, cudaMemcpyDeviceToHost));
  firsts.clear();
  for (const short2& pair : part) firsts.push_back(pair.x);
  compare("part", firsts, [](size_t i) { return static_cast<float>((7 + i / 4) * kWidth + 10 + i % 4); });
  for (int i = 0; i < 3; ++i) {
    CUDA_CHECK(cudaDestroySurfaceObject(surfaces[i]));
    CUDA_CHECK(cudaFreeArray(arrays[i]));
  }
}

// --- levels, and gathering ---

extern "C" __global__ void read_levels(cudaTextureObject_t levels, cudaTextureObject_t gathered, float* out) {
  const int n = threadIdx.x;
  out[2 * n] = tex2DLod<float>(levels, 0.5f, 0.5f, n * 0.25f);
  const float4 four = tex2Dgather<float4>(gathered, n + 1.0f, 1.0f);
  out[2 * n + 1] = four.x + 10 * four.y + 100 * four.z + 1000 * four.w;
}

void levels() {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaMipmappedArray_t pyramid;
  CUDA_CHECK(cudaMallocMipmappedArray(&pyramid, &format, make_cudaExtent(8, 8, 0), 4));
  for (unsigned level = 0; level < 4; ++level) {
    cudaArray_t array;
    CUDA_CHECK(cudaGetMipmappedArrayLevel(&array, pyramid, level));
    const size_t edge = 8 >> level;
    const std::vector<float> texels(edge * edge, 10.0f * level);
    CUDA_CHECK(cudaMemcpy2DToArray(array, 0, 0, texels.data(), edge * sizeof(float), edge * sizeof(float), edge,
                                   cudaMemcpyHostToDevice));
  }
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeMipmappedArray;
  resource.res.mipmap.mipmap = pyramid;
  cudaTextureDesc how{};
  how.normalizedCoords = 1;
  how.mipmapFilterMode = cudaFilterModeLinear;
  how.maxMipmapLevelClamp = 3;
  cudaTextureObject_t texture;
  CUDA_CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
  std::vector<float> numbers;
  for (int i = 0; i < 20 * 2; ++i) numbers.push_back(static_cast<float>(i % 20 + 3 * (i / 20)));
  const cudaArray_t flat =
      make_array(format, make_cudaExtent(20, 2, 0), cudaArrayTextureGather, numbers.data(), sizeof(float));
  cudaTextureDesc edge{};
  edge.addressMode[0] = edge.addressMode[1] = cudaAddressModeClamp;
  const cudaTextureObject_t gathered = texture_of(flat, edge);
  constexpr int kThreads = 16;
  Device<float> out(2 * kThreads);
  read_levels<<<1, kThreads>>>(texture, gathered, out.get());
  CUDA_CHECK_LAUNCH();
  compare("levels", out.host(), [](size_t i) {
    const int n = static_cast<int>(i / 2);
    if (i % 2 == 0) return n < 12 ? 2.5f * n : 30.0f;
    return static_cast<float>((n + 3) + 10 * (n + 4) + 100 * (n + 1) + 1000 * n);
  });
  CUDA_CHECK(cudaDestroyTextureObject(texture));
  CUDA_CHECK(cudaDestroyTextureObject(gathered));
  CUDA_CHECK(cudaFreeMipmappedArray(pyramid));
  CUDA_CHECK(cudaFreeArray(flat));
}

}  // namespace

int main() {
  filters_and_addresses();
  shapes();
  cubes();
  memory();
  surfaces();
  levels();
  std::printf("texture: %s\n", wrong == 0 ? "PASSED" : "FAILED");
  return wrong == 0 ? 0 : 1;
}
