// Made by guest-driver-shim/libcuda/gen/generate.py from the CUDA toolkit's headers. Do not edit.
#pragma once
#include <cstddef>
#include <cstdint>
using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
struct CUctx_st;
using CUcontext = CUctx_st*;
struct CUevent_st;
using CUevent = CUevent_st*;
struct CUfunc_st;
using CUfunction = CUfunc_st*;
struct CUgraph_st;
using CUgraph = CUgraph_st*;
struct CUgraphExec_st;
using CUgraphExec = CUgraphExec_st*;
struct CUgraphNode_st;
using CUgraphNode = CUgraphNode_st*;
struct CUkern_st;
using CUkernel = CUkern_st*;
struct CUlib_st;
using CUlibrary = CUlib_st*;
struct CUlinkState_st;
using CUlinkState = CUlinkState_st*;
struct CUmemPoolHandle_st;
using CUmemoryPool = CUmemPoolHandle_st*;
struct CUmod_st;
using CUmodule = CUmod_st*;
struct CUstream_st;
using CUstream = CUstream_st*;

enum : int {
  // cudaError_enum
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_DEINITIALIZED = 4,
  CUDA_ERROR_PROFILER_DISABLED = 5,
  CUDA_ERROR_PROFILER_NOT_INITIALIZED = 6,
  CUDA_ERROR_PROFILER_ALREADY_STARTED = 7,
  CUDA_ERROR_PROFILER_ALREADY_STOPPED = 8,
  CUDA_ERROR_STUB_LIBRARY = 34,
  CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER = 36,
  CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_DEVICE_NOT_LICENSED = 102,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_CONTEXT_ALREADY_CURRENT = 202,
  CUDA_ERROR_MAP_FAILED = 205,
  CUDA_ERROR_UNMAP_FAILED = 206,
  CUDA_ERROR_ARRAY_IS_MAPPED = 207,
  CUDA_ERROR_ALREADY_MAPPED = 208,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_ALREADY_ACQUIRED = 210,
  CUDA_ERROR_NOT_MAPPED = 211,
  CUDA_ERROR_NOT_MAPPED_AS_ARRAY = 212,
  CUDA_ERROR_NOT_MAPPED_AS_POINTER = 213,
  CUDA_ERROR_ECC_UNCORRECTABLE = 214,
  CUDA_ERROR_UNSUPPORTED_LIMIT = 215,
  CUDA_ERROR_CONTEXT_ALREADY_IN_USE = 216,
  CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
  CUDA_ERROR_INVALID_PTX = 218,
  CUDA_ERROR_INVALID_GRAPHICS_CONTEXT = 219,
  CUDA_ERROR_NVLINK_UNCORRECTABLE = 220,
  CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221,
  CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
  CUDA_ERROR_JIT_COMPILATION_DISABLED = 223,
  CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY = 224,
  CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC = 225,
  CUDA_ERROR_CONTAINED = 226,
  CUDA_ERROR_INVALID_SOURCE = 300,
  CUDA_ERROR_FILE_NOT_FOUND = 301,
  CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND = 302,
  CUDA_ERROR_SHARED_OBJECT_INIT_FAILED = 303,
  CUDA_ERROR_OPERATING_SYSTEM = 304,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_ILLEGAL_STATE = 401,
  CUDA_ERROR_LOSSY_QUERY = 402,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING = 703,
  CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
  CUDA_ERROR_PEER_ACCESS_NOT_ENABLED = 705,
  CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE = 708,
  CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
  CUDA_ERROR_ASSERT = 710,
  CUDA_ERROR_TOO_MANY_PEERS = 711,
  CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
  CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
  CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
  CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
  CUDA_ERROR_MISALIGNED_ADDRESS = 716,
  CUDA_ERROR_INVALID_ADDRESS_SPACE = 717,
  CUDA_ERROR_INVALID_PC = 718,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
  CUDA_ERROR_TENSOR_MEMORY_LEAK = 721,
  CUDA_ERROR_NOT_PERMITTED = 800,
  CUDA_ERROR_NOT_SUPPORTED = 801,
  CUDA_ERROR_SYSTEM_NOT_READY = 802,
  CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
  CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804,
  CUDA_ERROR_MPS_CONNECTION_FAILED = 805,
  CUDA_ERROR_MPS_RPC_FAILURE = 806,
  CUDA_ERROR_MPS_SERVER_NOT_READY = 807,
  CUDA_ERROR_MPS_MAX_CLIENTS_REACHED = 808,
  CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED = 809,
  CUDA_ERROR_MPS_CLIENT_TERMINATED = 810,
  CUDA_ERROR_CDP_NOT_SUPPORTED = 811,
  CUDA_ERROR_CDP_VERSION_MISMATCH = 812,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
  CUDA_ERROR_STREAM_CAPTURE_MERGE = 902,
  CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
  CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
  CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
  CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
  CUDA_ERROR_CAPTURED_EVENT = 907,
  CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
  CUDA_ERROR_TIMEOUT = 909,
  CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE = 910,
  CUDA_ERROR_EXTERNAL_DEVICE = 911,
  CUDA_ERROR_INVALID_CLUSTER_SIZE = 912,
  CUDA_ERROR_FUNCTION_NOT_LOADED = 913,
  CUDA_ERROR_INVALID_RESOURCE_TYPE = 914,
  CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION = 915,
  CUDA_ERROR_KEY_ROTATION = 916,
  CUDA_ERROR_UNKNOWN = 999,
  // CUdevice_attribute_enum
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y = 3,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z = 4,
  CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5,
  CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y = 6,
  CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z = 7,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
  CU_DEVICE_ATTRIBUTE_SHARED_MEMORY_PER_BLOCK = 8,
  CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY = 9,
  CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
  CU_DEVICE_ATTRIBUTE_MAX_PITCH = 11,
  CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK = 12,
  CU_DEVICE_ATTRIBUTE_REGISTERS_PER_BLOCK = 12,
  CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
  CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT = 14,
  CU_DEVICE_ATTRIBUTE_GPU_OVERLAP = 15,
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT = 17,
  CU_DEVICE_ATTRIBUTE_INTEGRATED = 18,
  CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY = 19,
  CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH = 21,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH = 22,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT = 23,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH = 24,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT = 25,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH = 26,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH = 27,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT = 28,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS = 29,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_ARRAY_WIDTH = 27,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_ARRAY_HEIGHT = 28,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_ARRAY_NUMSLICES = 29,
  CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT = 30,
  CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS = 31,
  CU_DEVICE_ATTRIBUTE_ECC_ENABLED = 32,
  CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
  CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34,
  CU_DEVICE_ATTRIBUTE_TCC_DRIVER = 35,
  CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,
  CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,
  CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
  CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT = 40,
  CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH = 42,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS = 43,
  CU_DEVICE_ATTRIBUTE_CAN_TEX2D_GATHER = 44,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH = 45,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT = 46,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE = 47,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE = 48,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE = 49,
  CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50,
  CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT = 51,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH = 52,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH = 53,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS = 54,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH = 55,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH = 56,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT = 57,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH = 58,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT = 59,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH = 60,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH = 61,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS = 62,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH = 63,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT = 64,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS = 65,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH = 66,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH = 67,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS = 68,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH = 69,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH = 70,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT = 71,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH = 72,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH = 73,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT = 74,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH = 77,
  CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED = 78,
  CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED = 79,
  CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED = 80,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
  CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
  CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY = 83,
  CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD = 84,
  CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID = 85,
  CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED = 86,
  CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO = 87,
  CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS = 88,
  CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS = 89,
  CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED = 90,
  CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM = 91,
  CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1 = 92,
  CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1 = 93,
  CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1 = 94,
  CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH = 95,
  CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH = 96,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
  CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES = 98,
  CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED = 99,
  CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES = 100,
  CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST = 101,
  CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED = 102,
  CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
  CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
  CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_HANDLE_SUPPORTED = 104,
  CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED = 105,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR = 106,
  CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED = 107,
  CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE = 108,
  CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE = 109,
  CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED = 110,
  CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK = 111,
  CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED = 112,
  CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED = 113,
  CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED = 114,
  CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
  CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED = 116,
  CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS = 117,
  CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING = 118,
  CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES = 119,
  CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH = 120,
  CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED = 121,
  CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS = 122,
  CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR = 123,
  CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED = 124,
  CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED = 125,
  CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT = 126,
  CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED = 127,
  CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED = 128,
  CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS = 129,
  CU_DEVICE_ATTRIBUTE_NUMA_CONFIG = 130,
  CU_DEVICE_ATTRIBUTE_NUMA_ID = 131,
  CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED = 132,
  CU_DEVICE_ATTRIBUTE_MPS_ENABLED = 133,
  CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID = 134,
  CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED = 135,
  CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK = 136,
  CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH = 137,
  CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED = 138,
  CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID = 139,
  CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID = 140,
  CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 141,
  CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED = 142,
  CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED = 143,
  CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED = 144,
  CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 145,
  CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED = 146,
  CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED = 147,
  CU_DEVICE_ATTRIBUTE_MAX = 148,
  // CUfunction_attribute_enum
  CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
  CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
  CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES = 2,
  CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
  CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
  CU_FUNC_ATTRIBUTE_PTX_VERSION = 5,
  CU_FUNC_ATTRIBUTE_BINARY_VERSION = 6,
  CU_FUNC_ATTRIBUTE_CACHE_MODE_CA = 7,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
  CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET = 10,
  CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH = 11,
  CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT = 12,
  CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH = 13,
  CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14,
  CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE = 15,
  CU_FUNC_ATTRIBUTE_MAX = 16,
  // CUpointer_attribute_enum
  CU_POINTER_ATTRIBUTE_CONTEXT = 1,
  CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
  CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
  CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,
  CU_POINTER_ATTRIBUTE_P2P_TOKENS = 5,
  CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
  CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,
  CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
  CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE = 10,
  CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
  CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
  CU_POINTER_ATTRIBUTE_MAPPED = 13,
  CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES = 14,
  CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE = 15,
  CU_POINTER_ATTRIBUTE_ACCESS_FLAGS = 16,
  CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17,
  CU_POINTER_ATTRIBUTE_MAPPING_SIZE = 18,
  CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR = 19,
  CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID = 20,
  CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE = 21,
  // CUstream_flags_enum
  CU_STREAM_DEFAULT = 0,
  CU_STREAM_NON_BLOCKING = 1,
  // CUevent_flags_enum
  CU_EVENT_DEFAULT = 0,
  CU_EVENT_BLOCKING_SYNC = 1,
  CU_EVENT_DISABLE_TIMING = 2,
  CU_EVENT_INTERPROCESS = 4,
  // CUctx_flags_enum
  CU_CTX_SCHED_AUTO = 0,
  CU_CTX_SCHED_SPIN = 1,
  CU_CTX_SCHED_YIELD = 2,
  CU_CTX_SCHED_BLOCKING_SYNC = 4,
  CU_CTX_BLOCKING_SYNC = 4,
  CU_CTX_SCHED_MASK = 7,
  CU_CTX_MAP_HOST = 8,
  CU_CTX_LMEM_RESIZE_TO_MAX = 16,
  CU_CTX_COREDUMP_ENABLE = 32,
  CU_CTX_USER_COREDUMP_ENABLE = 64,
  CU_CTX_SYNC_MEMOPS = 128,
  CU_CTX_FLAGS_MASK = 255,
  // CUmemorytype_enum
  CU_MEMORYTYPE_HOST = 1,
  CU_MEMORYTYPE_DEVICE = 2,
  CU_MEMORYTYPE_ARRAY = 3,
  CU_MEMORYTYPE_UNIFIED = 4,
  // CUlimit_enum
  CU_LIMIT_STACK_SIZE = 0,
  CU_LIMIT_PRINTF_FIFO_SIZE = 1,
  CU_LIMIT_MALLOC_HEAP_SIZE = 2,
  CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH = 3,
  CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT = 4,
  CU_LIMIT_MAX_L2_FETCH_GRANULARITY = 5,
  CU_LIMIT_PERSISTING_L2_CACHE_SIZE = 6,
  CU_LIMIT_SHMEM_SIZE = 7,
  CU_LIMIT_CIG_ENABLED = 8,
  CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED = 9,
  CU_LIMIT_MAX = 10,
  // CUlibraryOption_enum
  CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE = 0,
  CU_LIBRARY_BINARY_IS_PRESERVED = 1,
  CU_LIBRARY_NUM_OPTIONS = 2,
  // CUlaunchAttributeID_enum
  CU_LAUNCH_ATTRIBUTE_IGNORE = 0,
  CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW = 1,
  CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
  CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY = 3,
  CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
  CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE = 5,
  CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
  CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT = 7,
  CU_LAUNCH_ATTRIBUTE_PRIORITY = 8,
  CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP = 9,
  CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN = 10,
  CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION = 11,
  CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT = 12,
  CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE = 13,
  CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 14,
  CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING = 16,
  CU_LAUNCH_ATTRIBUTE_MAX = 17,
  // CUmoduleLoadingMode_enum
  CU_MODULE_EAGER_LOADING = 1,
  CU_MODULE_LAZY_LOADING = 2,
  // CUcomputemode_enum
  CU_COMPUTEMODE_DEFAULT = 0,
  CU_COMPUTEMODE_PROHIBITED = 2,
  CU_COMPUTEMODE_EXCLUSIVE_PROCESS = 3,
  // CUevent_record_flags_enum
  CU_EVENT_RECORD_DEFAULT = 0,
  CU_EVENT_RECORD_EXTERNAL = 1,
  // CUevent_wait_flags_enum
  CU_EVENT_WAIT_DEFAULT = 0,
  CU_EVENT_WAIT_EXTERNAL = 1,
  // CUdriverProcAddress_flags_enum
  CU_GET_PROC_ADDRESS_DEFAULT = 0,
  CU_GET_PROC_ADDRESS_LEGACY_STREAM = 1,
  CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM = 2,
  // CUdriverProcAddressQueryResult_enum
  CU_GET_PROC_ADDRESS_SUCCESS = 0,
  CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
  CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2,
  // CUstreamCaptureStatus_enum
  CU_STREAM_CAPTURE_STATUS_NONE = 0,
  CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
  CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2,
  // CUoccupancy_flags_enum
  CU_OCCUPANCY_DEFAULT = 0,
  CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE = 1,
  // CUshared_carveout_enum
  CU_SHAREDMEM_CARVEOUT_DEFAULT = -1,
  CU_SHAREDMEM_CARVEOUT_MAX_SHARED = 100,
  CU_SHAREDMEM_CARVEOUT_MAX_L1 = 0,
  // CUdevice_P2PAttribute_enum
  CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK = 1,
  CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED = 2,
  CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED = 3,
  CU_DEVICE_P2P_ATTRIBUTE_ACCESS_ACCESS_SUPPORTED = 4,
  CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED = 4,
  CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED = 5,
  // CUfunc_cache_enum
  CU_FUNC_CACHE_PREFER_NONE = 0,
  CU_FUNC_CACHE_PREFER_SHARED = 1,
  CU_FUNC_CACHE_PREFER_L1 = 2,
  CU_FUNC_CACHE_PREFER_EQUAL = 3,
  // CUsharedconfig_enum
  CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE = 0,
  CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE = 1,
  CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE = 2,
  // CUmemLocationType_enum
  CU_MEM_LOCATION_TYPE_INVALID = 0,
  CU_MEM_LOCATION_TYPE_NONE = 0,
  CU_MEM_LOCATION_TYPE_DEVICE = 1,
  CU_MEM_LOCATION_TYPE_HOST = 2,
  CU_MEM_LOCATION_TYPE_HOST_NUMA = 3,
  CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT = 4,
  CU_MEM_LOCATION_TYPE_MAX = 2147483647,
  // CUmemAllocationType_enum
  CU_MEM_ALLOCATION_TYPE_INVALID = 0,
  CU_MEM_ALLOCATION_TYPE_PINNED = 1,
  CU_MEM_ALLOCATION_TYPE_MANAGED = 2,
  CU_MEM_ALLOCATION_TYPE_MAX = 2147483647,
  // CUmemAccess_flags_enum
  CU_MEM_ACCESS_FLAGS_PROT_NONE = 0,
  CU_MEM_ACCESS_FLAGS_PROT_READ = 1,
  CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
  CU_MEM_ACCESS_FLAGS_PROT_MAX = 2147483647,
  // CUmemPool_attribute_enum
  CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1,
  CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC = 2,
  CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
  CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4,
  CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5,
  CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH = 6,
  CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7,
  CU_MEMPOOL_ATTR_USED_MEM_HIGH = 8,
  // CUjitInputType_enum
  CU_JIT_INPUT_CUBIN = 0,
  CU_JIT_INPUT_PTX = 1,
  CU_JIT_INPUT_FATBINARY = 2,
  CU_JIT_INPUT_OBJECT = 3,
  CU_JIT_INPUT_LIBRARY = 4,
  CU_JIT_INPUT_NVVM = 5,
  CU_JIT_NUM_INPUT_TYPES = 6,
  // CUjit_option_enum
  CU_JIT_MAX_REGISTERS = 0,
  CU_JIT_THREADS_PER_BLOCK = 1,
  CU_JIT_WALL_TIME = 2,
  CU_JIT_INFO_LOG_BUFFER = 3,
  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4,
  CU_JIT_ERROR_LOG_BUFFER = 5,
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
  CU_JIT_OPTIMIZATION_LEVEL = 7,
  CU_JIT_TARGET_FROM_CUCONTEXT = 8,
  CU_JIT_TARGET = 9,
  CU_JIT_FALLBACK_STRATEGY = 10,
  CU_JIT_GENERATE_DEBUG_INFO = 11,
  CU_JIT_LOG_VERBOSE = 12,
  CU_JIT_GENERATE_LINE_INFO = 13,
  CU_JIT_CACHE_MODE = 14,
  CU_JIT_NEW_SM3X_OPT = 15,
  CU_JIT_FAST_COMPILE = 16,
  CU_JIT_GLOBAL_SYMBOL_NAMES = 17,
  CU_JIT_GLOBAL_SYMBOL_ADDRESSES = 18,
  CU_JIT_GLOBAL_SYMBOL_COUNT = 19,
  CU_JIT_LTO = 20,
  CU_JIT_FTZ = 21,
  CU_JIT_PREC_DIV = 22,
  CU_JIT_PREC_SQRT = 23,
  CU_JIT_FMA = 24,
  CU_JIT_REFERENCED_KERNEL_NAMES = 25,
  CU_JIT_REFERENCED_KERNEL_COUNT = 26,
  CU_JIT_REFERENCED_VARIABLE_NAMES = 27,
  CU_JIT_REFERENCED_VARIABLE_COUNT = 28,
  CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES = 29,
  CU_JIT_POSITION_INDEPENDENT_CODE = 30,
  CU_JIT_MIN_CTA_PER_SM = 31,
  CU_JIT_MAX_THREADS_PER_BLOCK = 32,
  CU_JIT_OVERRIDE_DIRECTIVE_VALUES = 33,
  CU_JIT_SPLIT_COMPILE = 34,
  CU_JIT_NUM_OPTIONS = 35,
  // CUstreamCaptureMode_enum
  CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
  CU_STREAM_CAPTURE_MODE_RELAXED = 2,
  // CUgraphNodeType_enum
  CU_GRAPH_NODE_TYPE_KERNEL = 0,
  CU_GRAPH_NODE_TYPE_MEMCPY = 1,
  CU_GRAPH_NODE_TYPE_MEMSET = 2,
  CU_GRAPH_NODE_TYPE_HOST = 3,
  CU_GRAPH_NODE_TYPE_GRAPH = 4,
  CU_GRAPH_NODE_TYPE_EMPTY = 5,
  CU_GRAPH_NODE_TYPE_WAIT_EVENT = 6,
  CU_GRAPH_NODE_TYPE_EVENT_RECORD = 7,
  CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL = 8,
  CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT = 9,
  CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10,
  CU_GRAPH_NODE_TYPE_MEM_FREE = 11,
  CU_GRAPH_NODE_TYPE_BATCH_MEM_OP = 12,
  CU_GRAPH_NODE_TYPE_CONDITIONAL = 13,
  // CUgraphInstantiate_flags_enum
  CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH = 1,
  CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD = 2,
  CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH = 4,
  CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY = 8,
  // CUgraphMem_attribute_enum
  CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT = 0,
  CU_GRAPH_MEM_ATTR_USED_MEM_HIGH = 1,
  CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT = 2,
  CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH = 3,
  // CUgraphExecUpdateResult_enum
  CU_GRAPH_EXEC_UPDATE_SUCCESS = 0,
  CU_GRAPH_EXEC_UPDATE_ERROR = 1,
  CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED = 2,
  CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED = 3,
  CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED = 4,
  CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED = 5,
  CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED = 6,
  CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE = 7,
  CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED = 8,
};
inline constexpr unsigned CU_MEMHOSTALLOC_PORTABLE = 0x01;
inline constexpr unsigned CU_MEMHOSTALLOC_DEVICEMAP = 0x02;
inline constexpr unsigned CU_MEMHOSTALLOC_WRITECOMBINED = 0x04;

struct CUlaunchAttribute_st;
struct CUarray_st;
struct CUuuid_st {
  char bytes[16];
};
static_assert(sizeof(CUuuid_st) == 16);
struct CUDA_MEMCPY2D_st {
  unsigned long srcXInBytes;
  unsigned long srcY;
  int srcMemoryType;
  const void * srcHost;
  unsigned long long srcDevice;
  struct CUarray_st * srcArray;
  unsigned long srcPitch;
  unsigned long dstXInBytes;
  unsigned long dstY;
  int dstMemoryType;
  void * dstHost;
  unsigned long long dstDevice;
  struct CUarray_st * dstArray;
  unsigned long dstPitch;
  unsigned long WidthInBytes;
  unsigned long Height;
};
static_assert(sizeof(CUDA_MEMCPY2D_st) == 128);
struct CUDA_MEMCPY3D_st {
  unsigned long srcXInBytes;
  unsigned long srcY;
  unsigned long srcZ;
  unsigned long srcLOD;
  int srcMemoryType;
  const void * srcHost;
  unsigned long long srcDevice;
  struct CUarray_st * srcArray;
  void * reserved0;
  unsigned long srcPitch;
  unsigned long srcHeight;
  unsigned long dstXInBytes;
  unsigned long dstY;
  unsigned long dstZ;
  unsigned long dstLOD;
  int dstMemoryType;
  void * dstHost;
  unsigned long long dstDevice;
  struct CUarray_st * dstArray;
  void * reserved1;
  unsigned long dstPitch;
  unsigned long dstHeight;
  unsigned long WidthInBytes;
  unsigned long Height;
  unsigned long Depth;
};
static_assert(sizeof(CUDA_MEMCPY3D_st) == 200);
struct CUdevprop_st {
  int maxThreadsPerBlock;
  int maxThreadsDim[3];
  int maxGridSize[3];
  int sharedMemPerBlock;
  int totalConstantMemory;
  int SIMDWidth;
  int memPitch;
  int regsPerBlock;
  int clockRate;
  int textureAlign;
};
static_assert(sizeof(CUdevprop_st) == 56);
struct CUlaunchConfig_st {
  unsigned int gridDimX;
  unsigned int gridDimY;
  unsigned int gridDimZ;
  unsigned int blockDimX;
  unsigned int blockDimY;
  unsigned int blockDimZ;
  unsigned int sharedMemBytes;
  struct CUstream_st * hStream;
  struct CUlaunchAttribute_st * attrs;
  unsigned int numAttrs;
};
static_assert(sizeof(CUlaunchConfig_st) == 56);
struct CUctxCreateParams_st {
  struct CUexecAffinityParam_st * execAffinityParams;
  int numExecAffinityParams;
  struct CUctxCigParam_st * cigParams;
};
static_assert(sizeof(CUctxCreateParams_st) == 24);
struct CUmemLocation_st {
  int type;
  int id;
};
static_assert(sizeof(CUmemLocation_st) == 8);
struct CUmemAccessDesc_st {
  struct CUmemLocation_st location;
  int flags;
};
static_assert(sizeof(CUmemAccessDesc_st) == 12);
struct CUmemPoolProps_st {
  int allocType;
  int handleTypes;
  struct CUmemLocation_st location;
  void * win32SecurityAttributes;
  unsigned long maxSize;
  unsigned short usage;
  unsigned char reserved[54];
};
static_assert(sizeof(CUmemPoolProps_st) == 88);
struct CUDA_KERNEL_NODE_PARAMS_v2_st {
  struct CUfunc_st * func;
  unsigned int gridDimX;
  unsigned int gridDimY;
  unsigned int gridDimZ;
  unsigned int blockDimX;
  unsigned int blockDimY;
  unsigned int blockDimZ;
  unsigned int sharedMemBytes;
  void ** kernelParams;
  void ** extra;
  struct CUkern_st * kern;
  struct CUctx_st * ctx;
};
static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS_v2_st) == 72);
struct CUDA_MEMSET_NODE_PARAMS_st {
  unsigned long long dst;
  unsigned long pitch;
  unsigned int value;
  unsigned int elementSize;
  unsigned long width;
  unsigned long height;
};
static_assert(sizeof(CUDA_MEMSET_NODE_PARAMS_st) == 40);
struct CUDA_HOST_NODE_PARAMS_st {
  void (*fn)(void *);
  void * userData;
};
static_assert(sizeof(CUDA_HOST_NODE_PARAMS_st) == 16);
struct CUDA_MEM_ALLOC_NODE_PARAMS_v1_st {
  struct CUmemPoolProps_st poolProps;
  const struct CUmemAccessDesc_st * accessDescs;
  unsigned long accessDescCount;
  unsigned long bytesize;
  unsigned long long dptr;
};
static_assert(sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v1_st) == 120);
struct CUlaunchAttribute_st {
  int id;
  char pad[4];
  alignas(8) unsigned char value[64];
};
static_assert(sizeof(CUlaunchAttribute_st) == 72);

extern "C" {
CUresult cuArray3DCreate(struct CUarray_st **, const struct CUDA_ARRAY3D_DESCRIPTOR_v1_st *);
CUresult cuArray3DCreate_v2(struct CUarray_st **, const struct CUDA_ARRAY3D_DESCRIPTOR_st *);
CUresult cuArray3DGetDescriptor(struct CUDA_ARRAY3D_DESCRIPTOR_v1_st *, struct CUarray_st *);
CUresult cuArray3DGetDescriptor_v2(struct CUDA_ARRAY3D_DESCRIPTOR_st *, struct CUarray_st *);
CUresult cuArrayCreate(struct CUarray_st **, const struct CUDA_ARRAY_DESCRIPTOR_v1_st *);
CUresult cuArrayCreate_v2(struct CUarray_st **, const struct CUDA_ARRAY_DESCRIPTOR_st *);
CUresult cuArrayDestroy(struct CUarray_st *);
CUresult cuArrayGetDescriptor(struct CUDA_ARRAY_DESCRIPTOR_v1_st *, struct CUarray_st *);
CUresult cuArrayGetDescriptor_v2(struct CUDA_ARRAY_DESCRIPTOR_st *, struct CUarray_st *);
CUresult cuArrayGetMemoryRequirements(struct CUDA_ARRAY_MEMORY_REQUIREMENTS_st *, struct CUarray_st *, int);
CUresult cuArrayGetPlane(struct CUarray_st **, struct CUarray_st *, unsigned int);
CUresult cuArrayGetSparseProperties(struct CUDA_ARRAY_SPARSE_PROPERTIES_st *, struct CUarray_st *);
CUresult cuCheckpointProcessCheckpoint(int, struct CUcheckpointCheckpointArgs_st *);
CUresult cuCheckpointProcessGetRestoreThreadId(int, int *);
CUresult cuCheckpointProcessGetState(int, int *);
CUresult cuCheckpointProcessLock(int, struct CUcheckpointLockArgs_st *);
CUresult cuCheckpointProcessRestore(int, struct CUcheckpointRestoreArgs_st *);
CUresult cuCheckpointProcessUnlock(int, struct CUcheckpointUnlockArgs_st *);
CUresult cuCoredumpGetAttribute(int, void *, unsigned long *);
CUresult cuCoredumpGetAttributeGlobal(int, void *, unsigned long *);
CUresult cuCoredumpSetAttribute(int, void *, unsigned long *);
CUresult cuCoredumpSetAttributeGlobal(int, void *, unsigned long *);
CUresult cuCtxAttach(struct CUctx_st **, unsigned int);
CUresult cuCtxCreate(struct CUctx_st **, unsigned int, int);
CUresult cuCtxCreate_v2(struct CUctx_st **, unsigned int, int);
CUresult cuCtxCreate_v3(struct CUctx_st **, struct CUexecAffinityParam_st *, int, unsigned int, int);
CUresult cuCtxCreate_v4(struct CUctx_st **, struct CUctxCreateParams_st *, unsigned int, int);
CUresult cuCtxDestroy(struct CUctx_st *);
CUresult cuCtxDestroy_v2(struct CUctx_st *);
CUresult cuCtxDetach(struct CUctx_st *);
CUresult cuCtxDisablePeerAccess(struct CUctx_st *);
CUresult cuCtxEnablePeerAccess(struct CUctx_st *, unsigned int);
CUresult cuCtxFromGreenCtx(struct CUctx_st **, struct CUgreenCtx_st *);
CUresult cuCtxGetApiVersion(struct CUctx_st *, unsigned int *);
CUresult cuCtxGetCacheConfig(int *);
CUresult cuCtxGetCurrent(struct CUctx_st **);
CUresult cuCtxGetDevResource(struct CUctx_st *, struct CUdevResource_st *, int);
CUresult cuCtxGetDevice(int *);
CUresult cuCtxGetDevice_v2(int *, struct CUctx_st *);
CUresult cuCtxGetExecAffinity(struct CUexecAffinityParam_st *, int);
CUresult cuCtxGetFlags(unsigned int *);
CUresult cuCtxGetId(struct CUctx_st *, unsigned long long *);
CUresult cuCtxGetLimit(unsigned long *, int);
CUresult cuCtxGetSharedMemConfig(int *);
CUresult cuCtxGetStreamPriorityRange(int *, int *);
CUresult cuCtxPopCurrent(struct CUctx_st **);
CUresult cuCtxPopCurrent_v2(struct CUctx_st **);
CUresult cuCtxPushCurrent(struct CUctx_st *);
CUresult cuCtxPushCurrent_v2(struct CUctx_st *);
CUresult cuCtxRecordEvent(struct CUctx_st *, struct CUevent_st *);
CUresult cuCtxResetPersistingL2Cache();
CUresult cuCtxSetCacheConfig(int);
CUresult cuCtxSetCurrent(struct CUctx_st *);
CUresult cuCtxSetFlags(unsigned int);
CUresult cuCtxSetLimit(int, unsigned long);
CUresult cuCtxSetSharedMemConfig(int);
CUresult cuCtxSynchronize();
CUresult cuCtxSynchronize_v2(struct CUctx_st *);
CUresult cuCtxWaitEvent(struct CUctx_st *, struct CUevent_st *);
CUresult cuDestroyExternalMemory(struct CUextMemory_st *);
CUresult cuDestroyExternalSemaphore(struct CUextSemaphore_st *);
CUresult cuDevResourceGenerateDesc(struct CUdevResourceDesc_st **, struct CUdevResource_st *, unsigned int);
CUresult cuDevSmResourceSplitByCount(struct CUdevResource_st *, unsigned int *, const struct CUdevResource_st *, struct CUdevResource_st *, unsigned int, unsigned int);
CUresult cuDeviceCanAccessPeer(int *, int, int);
CUresult cuDeviceComputeCapability(int *, int *, int);
CUresult cuDeviceGet(int *, int);
CUresult cuDeviceGetAttribute(int *, int, int);
CUresult cuDeviceGetByPCIBusId(int *, const char *);
CUresult cuDeviceGetCount(int *);
CUresult cuDeviceGetDefaultMemPool(struct CUmemPoolHandle_st **, int);
CUresult cuDeviceGetDevResource(int, struct CUdevResource_st *, int);
CUresult cuDeviceGetExecAffinitySupport(int *, int, int);
CUresult cuDeviceGetGraphMemAttribute(int, int, void *);
CUresult cuDeviceGetHostAtomicCapabilities(unsigned int *, const int *, unsigned int, int);
CUresult cuDeviceGetLuid(char *, unsigned int *, int);
CUresult cuDeviceGetMemPool(struct CUmemPoolHandle_st **, int);
CUresult cuDeviceGetName(char *, int, int);
CUresult cuDeviceGetNvSciSyncAttributes(void *, int, int);
CUresult cuDeviceGetP2PAtomicCapabilities(unsigned int *, const int *, unsigned int, int, int);
CUresult cuDeviceGetP2PAttribute(int *, int, int, int);
CUresult cuDeviceGetPCIBusId(char *, int, int);
CUresult cuDeviceGetProperties(struct CUdevprop_st *, int);
CUresult cuDeviceGetTexture1DLinearMaxWidth(unsigned long *, int, unsigned int, int);
CUresult cuDeviceGetUuid(struct CUuuid_st *, int);
CUresult cuDeviceGetUuid_v2(struct CUuuid_st *, int);
CUresult cuDeviceGraphMemTrim(int);
CUresult cuDevicePrimaryCtxGetState(int, unsigned int *, int *);
CUresult cuDevicePrimaryCtxRelease(int);
CUresult cuDevicePrimaryCtxRelease_v2(int);
CUresult cuDevicePrimaryCtxReset(int);
CUresult cuDevicePrimaryCtxReset_v2(int);
CUresult cuDevicePrimaryCtxRetain(struct CUctx_st **, int);
CUresult cuDevicePrimaryCtxSetFlags(int, unsigned int);
CUresult cuDevicePrimaryCtxSetFlags_v2(int, unsigned int);
CUresult cuDeviceRegisterAsyncNotification(int, void (*)(struct CUasyncNotificationInfo_st *, void *, struct CUasyncCallbackEntry_st *), void *, struct CUasyncCallbackEntry_st **);
CUresult cuDeviceSetGraphMemAttribute(int, int, void *);
CUresult cuDeviceSetMemPool(int, struct CUmemPoolHandle_st *);
CUresult cuDeviceTotalMem(unsigned int *, int);
CUresult cuDeviceTotalMem_v2(unsigned long *, int);
CUresult cuDeviceUnregisterAsyncNotification(int, struct CUasyncCallbackEntry_st *);
CUresult cuDriverGetVersion(int *);
CUresult cuEventCreate(struct CUevent_st **, unsigned int);
CUresult cuEventDestroy(struct CUevent_st *);
CUresult cuEventDestroy_v2(struct CUevent_st *);
CUresult cuEventElapsedTime(float *, struct CUevent_st *, struct CUevent_st *);
CUresult cuEventElapsedTime_v2(float *, struct CUevent_st *, struct CUevent_st *);
CUresult cuEventQuery(struct CUevent_st *);
CUresult cuEventRecord(struct CUevent_st *, struct CUstream_st *);
CUresult cuEventRecordWithFlags(struct CUevent_st *, struct CUstream_st *, unsigned int);
CUresult cuEventRecordWithFlags_ptsz(struct CUevent_st *, struct CUstream_st *, unsigned int);
CUresult cuEventRecord_ptsz(struct CUevent_st *, struct CUstream_st *);
CUresult cuEventSynchronize(struct CUevent_st *);
CUresult cuExternalMemoryGetMappedBuffer(unsigned long long *, struct CUextMemory_st *, const struct CUDA_EXTERNAL_MEMORY_BUFFER_DESC_st *);
CUresult cuExternalMemoryGetMappedMipmappedArray(struct CUmipmappedArray_st **, struct CUextMemory_st *, const struct CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC_st *);
CUresult cuFlushGPUDirectRDMAWrites(int, int);
CUresult cuFuncGetAttribute(int *, int, struct CUfunc_st *);
CUresult cuFuncGetModule(struct CUmod_st **, struct CUfunc_st *);
CUresult cuFuncGetName(const char **, struct CUfunc_st *);
CUresult cuFuncGetParamInfo(struct CUfunc_st *, unsigned long, unsigned long *, unsigned long *);
CUresult cuFuncIsLoaded(int *, struct CUfunc_st *);
CUresult cuFuncLoad(struct CUfunc_st *);
CUresult cuFuncSetAttribute(struct CUfunc_st *, int, int);
CUresult cuFuncSetBlockShape(struct CUfunc_st *, int, int, int);
CUresult cuFuncSetCacheConfig(struct CUfunc_st *, int);
CUresult cuFuncSetSharedMemConfig(struct CUfunc_st *, int);
CUresult cuFuncSetSharedSize(struct CUfunc_st *, unsigned int);
CUresult cuGetErrorName(int, const char **);
CUresult cuGetErrorString(int, const char **);
CUresult cuGetExportTable(const void **, const struct CUuuid_st *);
CUresult cuGetProcAddress(const char *, void **, int, unsigned long);
CUresult cuGetProcAddress_v2(const char *, void **, int, unsigned long, int *);
CUresult cuGraphAddBatchMemOpNode(struct CUgraphNode_st **, struct CUgraph_st *, struct CUgraphNode_st *const *, unsigned long, const struct CUDA_BATCH_MEM_OP_NODE_PARAMS_v1_st *);
CUresult cuGraphAddChildGraphNode(struct CUgraphNode_st **, struct CUgraph_st *, struct CUgraphNode_st *const *, unsigned long, struct CUgraph_st *);
CUresult cuGraphAddDependencies(struct CUgraph_st *, struct CUgraphNode_st *const *, struct CUgraphNode_st *const *, unsigned long);
CUresult cuGraphAddDependencies_v2(struct CUgraph_st *, struct CUgraphNode_st *const *, struct CUgraphNode_st *const *, const struct CUgraphEdgeData_st *, unsigned long);
CUresult cuGraphAddEmptyNode(struct CUgraphNode_st **, struct CUgraph_st *, struct CUgraphNode_st *const *, unsigned long);
CUresult cuGraphAddEventRecordNode(struct CUgraphNode_st **, struct CUgraph_st *, struct CUgraphNode_st *const *, unsigned long, struct CUevent_st *);
CUresult cuGraphAddEventWaitNode(struct CUgraphNode_st **, struct CUgraph_st *, struct CUgraphNode_st *const *, unsigned long, struct CUevent_st *);
CUresult cuGraphAddExternalSemaphoresSignalNode(struct CUgraphNode_st **, struct CUgraph_st *, struct CUgraphNode_st *const *, unsigned long, const struct CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_st *);
CUresult cuGraphAddExternalSemaphoresWaitNode(struct CUgraphNode_st **, struct CUgraph_st *, struct CUgraphNode_st *const *, unsigned long, const struct CUDA_EXT_SEM_WAIT_NODE_PARAMS_st *);
CUresult cuGraphAddHostNode(struct CUgraphNode_st **, struct CUgraph_st *, struct CUgraphNode_st *const *, unsigned long, const struct CUDA_HOST_NODE_PARAMS_st *);
CUresult cuGraphAddKernelNode(struct CUgraphNode_st **, struct CUgraph_st *, struct CUgraphNode_st *const *, unsigned long, const struct CUDA_KERNEL_NODE_PARAMS_st *);
CUresult cuGraphAddKernelNode_v2(struct CUgraphNode_st **, struct CUgraph_st *, struct CUgraphNode_st *const *, unsigned long, const struct CUDA_KERNEL_NODE_PARAMS_v2_st *);
CUresult cuGraphAddMemAllocNode(struct CUgraphNode_st **, struct CUgraph_st *, struct CUgraphNode_st *const *, unsigned long, struct CUDA_MEM_ALLOC_NODE_PARAMS_v1_st *);
CUresult cuGraphAddMemFreeNode(struct CUgraphNode_st **, struct CUgraph_st *, struct CUgraphNode_st *const *, unsigned long, unsigned long long);
CUresult cuGraphAddMemcpyNode(struct CUgraphNode_st **, struct CUgraph_st *, struct CUgraphNode_st *const *, unsigned long, const struct CUDA_MEMCPY3D_st *, struct CUctx_st *);
CUresult cuGraphAddMemsetNode(struct CUgraphNode_st **, struct CUgraph_st *, struct CUgraphNode_st *const *, unsigned long, const struct CUDA_MEMSET_NODE_PARAMS_st *, struct CUctx_st *);
CUresult cuGraphAddNode(struct CUgraphNode_st **, struct CUgraph_st *, struct CUgraphNode_st *const *, unsigned long, struct CUgraphNodeParams_st *);
CUresult cuGraphAddNode_v2(struct CUgraphNode_st **, struct CUgraph_st *, struct CUgraphNode_st *const *, const struct CUgraphEdgeData_st *, unsigned long, struct CUgraphNodeParams_st *);
CUresult cuGraphBatchMemOpNodeGetParams(struct CUgraphNode_st *, struct CUDA_BATCH_MEM_OP_NODE_PARAMS_v1_st *);
CUresult cuGraphBatchMemOpNodeSetParams(struct CUgraphNode_st *, const struct CUDA_BATCH_MEM_OP_NODE_PARAMS_v1_st *);
CUresult cuGraphChildGraphNodeGetGraph(struct CUgraphNode_st *, struct CUgraph_st **);
CUresult cuGraphClone(struct CUgraph_st **, struct CUgraph_st *);
CUresult cuGraphConditionalHandleCreate(unsigned long *, struct CUgraph_st *, struct CUctx_st *, unsigned int, unsigned int);
CUresult cuGraphCreate(struct CUgraph_st **, unsigned int);
CUresult cuGraphDebugDotPrint(struct CUgraph_st *, const char *, unsigned int);
CUresult cuGraphDestroy(struct CUgraph_st *);
CUresult cuGraphDestroyNode(struct CUgraphNode_st *);
CUresult cuGraphEventRecordNodeGetEvent(struct CUgraphNode_st *, struct CUevent_st **);
CUresult cuGraphEventRecordNodeSetEvent(struct CUgraphNode_st *, struct CUevent_st *);
CUresult cuGraphEventWaitNodeGetEvent(struct CUgraphNode_st *, struct CUevent_st **);
CUresult cuGraphEventWaitNodeSetEvent(struct CUgraphNode_st *, struct CUevent_st *);
CUresult cuGraphExecBatchMemOpNodeSetParams(struct CUgraphExec_st *, struct CUgraphNode_st *, const struct CUDA_BATCH_MEM_OP_NODE_PARAMS_v1_st *);
CUresult cuGraphExecChildGraphNodeSetParams(struct CUgraphExec_st *, struct CUgraphNode_st *, struct CUgraph_st *);
CUresult cuGraphExecDestroy(struct CUgraphExec_st *);
CUresult cuGraphExecEventRecordNodeSetEvent(struct CUgraphExec_st *, struct CUgraphNode_st *, struct CUevent_st *);
CUresult cuGraphExecEventWaitNodeSetEvent(struct CUgraphExec_st *, struct CUgraphNode_st *, struct CUevent_st *);
CUresult cuGraphExecExternalSemaphoresSignalNodeSetParams(struct CUgraphExec_st *, struct CUgraphNode_st *, const struct CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_st *);
CUresult cuGraphExecExternalSemaphoresWaitNodeSetParams(struct CUgraphExec_st *, struct CUgraphNode_st *, const struct CUDA_EXT_SEM_WAIT_NODE_PARAMS_st *);
CUresult cuGraphExecGetFlags(struct CUgraphExec_st *, unsigned long *);
CUresult cuGraphExecHostNodeSetParams(struct CUgraphExec_st *, struct CUgraphNode_st *, const struct CUDA_HOST_NODE_PARAMS_st *);
CUresult cuGraphExecKernelNodeSetParams(struct CUgraphExec_st *, struct CUgraphNode_st *, const struct CUDA_KERNEL_NODE_PARAMS_st *);
CUresult cuGraphExecKernelNodeSetParams_v2(struct CUgraphExec_st *, struct CUgraphNode_st *, const struct CUDA_KERNEL_NODE_PARAMS_v2_st *);
CUresult cuGraphExecMemcpyNodeSetParams(struct CUgraphExec_st *, struct CUgraphNode_st *, const struct CUDA_MEMCPY3D_st *, struct CUctx_st *);
CUresult cuGraphExecMemsetNodeSetParams(struct CUgraphExec_st *, struct CUgraphNode_st *, const struct CUDA_MEMSET_NODE_PARAMS_st *, struct CUctx_st *);
CUresult cuGraphExecNodeSetParams(struct CUgraphExec_st *, struct CUgraphNode_st *, struct CUgraphNodeParams_st *);
CUresult cuGraphExecUpdate(struct CUgraphExec_st *, struct CUgraph_st *, struct CUgraphNode_st **, int *);
CUresult cuGraphExecUpdate_v2(struct CUgraphExec_st *, struct CUgraph_st *, struct CUgraphExecUpdateResultInfo_st *);
CUresult cuGraphExternalSemaphoresSignalNodeGetParams(struct CUgraphNode_st *, struct CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_st *);
CUresult cuGraphExternalSemaphoresSignalNodeSetParams(struct CUgraphNode_st *, const struct CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_st *);
CUresult cuGraphExternalSemaphoresWaitNodeGetParams(struct CUgraphNode_st *, struct CUDA_EXT_SEM_WAIT_NODE_PARAMS_st *);
CUresult cuGraphExternalSemaphoresWaitNodeSetParams(struct CUgraphNode_st *, const struct CUDA_EXT_SEM_WAIT_NODE_PARAMS_st *);
CUresult cuGraphGetEdges(struct CUgraph_st *, struct CUgraphNode_st **, struct CUgraphNode_st **, unsigned long *);
CUresult cuGraphGetEdges_v2(struct CUgraph_st *, struct CUgraphNode_st **, struct CUgraphNode_st **, struct CUgraphEdgeData_st *, unsigned long *);
CUresult cuGraphGetNodes(struct CUgraph_st *, struct CUgraphNode_st **, unsigned long *);
CUresult cuGraphGetRootNodes(struct CUgraph_st *, struct CUgraphNode_st **, unsigned long *);
CUresult cuGraphHostNodeGetParams(struct CUgraphNode_st *, struct CUDA_HOST_NODE_PARAMS_st *);
CUresult cuGraphHostNodeSetParams(struct CUgraphNode_st *, const struct CUDA_HOST_NODE_PARAMS_st *);
CUresult cuGraphInstantiate(struct CUgraphExec_st **, struct CUgraph_st *, struct CUgraphNode_st **, char *, unsigned long);
CUresult cuGraphInstantiateWithFlags(struct CUgraphExec_st **, struct CUgraph_st *, unsigned long long);
CUresult cuGraphInstantiateWithParams(struct CUgraphExec_st **, struct CUgraph_st *, struct CUDA_GRAPH_INSTANTIATE_PARAMS_st *);
CUresult cuGraphInstantiateWithParams_ptsz(struct CUgraphExec_st **, struct CUgraph_st *, struct CUDA_GRAPH_INSTANTIATE_PARAMS_st *);
CUresult cuGraphInstantiate_v2(struct CUgraphExec_st **, struct CUgraph_st *, struct CUgraphNode_st **, char *, unsigned long);
CUresult cuGraphKernelNodeCopyAttributes(struct CUgraphNode_st *, struct CUgraphNode_st *);
CUresult cuGraphKernelNodeGetAttribute(struct CUgraphNode_st *, int, union CUlaunchAttributeValue_union *);
CUresult cuGraphKernelNodeGetParams(struct CUgraphNode_st *, struct CUDA_KERNEL_NODE_PARAMS_st *);
CUresult cuGraphKernelNodeGetParams_v2(struct CUgraphNode_st *, struct CUDA_KERNEL_NODE_PARAMS_v2_st *);
CUresult cuGraphKernelNodeSetAttribute(struct CUgraphNode_st *, int, const union CUlaunchAttributeValue_union *);
CUresult cuGraphKernelNodeSetParams(struct CUgraphNode_st *, const struct CUDA_KERNEL_NODE_PARAMS_st *);
CUresult cuGraphKernelNodeSetParams_v2(struct CUgraphNode_st *, const struct CUDA_KERNEL_NODE_PARAMS_v2_st *);
CUresult cuGraphLaunch(struct CUgraphExec_st *, struct CUstream_st *);
CUresult cuGraphLaunch_ptsz(struct CUgraphExec_st *, struct CUstream_st *);
CUresult cuGraphMemAllocNodeGetParams(struct CUgraphNode_st *, struct CUDA_MEM_ALLOC_NODE_PARAMS_v1_st *);
CUresult cuGraphMemFreeNodeGetParams(struct CUgraphNode_st *, unsigned long long *);
CUresult cuGraphMemcpyNodeGetParams(struct CUgraphNode_st *, struct CUDA_MEMCPY3D_st *);
CUresult cuGraphMemcpyNodeSetParams(struct CUgraphNode_st *, const struct CUDA_MEMCPY3D_st *);
CUresult cuGraphMemsetNodeGetParams(struct CUgraphNode_st *, struct CUDA_MEMSET_NODE_PARAMS_st *);
CUresult cuGraphMemsetNodeSetParams(struct CUgraphNode_st *, const struct CUDA_MEMSET_NODE_PARAMS_st *);
CUresult cuGraphNodeFindInClone(struct CUgraphNode_st **, struct CUgraphNode_st *, struct CUgraph_st *);
CUresult cuGraphNodeGetDependencies(struct CUgraphNode_st *, struct CUgraphNode_st **, unsigned long *);
CUresult cuGraphNodeGetDependencies_v2(struct CUgraphNode_st *, struct CUgraphNode_st **, struct CUgraphEdgeData_st *, unsigned long *);
CUresult cuGraphNodeGetDependentNodes(struct CUgraphNode_st *, struct CUgraphNode_st **, unsigned long *);
CUresult cuGraphNodeGetDependentNodes_v2(struct CUgraphNode_st *, struct CUgraphNode_st **, struct CUgraphEdgeData_st *, unsigned long *);
CUresult cuGraphNodeGetEnabled(struct CUgraphExec_st *, struct CUgraphNode_st *, unsigned int *);
CUresult cuGraphNodeGetType(struct CUgraphNode_st *, int *);
CUresult cuGraphNodeSetEnabled(struct CUgraphExec_st *, struct CUgraphNode_st *, unsigned int);
CUresult cuGraphNodeSetParams(struct CUgraphNode_st *, struct CUgraphNodeParams_st *);
CUresult cuGraphReleaseUserObject(struct CUgraph_st *, struct CUuserObject_st *, unsigned int);
CUresult cuGraphRemoveDependencies(struct CUgraph_st *, struct CUgraphNode_st *const *, struct CUgraphNode_st *const *, unsigned long);
CUresult cuGraphRemoveDependencies_v2(struct CUgraph_st *, struct CUgraphNode_st *const *, struct CUgraphNode_st *const *, const struct CUgraphEdgeData_st *, unsigned long);
CUresult cuGraphRetainUserObject(struct CUgraph_st *, struct CUuserObject_st *, unsigned int, unsigned int);
CUresult cuGraphUpload(struct CUgraphExec_st *, struct CUstream_st *);
CUresult cuGraphUpload_ptsz(struct CUgraphExec_st *, struct CUstream_st *);
CUresult cuGraphicsMapResources(unsigned int, struct CUgraphicsResource_st **, struct CUstream_st *);
CUresult cuGraphicsMapResources_ptsz(unsigned int, struct CUgraphicsResource_st **, struct CUstream_st *);
CUresult cuGraphicsResourceGetMappedMipmappedArray(struct CUmipmappedArray_st **, struct CUgraphicsResource_st *);
CUresult cuGraphicsResourceGetMappedPointer(unsigned int *, unsigned int *, struct CUgraphicsResource_st *);
CUresult cuGraphicsResourceGetMappedPointer_v2(unsigned long long *, unsigned long *, struct CUgraphicsResource_st *);
CUresult cuGraphicsResourceSetMapFlags(struct CUgraphicsResource_st *, unsigned int);
CUresult cuGraphicsResourceSetMapFlags_v2(struct CUgraphicsResource_st *, unsigned int);
CUresult cuGraphicsSubResourceGetMappedArray(struct CUarray_st **, struct CUgraphicsResource_st *, unsigned int, unsigned int);
CUresult cuGraphicsUnmapResources(unsigned int, struct CUgraphicsResource_st **, struct CUstream_st *);
CUresult cuGraphicsUnmapResources_ptsz(unsigned int, struct CUgraphicsResource_st **, struct CUstream_st *);
CUresult cuGraphicsUnregisterResource(struct CUgraphicsResource_st *);
CUresult cuGreenCtxCreate(struct CUgreenCtx_st **, struct CUdevResourceDesc_st *, int, unsigned int);
CUresult cuGreenCtxDestroy(struct CUgreenCtx_st *);
CUresult cuGreenCtxGetDevResource(struct CUgreenCtx_st *, struct CUdevResource_st *, int);
CUresult cuGreenCtxGetId(struct CUgreenCtx_st *, unsigned long long *);
CUresult cuGreenCtxRecordEvent(struct CUgreenCtx_st *, struct CUevent_st *);
CUresult cuGreenCtxStreamCreate(struct CUstream_st **, struct CUgreenCtx_st *, unsigned int, int);
CUresult cuGreenCtxWaitEvent(struct CUgreenCtx_st *, struct CUevent_st *);
CUresult cuImportExternalMemory(struct CUextMemory_st **, const struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC_st *);
CUresult cuImportExternalSemaphore(struct CUextSemaphore_st **, const struct CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_st *);
CUresult cuInit(unsigned int);
CUresult cuIpcCloseMemHandle(unsigned long long);
CUresult cuIpcGetEventHandle(struct CUipcEventHandle_st *, struct CUevent_st *);
CUresult cuIpcGetMemHandle(struct CUipcMemHandle_st *, unsigned long long);
CUresult cuIpcOpenEventHandle(struct CUevent_st **, struct CUipcEventHandle_st);
CUresult cuIpcOpenMemHandle(unsigned long long *, struct CUipcMemHandle_st, unsigned int);
CUresult cuIpcOpenMemHandle_v2(unsigned long long *, struct CUipcMemHandle_st, unsigned int);
CUresult cuKernelGetAttribute(int *, int, struct CUkern_st *, int);
CUresult cuKernelGetFunction(struct CUfunc_st **, struct CUkern_st *);
CUresult cuKernelGetLibrary(struct CUlib_st **, struct CUkern_st *);
CUresult cuKernelGetName(const char **, struct CUkern_st *);
CUresult cuKernelGetParamInfo(struct CUkern_st *, unsigned long, unsigned long *, unsigned long *);
CUresult cuKernelSetAttribute(int, int, struct CUkern_st *, int);
CUresult cuKernelSetCacheConfig(struct CUkern_st *, int, int);
CUresult cuLaunch(struct CUfunc_st *);
CUresult cuLaunchCooperativeKernel(struct CUfunc_st *, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, struct CUstream_st *, void **);
CUresult cuLaunchCooperativeKernelMultiDevice(struct CUDA_LAUNCH_PARAMS_st *, unsigned int, unsigned int);
CUresult cuLaunchCooperativeKernel_ptsz(struct CUfunc_st *, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, struct CUstream_st *, void **);
CUresult cuLaunchGrid(struct CUfunc_st *, int, int);
CUresult cuLaunchGridAsync(struct CUfunc_st *, int, int, struct CUstream_st *);
CUresult cuLaunchHostFunc(struct CUstream_st *, void (*)(void *), void *);
CUresult cuLaunchHostFunc_ptsz(struct CUstream_st *, void (*)(void *), void *);
CUresult cuLaunchKernel(struct CUfunc_st *, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, struct CUstream_st *, void **, void **);
CUresult cuLaunchKernelEx(const struct CUlaunchConfig_st *, struct CUfunc_st *, void **, void **);
CUresult cuLaunchKernelEx_ptsz(const struct CUlaunchConfig_st *, struct CUfunc_st *, void **, void **);
CUresult cuLaunchKernel_ptsz(struct CUfunc_st *, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, struct CUstream_st *, void **, void **);
CUresult cuLibraryEnumerateKernels(struct CUkern_st **, unsigned int, struct CUlib_st *);
CUresult cuLibraryGetGlobal(unsigned long long *, unsigned long *, struct CUlib_st *, const char *);
CUresult cuLibraryGetKernel(struct CUkern_st **, struct CUlib_st *, const char *);
CUresult cuLibraryGetKernelCount(unsigned int *, struct CUlib_st *);
CUresult cuLibraryGetManaged(unsigned long long *, unsigned long *, struct CUlib_st *, const char *);
CUresult cuLibraryGetModule(struct CUmod_st **, struct CUlib_st *);
CUresult cuLibraryGetUnifiedFunction(void **, struct CUlib_st *, const char *);
CUresult cuLibraryLoadData(struct CUlib_st **, const void *, int *, void **, unsigned int, int *, void **, unsigned int);
CUresult cuLibraryLoadFromFile(struct CUlib_st **, const char *, int *, void **, unsigned int, int *, void **, unsigned int);
CUresult cuLibraryUnload(struct CUlib_st *);
CUresult cuLinkAddData(struct CUlinkState_st *, int, void *, unsigned long, const char *, unsigned int, int *, void **);
CUresult cuLinkAddData_v2(struct CUlinkState_st *, int, void *, unsigned long, const char *, unsigned int, int *, void **);
CUresult cuLinkAddFile(struct CUlinkState_st *, int, const char *, unsigned int, int *, void **);
CUresult cuLinkAddFile_v2(struct CUlinkState_st *, int, const char *, unsigned int, int *, void **);
CUresult cuLinkComplete(struct CUlinkState_st *, void **, unsigned long *);
CUresult cuLinkCreate(unsigned int, int *, void **, struct CUlinkState_st **);
CUresult cuLinkCreate_v2(unsigned int, int *, void **, struct CUlinkState_st **);
CUresult cuLinkDestroy(struct CUlinkState_st *);
CUresult cuLogsCurrent(unsigned int *, unsigned int);
CUresult cuLogsDumpToFile(unsigned int *, const char *, unsigned int);
CUresult cuLogsDumpToMemory(unsigned int *, char *, unsigned long *, unsigned int);
CUresult cuLogsRegisterCallback(void (*)(void *, int, char *, unsigned long), void *, struct CUlogsCallbackEntry_st **);
CUresult cuLogsUnregisterCallback(struct CUlogsCallbackEntry_st *);
CUresult cuMemAddressFree(unsigned long long, unsigned long);
CUresult cuMemAddressReserve(unsigned long long *, unsigned long, unsigned long, unsigned long long, unsigned long long);
CUresult cuMemAdvise(unsigned long long, unsigned long, int, int);
CUresult cuMemAdvise_v2(unsigned long long, unsigned long, int, struct CUmemLocation_st);
CUresult cuMemAlloc(unsigned int *, unsigned int);
CUresult cuMemAllocAsync(unsigned long long *, unsigned long, struct CUstream_st *);
CUresult cuMemAllocAsync_ptsz(unsigned long long *, unsigned long, struct CUstream_st *);
CUresult cuMemAllocFromPoolAsync(unsigned long long *, unsigned long, struct CUmemPoolHandle_st *, struct CUstream_st *);
CUresult cuMemAllocFromPoolAsync_ptsz(unsigned long long *, unsigned long, struct CUmemPoolHandle_st *, struct CUstream_st *);
CUresult cuMemAllocHost(void **, unsigned int);
CUresult cuMemAllocHost_v2(void **, unsigned long);
CUresult cuMemAllocManaged(unsigned long long *, unsigned long, unsigned int);
CUresult cuMemAllocPitch(unsigned int *, unsigned int *, unsigned int, unsigned int, unsigned int);
CUresult cuMemAllocPitch_v2(unsigned long long *, unsigned long *, unsigned long, unsigned long, unsigned int);
CUresult cuMemAlloc_v2(unsigned long long *, unsigned long);
CUresult cuMemBatchDecompressAsync(struct CUmemDecompressParams_st *, unsigned long, unsigned int, unsigned long *, struct CUstream_st *);
CUresult cuMemBatchDecompressAsync_ptsz(struct CUmemDecompressParams_st *, unsigned long, unsigned int, unsigned long *, struct CUstream_st *);
CUresult cuMemCreate(unsigned long long *, unsigned long, const struct CUmemAllocationProp_st *, unsigned long long);
CUresult cuMemDiscardAndPrefetchBatchAsync(unsigned long long *, unsigned long *, unsigned long, struct CUmemLocation_st *, unsigned long *, unsigned long, unsigned long long, struct CUstream_st *);
CUresult cuMemDiscardAndPrefetchBatchAsync_ptsz(unsigned long long *, unsigned long *, unsigned long, struct CUmemLocation_st *, unsigned long *, unsigned long, unsigned long long, struct CUstream_st *);
CUresult cuMemDiscardBatchAsync(unsigned long long *, unsigned long *, unsigned long, unsigned long long, struct CUstream_st *);
CUresult cuMemDiscardBatchAsync_ptsz(unsigned long long *, unsigned long *, unsigned long, unsigned long long, struct CUstream_st *);
CUresult cuMemExportToShareableHandle(void *, unsigned long long, int, unsigned long long);
CUresult cuMemFree(unsigned int);
CUresult cuMemFreeAsync(unsigned long long, struct CUstream_st *);
CUresult cuMemFreeAsync_ptsz(unsigned long long, struct CUstream_st *);
CUresult cuMemFreeHost(void *);
CUresult cuMemFree_v2(unsigned long long);
CUresult cuMemGetAccess(unsigned long long *, const struct CUmemLocation_st *, unsigned long long);
CUresult cuMemGetAddressRange(unsigned int *, unsigned int *, unsigned int);
CUresult cuMemGetAddressRange_v2(unsigned long long *, unsigned long *, unsigned long long);
CUresult cuMemGetAllocationGranularity(unsigned long *, const struct CUmemAllocationProp_st *, int);
CUresult cuMemGetAllocationPropertiesFromHandle(struct CUmemAllocationProp_st *, unsigned long long);
CUresult cuMemGetDefaultMemPool(struct CUmemPoolHandle_st **, struct CUmemLocation_st *, int);
CUresult cuMemGetHandleForAddressRange(void *, unsigned long long, unsigned long, int, unsigned long long);
CUresult cuMemGetInfo(unsigned int *, unsigned int *);
CUresult cuMemGetInfo_v2(unsigned long *, unsigned long *);
CUresult cuMemGetMemPool(struct CUmemPoolHandle_st **, struct CUmemLocation_st *, int);
CUresult cuMemHostAlloc(void **, unsigned long, unsigned int);
CUresult cuMemHostGetDevicePointer(unsigned int *, void *, unsigned int);
CUresult cuMemHostGetDevicePointer_v2(unsigned long long *, void *, unsigned int);
CUresult cuMemHostGetFlags(unsigned int *, void *);
CUresult cuMemHostRegister(void *, unsigned long, unsigned int);
CUresult cuMemHostRegister_v2(void *, unsigned long, unsigned int);
CUresult cuMemHostUnregister(void *);
CUresult cuMemImportFromShareableHandle(unsigned long long *, void *, int);
CUresult cuMemMap(unsigned long long, unsigned long, unsigned long, unsigned long long, unsigned long long);
CUresult cuMemMapArrayAsync(struct CUarrayMapInfo_st *, unsigned int, struct CUstream_st *);
CUresult cuMemMapArrayAsync_ptsz(struct CUarrayMapInfo_st *, unsigned int, struct CUstream_st *);
CUresult cuMemPoolCreate(struct CUmemPoolHandle_st **, const struct CUmemPoolProps_st *);
CUresult cuMemPoolDestroy(struct CUmemPoolHandle_st *);
CUresult cuMemPoolExportPointer(struct CUmemPoolPtrExportData_st *, unsigned long long);
CUresult cuMemPoolExportToShareableHandle(void *, struct CUmemPoolHandle_st *, int, unsigned long long);
CUresult cuMemPoolGetAccess(int *, struct CUmemPoolHandle_st *, struct CUmemLocation_st *);
CUresult cuMemPoolGetAttribute(struct CUmemPoolHandle_st *, int, void *);
CUresult cuMemPoolImportFromShareableHandle(struct CUmemPoolHandle_st **, void *, int, unsigned long long);
CUresult cuMemPoolImportPointer(unsigned long long *, struct CUmemPoolHandle_st *, struct CUmemPoolPtrExportData_st *);
CUresult cuMemPoolSetAccess(struct CUmemPoolHandle_st *, const struct CUmemAccessDesc_st *, unsigned long);
CUresult cuMemPoolSetAttribute(struct CUmemPoolHandle_st *, int, void *);
CUresult cuMemPoolTrimTo(struct CUmemPoolHandle_st *, unsigned long);
CUresult cuMemPrefetchAsync(unsigned long long, unsigned long, int, struct CUstream_st *);
CUresult cuMemPrefetchAsync_ptsz(unsigned long long, unsigned long, int, struct CUstream_st *);
CUresult cuMemPrefetchAsync_v2(unsigned long long, unsigned long, struct CUmemLocation_st, unsigned int, struct CUstream_st *);
CUresult cuMemPrefetchAsync_v2_ptsz(unsigned long long, unsigned long, struct CUmemLocation_st, unsigned int, struct CUstream_st *);
CUresult cuMemPrefetchBatchAsync(unsigned long long *, unsigned long *, unsigned long, struct CUmemLocation_st *, unsigned long *, unsigned long, unsigned long long, struct CUstream_st *);
CUresult cuMemPrefetchBatchAsync_ptsz(unsigned long long *, unsigned long *, unsigned long, struct CUmemLocation_st *, unsigned long *, unsigned long, unsigned long long, struct CUstream_st *);
CUresult cuMemRangeGetAttribute(void *, unsigned long, int, unsigned long long, unsigned long);
CUresult cuMemRangeGetAttributes(void **, unsigned long *, int *, unsigned long, unsigned long long, unsigned long);
CUresult cuMemRelease(unsigned long long);
CUresult cuMemRetainAllocationHandle(unsigned long long *, void *);
CUresult cuMemSetAccess(unsigned long long, unsigned long, const struct CUmemAccessDesc_st *, unsigned long);
CUresult cuMemSetMemPool(struct CUmemLocation_st *, int, struct CUmemPoolHandle_st *);
CUresult cuMemUnmap(unsigned long long, unsigned long);
CUresult cuMemcpy(unsigned long long, unsigned long long, unsigned long);
CUresult cuMemcpy2D(const struct CUDA_MEMCPY2D_v1_st *);
CUresult cuMemcpy2DAsync(const struct CUDA_MEMCPY2D_v1_st *, struct CUstream_st *);
CUresult cuMemcpy2DAsync_v2(const struct CUDA_MEMCPY2D_st *, struct CUstream_st *);
CUresult cuMemcpy2DAsync_v2_ptsz(const struct CUDA_MEMCPY2D_st *, struct CUstream_st *);
CUresult cuMemcpy2DUnaligned(const struct CUDA_MEMCPY2D_v1_st *);
CUresult cuMemcpy2DUnaligned_v2(const struct CUDA_MEMCPY2D_st *);
CUresult cuMemcpy2DUnaligned_v2_ptds(const struct CUDA_MEMCPY2D_st *);
CUresult cuMemcpy2D_v2(const struct CUDA_MEMCPY2D_st *);
CUresult cuMemcpy2D_v2_ptds(const struct CUDA_MEMCPY2D_st *);
CUresult cuMemcpy3D(const struct CUDA_MEMCPY3D_v1_st *);
CUresult cuMemcpy3DAsync(const struct CUDA_MEMCPY3D_v1_st *, struct CUstream_st *);
CUresult cuMemcpy3DAsync_v2(const struct CUDA_MEMCPY3D_st *, struct CUstream_st *);
CUresult cuMemcpy3DAsync_v2_ptsz(const struct CUDA_MEMCPY3D_st *, struct CUstream_st *);
CUresult cuMemcpy3DBatchAsync(unsigned long, struct CUDA_MEMCPY3D_BATCH_OP_st *, unsigned long *, unsigned long long, struct CUstream_st *);
CUresult cuMemcpy3DBatchAsync_ptsz(unsigned long, struct CUDA_MEMCPY3D_BATCH_OP_st *, unsigned long *, unsigned long long, struct CUstream_st *);
CUresult cuMemcpy3DBatchAsync_v2(unsigned long, struct CUDA_MEMCPY3D_BATCH_OP_st *, unsigned long long, struct CUstream_st *);
CUresult cuMemcpy3DBatchAsync_v2_ptsz(unsigned long, struct CUDA_MEMCPY3D_BATCH_OP_st *, unsigned long long, struct CUstream_st *);
CUresult cuMemcpy3DPeer(const struct CUDA_MEMCPY3D_PEER_st *);
CUresult cuMemcpy3DPeerAsync(const struct CUDA_MEMCPY3D_PEER_st *, struct CUstream_st *);
CUresult cuMemcpy3DPeerAsync_ptsz(const struct CUDA_MEMCPY3D_PEER_st *, struct CUstream_st *);
CUresult cuMemcpy3DPeer_ptds(const struct CUDA_MEMCPY3D_PEER_st *);
CUresult cuMemcpy3D_v2(const struct CUDA_MEMCPY3D_st *);
CUresult cuMemcpy3D_v2_ptds(const struct CUDA_MEMCPY3D_st *);
CUresult cuMemcpyAsync(unsigned long long, unsigned long long, unsigned long, struct CUstream_st *);
CUresult cuMemcpyAsync_ptsz(unsigned long long, unsigned long long, unsigned long, struct CUstream_st *);
CUresult cuMemcpyAtoA(struct CUarray_st *, unsigned int, struct CUarray_st *, unsigned int, unsigned int);
CUresult cuMemcpyAtoA_v2(struct CUarray_st *, unsigned long, struct CUarray_st *, unsigned long, unsigned long);
CUresult cuMemcpyAtoA_v2_ptds(struct CUarray_st *, unsigned long, struct CUarray_st *, unsigned long, unsigned long);
CUresult cuMemcpyAtoD(unsigned int, struct CUarray_st *, unsigned int, unsigned int);
CUresult cuMemcpyAtoD_v2(unsigned long long, struct CUarray_st *, unsigned long, unsigned long);
CUresult cuMemcpyAtoD_v2_ptds(unsigned long long, struct CUarray_st *, unsigned long, unsigned long);
CUresult cuMemcpyAtoH(void *, struct CUarray_st *, unsigned int, unsigned int);
CUresult cuMemcpyAtoHAsync(void *, struct CUarray_st *, unsigned int, unsigned int, struct CUstream_st *);
CUresult cuMemcpyAtoHAsync_v2(void *, struct CUarray_st *, unsigned long, unsigned long, struct CUstream_st *);
CUresult cuMemcpyAtoHAsync_v2_ptsz(void *, struct CUarray_st *, unsigned long, unsigned long, struct CUstream_st *);
CUresult cuMemcpyAtoH_v2(void *, struct CUarray_st *, unsigned long, unsigned long);
CUresult cuMemcpyAtoH_v2_ptds(void *, struct CUarray_st *, unsigned long, unsigned long);
CUresult cuMemcpyBatchAsync(unsigned long long *, unsigned long long *, unsigned long *, unsigned long, struct CUmemcpyAttributes_st *, unsigned long *, unsigned long, unsigned long *, struct CUstream_st *);
CUresult cuMemcpyBatchAsync_ptsz(unsigned long long *, unsigned long long *, unsigned long *, unsigned long, struct CUmemcpyAttributes_st *, unsigned long *, unsigned long, unsigned long *, struct CUstream_st *);
CUresult cuMemcpyBatchAsync_v2(unsigned long long *, unsigned long long *, unsigned long *, unsigned long, struct CUmemcpyAttributes_st *, unsigned long *, unsigned long, struct CUstream_st *);
CUresult cuMemcpyBatchAsync_v2_ptsz(unsigned long long *, unsigned long long *, unsigned long *, unsigned long, struct CUmemcpyAttributes_st *, unsigned long *, unsigned long, struct CUstream_st *);
CUresult cuMemcpyDtoA(struct CUarray_st *, unsigned int, unsigned int, unsigned int);
CUresult cuMemcpyDtoA_v2(struct CUarray_st *, unsigned long, unsigned long long, unsigned long);
CUresult cuMemcpyDtoA_v2_ptds(struct CUarray_st *, unsigned long, unsigned long long, unsigned long);
CUresult cuMemcpyDtoD(unsigned int, unsigned int, unsigned int);
CUresult cuMemcpyDtoDAsync(unsigned int, unsigned int, unsigned int, struct CUstream_st *);
CUresult cuMemcpyDtoDAsync_v2(unsigned long long, unsigned long long, unsigned long, struct CUstream_st *);
CUresult cuMemcpyDtoDAsync_v2_ptsz(unsigned long long, unsigned long long, unsigned long, struct CUstream_st *);
CUresult cuMemcpyDtoD_v2(unsigned long long, unsigned long long, unsigned long);
CUresult cuMemcpyDtoD_v2_ptds(unsigned long long, unsigned long long, unsigned long);
CUresult cuMemcpyDtoH(void *, unsigned int, unsigned int);
CUresult cuMemcpyDtoHAsync(void *, unsigned int, unsigned int, struct CUstream_st *);
CUresult cuMemcpyDtoHAsync_v2(void *, unsigned long long, unsigned long, struct CUstream_st *);
CUresult cuMemcpyDtoHAsync_v2_ptsz(void *, unsigned long long, unsigned long, struct CUstream_st *);
CUresult cuMemcpyDtoH_v2(void *, unsigned long long, unsigned long);
CUresult cuMemcpyDtoH_v2_ptds(void *, unsigned long long, unsigned long);
CUresult cuMemcpyHtoA(struct CUarray_st *, unsigned int, const void *, unsigned int);
CUresult cuMemcpyHtoAAsync(struct CUarray_st *, unsigned int, const void *, unsigned int, struct CUstream_st *);
CUresult cuMemcpyHtoAAsync_v2(struct CUarray_st *, unsigned long, const void *, unsigned long, struct CUstream_st *);
CUresult cuMemcpyHtoAAsync_v2_ptsz(struct CUarray_st *, unsigned long, const void *, unsigned long, struct CUstream_st *);
CUresult cuMemcpyHtoA_v2(struct CUarray_st *, unsigned long, const void *, unsigned long);
CUresult cuMemcpyHtoA_v2_ptds(struct CUarray_st *, unsigned long, const void *, unsigned long);
CUresult cuMemcpyHtoD(unsigned int, const void *, unsigned int);
CUresult cuMemcpyHtoDAsync(unsigned int, const void *, unsigned int, struct CUstream_st *);
CUresult cuMemcpyHtoDAsync_v2(unsigned long long, const void *, unsigned long, struct CUstream_st *);
CUresult cuMemcpyHtoDAsync_v2_ptsz(unsigned long long, const void *, unsigned long, struct CUstream_st *);
CUresult cuMemcpyHtoD_v2(unsigned long long, const void *, unsigned long);
CUresult cuMemcpyHtoD_v2_ptds(unsigned long long, const void *, unsigned long);
CUresult cuMemcpyPeer(unsigned long long, struct CUctx_st *, unsigned long long, struct CUctx_st *, unsigned long);
CUresult cuMemcpyPeerAsync(unsigned long long, struct CUctx_st *, unsigned long long, struct CUctx_st *, unsigned long, struct CUstream_st *);
CUresult cuMemcpyPeerAsync_ptsz(unsigned long long, struct CUctx_st *, unsigned long long, struct CUctx_st *, unsigned long, struct CUstream_st *);
CUresult cuMemcpyPeer_ptds(unsigned long long, struct CUctx_st *, unsigned long long, struct CUctx_st *, unsigned long);
CUresult cuMemcpy_ptds(unsigned long long, unsigned long long, unsigned long);
CUresult cuMemsetD16(unsigned int, unsigned short, unsigned int);
CUresult cuMemsetD16Async(unsigned long long, unsigned short, unsigned long, struct CUstream_st *);
CUresult cuMemsetD16Async_ptsz(unsigned long long, unsigned short, unsigned long, struct CUstream_st *);
CUresult cuMemsetD16_v2(unsigned long long, unsigned short, unsigned long);
CUresult cuMemsetD16_v2_ptds(unsigned long long, unsigned short, unsigned long);
CUresult cuMemsetD2D16(unsigned int, unsigned int, unsigned short, unsigned int, unsigned int);
CUresult cuMemsetD2D16Async(unsigned long long, unsigned long, unsigned short, unsigned long, unsigned long, struct CUstream_st *);
CUresult cuMemsetD2D16Async_ptsz(unsigned long long, unsigned long, unsigned short, unsigned long, unsigned long, struct CUstream_st *);
CUresult cuMemsetD2D16_v2(unsigned long long, unsigned long, unsigned short, unsigned long, unsigned long);
CUresult cuMemsetD2D16_v2_ptds(unsigned long long, unsigned long, unsigned short, unsigned long, unsigned long);
CUresult cuMemsetD2D32(unsigned int, unsigned int, unsigned int, unsigned int, unsigned int);
CUresult cuMemsetD2D32Async(unsigned long long, unsigned long, unsigned int, unsigned long, unsigned long, struct CUstream_st *);
CUresult cuMemsetD2D32Async_ptsz(unsigned long long, unsigned long, unsigned int, unsigned long, unsigned long, struct CUstream_st *);
CUresult cuMemsetD2D32_v2(unsigned long long, unsigned long, unsigned int, unsigned long, unsigned long);
CUresult cuMemsetD2D32_v2_ptds(unsigned long long, unsigned long, unsigned int, unsigned long, unsigned long);
CUresult cuMemsetD2D8(unsigned int, unsigned int, unsigned char, unsigned int, unsigned int);
CUresult cuMemsetD2D8Async(unsigned long long, unsigned long, unsigned char, unsigned long, unsigned long, struct CUstream_st *);
CUresult cuMemsetD2D8Async_ptsz(unsigned long long, unsigned long, unsigned char, unsigned long, unsigned long, struct CUstream_st *);
CUresult cuMemsetD2D8_v2(unsigned long long, unsigned long, unsigned char, unsigned long, unsigned long);
CUresult cuMemsetD2D8_v2_ptds(unsigned long long, unsigned long, unsigned char, unsigned long, unsigned long);
CUresult cuMemsetD32(unsigned int, unsigned int, unsigned int);
CUresult cuMemsetD32Async(unsigned long long, unsigned int, unsigned long, struct CUstream_st *);
CUresult cuMemsetD32Async_ptsz(unsigned long long, unsigned int, unsigned long, struct CUstream_st *);
CUresult cuMemsetD32_v2(unsigned long long, unsigned int, unsigned long);
CUresult cuMemsetD32_v2_ptds(unsigned long long, unsigned int, unsigned long);
CUresult cuMemsetD8(unsigned int, unsigned char, unsigned int);
CUresult cuMemsetD8Async(unsigned long long, unsigned char, unsigned long, struct CUstream_st *);
CUresult cuMemsetD8Async_ptsz(unsigned long long, unsigned char, unsigned long, struct CUstream_st *);
CUresult cuMemsetD8_v2(unsigned long long, unsigned char, unsigned long);
CUresult cuMemsetD8_v2_ptds(unsigned long long, unsigned char, unsigned long);
CUresult cuMipmappedArrayCreate(struct CUmipmappedArray_st **, const struct CUDA_ARRAY3D_DESCRIPTOR_st *, unsigned int);
CUresult cuMipmappedArrayDestroy(struct CUmipmappedArray_st *);
CUresult cuMipmappedArrayGetLevel(struct CUarray_st **, struct CUmipmappedArray_st *, unsigned int);
CUresult cuMipmappedArrayGetMemoryRequirements(struct CUDA_ARRAY_MEMORY_REQUIREMENTS_st *, struct CUmipmappedArray_st *, int);
CUresult cuMipmappedArrayGetSparseProperties(struct CUDA_ARRAY_SPARSE_PROPERTIES_st *, struct CUmipmappedArray_st *);
CUresult cuModuleEnumerateFunctions(struct CUfunc_st **, unsigned int, struct CUmod_st *);
CUresult cuModuleGetFunction(struct CUfunc_st **, struct CUmod_st *, const char *);
CUresult cuModuleGetFunctionCount(unsigned int *, struct CUmod_st *);
CUresult cuModuleGetGlobal(unsigned int *, unsigned int *, struct CUmod_st *, const char *);
CUresult cuModuleGetGlobal_v2(unsigned long long *, unsigned long *, struct CUmod_st *, const char *);
CUresult cuModuleGetLoadingMode(int *);
CUresult cuModuleGetSurfRef(struct CUsurfref_st **, struct CUmod_st *, const char *);
CUresult cuModuleGetTexRef(struct CUtexref_st **, struct CUmod_st *, const char *);
CUresult cuModuleLoad(struct CUmod_st **, const char *);
CUresult cuModuleLoadData(struct CUmod_st **, const void *);
CUresult cuModuleLoadDataEx(struct CUmod_st **, const void *, unsigned int, int *, void **);
CUresult cuModuleLoadFatBinary(struct CUmod_st **, const void *);
CUresult cuModuleUnload(struct CUmod_st *);
CUresult cuMulticastAddDevice(unsigned long long, int);
CUresult cuMulticastBindAddr(unsigned long long, unsigned long, unsigned long long, unsigned long, unsigned long long);
CUresult cuMulticastBindMem(unsigned long long, unsigned long, unsigned long long, unsigned long, unsigned long, unsigned long long);
CUresult cuMulticastCreate(unsigned long long *, const struct CUmulticastObjectProp_st *);
CUresult cuMulticastGetGranularity(unsigned long *, const struct CUmulticastObjectProp_st *, int);
CUresult cuMulticastUnbind(unsigned long long, int, unsigned long, unsigned long);
CUresult cuOccupancyAvailableDynamicSMemPerBlock(unsigned long *, struct CUfunc_st *, int, int);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *, struct CUfunc_st *, int, unsigned long);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *, struct CUfunc_st *, int, unsigned long, unsigned int);
CUresult cuOccupancyMaxActiveClusters(int *, struct CUfunc_st *, const struct CUlaunchConfig_st *);
CUresult cuOccupancyMaxPotentialBlockSize(int *, int *, struct CUfunc_st *, unsigned long (*)(int), unsigned long, int);
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *, int *, struct CUfunc_st *, unsigned long (*)(int), unsigned long, int, unsigned int);
CUresult cuOccupancyMaxPotentialClusterSize(int *, struct CUfunc_st *, const struct CUlaunchConfig_st *);
CUresult cuParamSetSize(struct CUfunc_st *, unsigned int);
CUresult cuParamSetTexRef(struct CUfunc_st *, int, struct CUtexref_st *);
CUresult cuParamSetf(struct CUfunc_st *, int, float);
CUresult cuParamSeti(struct CUfunc_st *, int, unsigned int);
CUresult cuParamSetv(struct CUfunc_st *, int, void *, unsigned int);
CUresult cuPointerGetAttribute(void *, int, unsigned long long);
CUresult cuPointerGetAttributes(unsigned int, int *, void **, unsigned long long);
CUresult cuPointerSetAttribute(const void *, int, unsigned long long);
CUresult cuSignalExternalSemaphoresAsync(struct CUextSemaphore_st *const *, const struct CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_st *, unsigned int, struct CUstream_st *);
CUresult cuSignalExternalSemaphoresAsync_ptsz(struct CUextSemaphore_st *const *, const struct CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_st *, unsigned int, struct CUstream_st *);
CUresult cuStreamAddCallback(struct CUstream_st *, void (*)(struct CUstream_st *, int, void *), void *, unsigned int);
CUresult cuStreamAddCallback_ptsz(struct CUstream_st *, void (*)(struct CUstream_st *, int, void *), void *, unsigned int);
CUresult cuStreamAttachMemAsync(struct CUstream_st *, unsigned long long, unsigned long, unsigned int);
CUresult cuStreamAttachMemAsync_ptsz(struct CUstream_st *, unsigned long long, unsigned long, unsigned int);
CUresult cuStreamBatchMemOp(struct CUstream_st *, unsigned int, union CUstreamBatchMemOpParams_union *, unsigned int);
CUresult cuStreamBatchMemOp_ptsz(struct CUstream_st *, unsigned int, union CUstreamBatchMemOpParams_union *, unsigned int);
CUresult cuStreamBatchMemOp_v2(struct CUstream_st *, unsigned int, union CUstreamBatchMemOpParams_union *, unsigned int);
CUresult cuStreamBatchMemOp_v2_ptsz(struct CUstream_st *, unsigned int, union CUstreamBatchMemOpParams_union *, unsigned int);
CUresult cuStreamBeginCapture(struct CUstream_st *);
CUresult cuStreamBeginCaptureToGraph(struct CUstream_st *, struct CUgraph_st *, struct CUgraphNode_st *const *, const struct CUgraphEdgeData_st *, unsigned long, int);
CUresult cuStreamBeginCaptureToGraph_ptsz(struct CUstream_st *, struct CUgraph_st *, struct CUgraphNode_st *const *, const struct CUgraphEdgeData_st *, unsigned long, int);
CUresult cuStreamBeginCapture_ptsz(struct CUstream_st *);
CUresult cuStreamBeginCapture_v2(struct CUstream_st *, int);
CUresult cuStreamBeginCapture_v2_ptsz(struct CUstream_st *, int);
CUresult cuStreamCopyAttributes(struct CUstream_st *, struct CUstream_st *);
CUresult cuStreamCopyAttributes_ptsz(struct CUstream_st *, struct CUstream_st *);
CUresult cuStreamCreate(struct CUstream_st **, unsigned int);
CUresult cuStreamCreateWithPriority(struct CUstream_st **, unsigned int, int);
CUresult cuStreamDestroy(struct CUstream_st *);
CUresult cuStreamDestroy_v2(struct CUstream_st *);
CUresult cuStreamEndCapture(struct CUstream_st *, struct CUgraph_st **);
CUresult cuStreamEndCapture_ptsz(struct CUstream_st *, struct CUgraph_st **);
CUresult cuStreamGetAttribute(struct CUstream_st *, int, union CUlaunchAttributeValue_union *);
CUresult cuStreamGetAttribute_ptsz(struct CUstream_st *, int, union CUlaunchAttributeValue_union *);
CUresult cuStreamGetCaptureInfo(struct CUstream_st *, int *, unsigned long *);
CUresult cuStreamGetCaptureInfo_ptsz(struct CUstream_st *, int *, unsigned long *);
CUresult cuStreamGetCaptureInfo_v2(struct CUstream_st *, int *, unsigned long *, struct CUgraph_st **, struct CUgraphNode_st *const **, unsigned long *);
CUresult cuStreamGetCaptureInfo_v2_ptsz(struct CUstream_st *, int *, unsigned long *, struct CUgraph_st **, struct CUgraphNode_st *const **, unsigned long *);
CUresult cuStreamGetCaptureInfo_v3(struct CUstream_st *, int *, unsigned long *, struct CUgraph_st **, struct CUgraphNode_st *const **, const struct CUgraphEdgeData_st **, unsigned long *);
CUresult cuStreamGetCaptureInfo_v3_ptsz(struct CUstream_st *, int *, unsigned long *, struct CUgraph_st **, struct CUgraphNode_st *const **, const struct CUgraphEdgeData_st **, unsigned long *);
CUresult cuStreamGetCtx(struct CUstream_st *, struct CUctx_st **);
CUresult cuStreamGetCtx_ptsz(struct CUstream_st *, struct CUctx_st **);
CUresult cuStreamGetCtx_v2(struct CUstream_st *, struct CUctx_st **, struct CUgreenCtx_st **);
CUresult cuStreamGetCtx_v2_ptsz(struct CUstream_st *, struct CUctx_st **, struct CUgreenCtx_st **);
CUresult cuStreamGetDevice(struct CUstream_st *, int *);
CUresult cuStreamGetDevice_ptsz(struct CUstream_st *, int *);
CUresult cuStreamGetFlags(struct CUstream_st *, unsigned int *);
CUresult cuStreamGetFlags_ptsz(struct CUstream_st *, unsigned int *);
CUresult cuStreamGetGreenCtx(struct CUstream_st *, struct CUgreenCtx_st **);
CUresult cuStreamGetId(struct CUstream_st *, unsigned long long *);
CUresult cuStreamGetId_ptsz(struct CUstream_st *, unsigned long long *);
CUresult cuStreamGetPriority(struct CUstream_st *, int *);
CUresult cuStreamGetPriority_ptsz(struct CUstream_st *, int *);
CUresult cuStreamIsCapturing(struct CUstream_st *, int *);
CUresult cuStreamIsCapturing_ptsz(struct CUstream_st *, int *);
CUresult cuStreamQuery(struct CUstream_st *);
CUresult cuStreamQuery_ptsz(struct CUstream_st *);
CUresult cuStreamSetAttribute(struct CUstream_st *, int, const union CUlaunchAttributeValue_union *);
CUresult cuStreamSetAttribute_ptsz(struct CUstream_st *, int, const union CUlaunchAttributeValue_union *);
CUresult cuStreamSynchronize(struct CUstream_st *);
CUresult cuStreamSynchronize_ptsz(struct CUstream_st *);
CUresult cuStreamUpdateCaptureDependencies(struct CUstream_st *, struct CUgraphNode_st **, unsigned long, unsigned int);
CUresult cuStreamUpdateCaptureDependencies_ptsz(struct CUstream_st *, struct CUgraphNode_st **, unsigned long, unsigned int);
CUresult cuStreamUpdateCaptureDependencies_v2(struct CUstream_st *, struct CUgraphNode_st **, const struct CUgraphEdgeData_st *, unsigned long, unsigned int);
CUresult cuStreamUpdateCaptureDependencies_v2_ptsz(struct CUstream_st *, struct CUgraphNode_st **, const struct CUgraphEdgeData_st *, unsigned long, unsigned int);
CUresult cuStreamWaitEvent(struct CUstream_st *, struct CUevent_st *, unsigned int);
CUresult cuStreamWaitEvent_ptsz(struct CUstream_st *, struct CUevent_st *, unsigned int);
CUresult cuStreamWaitValue32(struct CUstream_st *, unsigned long long, unsigned int, unsigned int);
CUresult cuStreamWaitValue32_ptsz(struct CUstream_st *, unsigned long long, unsigned int, unsigned int);
CUresult cuStreamWaitValue32_v2(struct CUstream_st *, unsigned long long, unsigned int, unsigned int);
CUresult cuStreamWaitValue32_v2_ptsz(struct CUstream_st *, unsigned long long, unsigned int, unsigned int);
CUresult cuStreamWaitValue64(struct CUstream_st *, unsigned long long, unsigned long, unsigned int);
CUresult cuStreamWaitValue64_ptsz(struct CUstream_st *, unsigned long long, unsigned long, unsigned int);
CUresult cuStreamWaitValue64_v2(struct CUstream_st *, unsigned long long, unsigned long, unsigned int);
CUresult cuStreamWaitValue64_v2_ptsz(struct CUstream_st *, unsigned long long, unsigned long, unsigned int);
CUresult cuStreamWriteValue32(struct CUstream_st *, unsigned long long, unsigned int, unsigned int);
CUresult cuStreamWriteValue32_ptsz(struct CUstream_st *, unsigned long long, unsigned int, unsigned int);
CUresult cuStreamWriteValue32_v2(struct CUstream_st *, unsigned long long, unsigned int, unsigned int);
CUresult cuStreamWriteValue32_v2_ptsz(struct CUstream_st *, unsigned long long, unsigned int, unsigned int);
CUresult cuStreamWriteValue64(struct CUstream_st *, unsigned long long, unsigned long, unsigned int);
CUresult cuStreamWriteValue64_ptsz(struct CUstream_st *, unsigned long long, unsigned long, unsigned int);
CUresult cuStreamWriteValue64_v2(struct CUstream_st *, unsigned long long, unsigned long, unsigned int);
CUresult cuStreamWriteValue64_v2_ptsz(struct CUstream_st *, unsigned long long, unsigned long, unsigned int);
CUresult cuSurfObjectCreate(unsigned long long *, const struct CUDA_RESOURCE_DESC_st *);
CUresult cuSurfObjectDestroy(unsigned long long);
CUresult cuSurfObjectGetResourceDesc(struct CUDA_RESOURCE_DESC_st *, unsigned long long);
CUresult cuSurfRefGetArray(struct CUarray_st **, struct CUsurfref_st *);
CUresult cuSurfRefSetArray(struct CUsurfref_st *, struct CUarray_st *, unsigned int);
CUresult cuTensorMapEncodeIm2col(struct CUtensorMap_st *, int, unsigned int, void *, const unsigned long *, const unsigned long *, const int *, const int *, unsigned int, unsigned int, const unsigned int *, int, int, int, int);
CUresult cuTensorMapEncodeIm2colWide(struct CUtensorMap_st *, int, unsigned int, void *, const unsigned long *, const unsigned long *, int, int, unsigned int, unsigned int, const unsigned int *, int, int, int, int, int);
CUresult cuTensorMapEncodeTiled(struct CUtensorMap_st *, int, unsigned int, void *, const unsigned long *, const unsigned long *, const unsigned int *, const unsigned int *, int, int, int, int);
CUresult cuTensorMapReplaceAddress(struct CUtensorMap_st *, void *);
CUresult cuTexObjectCreate(unsigned long long *, const struct CUDA_RESOURCE_DESC_st *, const struct CUDA_TEXTURE_DESC_st *, const struct CUDA_RESOURCE_VIEW_DESC_st *);
CUresult cuTexObjectDestroy(unsigned long long);
CUresult cuTexObjectGetResourceDesc(struct CUDA_RESOURCE_DESC_st *, unsigned long long);
CUresult cuTexObjectGetResourceViewDesc(struct CUDA_RESOURCE_VIEW_DESC_st *, unsigned long long);
CUresult cuTexObjectGetTextureDesc(struct CUDA_TEXTURE_DESC_st *, unsigned long long);
CUresult cuTexRefCreate(struct CUtexref_st **);
CUresult cuTexRefDestroy(struct CUtexref_st *);
CUresult cuTexRefGetAddress(unsigned int *, struct CUtexref_st *);
CUresult cuTexRefGetAddressMode(int *, struct CUtexref_st *, int);
CUresult cuTexRefGetAddress_v2(unsigned long long *, struct CUtexref_st *);
CUresult cuTexRefGetArray(struct CUarray_st **, struct CUtexref_st *);
CUresult cuTexRefGetBorderColor(float *, struct CUtexref_st *);
CUresult cuTexRefGetFilterMode(int *, struct CUtexref_st *);
CUresult cuTexRefGetFlags(unsigned int *, struct CUtexref_st *);
CUresult cuTexRefGetFormat(int *, int *, struct CUtexref_st *);
CUresult cuTexRefGetMaxAnisotropy(int *, struct CUtexref_st *);
CUresult cuTexRefGetMipmapFilterMode(int *, struct CUtexref_st *);
CUresult cuTexRefGetMipmapLevelBias(float *, struct CUtexref_st *);
CUresult cuTexRefGetMipmapLevelClamp(float *, float *, struct CUtexref_st *);
CUresult cuTexRefGetMipmappedArray(struct CUmipmappedArray_st **, struct CUtexref_st *);
CUresult cuTexRefSetAddress(unsigned int *, struct CUtexref_st *, unsigned int, unsigned int);
CUresult cuTexRefSetAddress2D(struct CUtexref_st *, const struct CUDA_ARRAY_DESCRIPTOR_v1_st *, unsigned int, unsigned int);
CUresult cuTexRefSetAddress2D_v2(struct CUtexref_st *, const struct CUDA_ARRAY_DESCRIPTOR_st *, unsigned long long, unsigned long);
CUresult cuTexRefSetAddress2D_v3(struct CUtexref_st *, const struct CUDA_ARRAY_DESCRIPTOR_st *, unsigned long long, unsigned long);
CUresult cuTexRefSetAddressMode(struct CUtexref_st *, int, int);
CUresult cuTexRefSetAddress_v2(unsigned long *, struct CUtexref_st *, unsigned long long, unsigned long);
CUresult cuTexRefSetArray(struct CUtexref_st *, struct CUarray_st *, unsigned int);
CUresult cuTexRefSetBorderColor(struct CUtexref_st *, float *);
CUresult cuTexRefSetFilterMode(struct CUtexref_st *, int);
CUresult cuTexRefSetFlags(struct CUtexref_st *, unsigned int);
CUresult cuTexRefSetFormat(struct CUtexref_st *, int, int);
CUresult cuTexRefSetMaxAnisotropy(struct CUtexref_st *, unsigned int);
CUresult cuTexRefSetMipmapFilterMode(struct CUtexref_st *, int);
CUresult cuTexRefSetMipmapLevelBias(struct CUtexref_st *, float);
CUresult cuTexRefSetMipmapLevelClamp(struct CUtexref_st *, float, float);
CUresult cuTexRefSetMipmappedArray(struct CUtexref_st *, struct CUmipmappedArray_st *, unsigned int);
CUresult cuThreadExchangeStreamCaptureMode(int *);
CUresult cuUserObjectCreate(struct CUuserObject_st **, void *, void (*)(void *), unsigned int, unsigned int);
CUresult cuUserObjectRelease(struct CUuserObject_st *, unsigned int);
CUresult cuUserObjectRetain(struct CUuserObject_st *, unsigned int);
CUresult cuWaitExternalSemaphoresAsync(struct CUextSemaphore_st *const *, const struct CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_st *, unsigned int, struct CUstream_st *);
CUresult cuWaitExternalSemaphoresAsync_ptsz(struct CUextSemaphore_st *const *, const struct CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_st *, unsigned int, struct CUstream_st *);
CUresult cuProfilerInitialize(const char *, const char *, int);
CUresult cuProfilerStart();
CUresult cuProfilerStop();
}
