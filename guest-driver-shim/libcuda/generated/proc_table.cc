// SPDX-License-Identifier: Apache-2.0
// Made by guest-driver-shim/libcuda/gen/generate.py from the CUDA toolkit's headers. Do not edit.
#include "guest-driver-shim/libcuda/proc_table.h"

extern "C" {
int cuArray3DCreate();
int cuArray3DCreate_v2();
int cuArray3DGetDescriptor();
int cuArray3DGetDescriptor_v2();
int cuArrayCreate();
int cuArrayCreate_v2();
int cuArrayDestroy();
int cuArrayGetDescriptor();
int cuArrayGetDescriptor_v2();
int cuArrayGetMemoryRequirements();
int cuArrayGetPlane();
int cuArrayGetSparseProperties();
int cuCheckpointProcessCheckpoint();
int cuCheckpointProcessGetRestoreThreadId();
int cuCheckpointProcessGetState();
int cuCheckpointProcessLock();
int cuCheckpointProcessRestore();
int cuCheckpointProcessUnlock();
int cuCoredumpGetAttribute();
int cuCoredumpGetAttributeGlobal();
int cuCoredumpSetAttribute();
int cuCoredumpSetAttributeGlobal();
int cuCtxAttach();
int cuCtxCreate();
int cuCtxCreate_v2();
int cuCtxCreate_v3();
int cuCtxCreate_v4();
int cuCtxDestroy();
int cuCtxDestroy_v2();
int cuCtxDetach();
int cuCtxDisablePeerAccess();
int cuCtxEnablePeerAccess();
int cuCtxFromGreenCtx();
int cuCtxGetApiVersion();
int cuCtxGetCacheConfig();
int cuCtxGetCurrent();
int cuCtxGetDevResource();
int cuCtxGetDevice();
int cuCtxGetDevice_v2();
int cuCtxGetExecAffinity();
int cuCtxGetFlags();
int cuCtxGetId();
int cuCtxGetLimit();
int cuCtxGetSharedMemConfig();
int cuCtxGetStreamPriorityRange();
int cuCtxPopCurrent();
int cuCtxPopCurrent_v2();
int cuCtxPushCurrent();
int cuCtxPushCurrent_v2();
int cuCtxRecordEvent();
int cuCtxResetPersistingL2Cache();
int cuCtxSetCacheConfig();
int cuCtxSetCurrent();
int cuCtxSetFlags();
int cuCtxSetLimit();
int cuCtxSetSharedMemConfig();
int cuCtxSynchronize();
int cuCtxSynchronize_v2();
int cuCtxWaitEvent();
int cuDestroyExternalMemory();
int cuDestroyExternalSemaphore();
int cuDevResourceGenerateDesc();
int cuDevSmResourceSplitByCount();
int cuDeviceCanAccessPeer();
int cuDeviceComputeCapability();
int cuDeviceGet();
int cuDeviceGetAttribute();
int cuDeviceGetByPCIBusId();
int cuDeviceGetCount();
int cuDeviceGetDefaultMemPool();
int cuDeviceGetDevResource();
int cuDeviceGetExecAffinitySupport();
int cuDeviceGetGraphMemAttribute();
int cuDeviceGetHostAtomicCapabilities();
int cuDeviceGetLuid();
int cuDeviceGetMemPool();
int cuDeviceGetName();
int cuDeviceGetNvSciSyncAttributes();
int cuDeviceGetP2PAtomicCapabilities();
int cuDeviceGetP2PAttribute();
int cuDeviceGetPCIBusId();
int cuDeviceGetProperties();
int cuDeviceGetTexture1DLinearMaxWidth();
int cuDeviceGetUuid();
int cuDeviceGetUuid_v2();
int cuDeviceGraphMemTrim();
int cuDevicePrimaryCtxGetState();
int cuDevicePrimaryCtxRelease();
int cuDevicePrimaryCtxRelease_v2();
int cuDevicePrimaryCtxReset();
int cuDevicePrimaryCtxReset_v2();
int cuDevicePrimaryCtxRetain();
int cuDevicePrimaryCtxSetFlags();
int cuDevicePrimaryCtxSetFlags_v2();
int cuDeviceRegisterAsyncNotification();
int cuDeviceSetGraphMemAttribute();
int cuDeviceSetMemPool();
int cuDeviceTotalMem();
int cuDeviceTotalMem_v2();
int cuDeviceUnregisterAsyncNotification();
int cuDriverGetVersion();
int cuEGLStreamConsumerAcquireFrame();
int cuEGLStreamConsumerConnect();
int cuEGLStreamConsumerConnectWithFlags();
int cuEGLStreamConsumerDisconnect();
int cuEGLStreamConsumerReleaseFrame();
int cuEGLStreamProducerConnect();
int cuEGLStreamProducerDisconnect();
int cuEGLStreamProducerPresentFrame();
int cuEGLStreamProducerReturnFrame();
int cuEventCreate();
int cuEventCreateFromEGLSync();
int cuEventDestroy();
int cuEventDestroy_v2();
int cuEventElapsedTime();
int cuEventElapsedTime_v2();
int cuEventQuery();
int cuEventRecord();
int cuEventRecordWithFlags();
int cuEventRecordWithFlags_ptsz();
int cuEventRecord_ptsz();
int cuEventSynchronize();
int cuExternalMemoryGetMappedBuffer();
int cuExternalMemoryGetMappedMipmappedArray();
int cuFlushGPUDirectRDMAWrites();
int cuFuncGetAttribute();
int cuFuncGetModule();
int cuFuncGetName();
int cuFuncGetParamInfo();
int cuFuncIsLoaded();
int cuFuncLoad();
int cuFuncSetAttribute();
int cuFuncSetBlockShape();
int cuFuncSetCacheConfig();
int cuFuncSetSharedMemConfig();
int cuFuncSetSharedSize();
int cuGLCtxCreate();
int cuGLCtxCreate_v2();
int cuGLGetDevices();
int cuGLGetDevices_v2();
int cuGLInit();
int cuGLMapBufferObject();
int cuGLMapBufferObjectAsync();
int cuGLMapBufferObjectAsync_v2();
int cuGLMapBufferObjectAsync_v2_ptsz();
int cuGLMapBufferObject_v2();
int cuGLMapBufferObject_v2_ptds();
int cuGLRegisterBufferObject();
int cuGLSetBufferObjectMapFlags();
int cuGLUnmapBufferObject();
int cuGLUnmapBufferObjectAsync();
int cuGLUnregisterBufferObject();
int cuGetErrorName();
int cuGetErrorString();
int cuGetExportTable();
int cuGetProcAddress();
int cuGetProcAddress_v2();
int cuGraphAddBatchMemOpNode();
int cuGraphAddChildGraphNode();
int cuGraphAddDependencies();
int cuGraphAddDependencies_v2();
int cuGraphAddEmptyNode();
int cuGraphAddEventRecordNode();
int cuGraphAddEventWaitNode();
int cuGraphAddExternalSemaphoresSignalNode();
int cuGraphAddExternalSemaphoresWaitNode();
int cuGraphAddHostNode();
int cuGraphAddKernelNode();
int cuGraphAddKernelNode_v2();
int cuGraphAddMemAllocNode();
int cuGraphAddMemFreeNode();
int cuGraphAddMemcpyNode();
int cuGraphAddMemsetNode();
int cuGraphAddNode();
int cuGraphAddNode_v2();
int cuGraphBatchMemOpNodeGetParams();
int cuGraphBatchMemOpNodeSetParams();
int cuGraphChildGraphNodeGetGraph();
int cuGraphClone();
int cuGraphConditionalHandleCreate();
int cuGraphCreate();
int cuGraphDebugDotPrint();
int cuGraphDestroy();
int cuGraphDestroyNode();
int cuGraphEventRecordNodeGetEvent();
int cuGraphEventRecordNodeSetEvent();
int cuGraphEventWaitNodeGetEvent();
int cuGraphEventWaitNodeSetEvent();
int cuGraphExecBatchMemOpNodeSetParams();
int cuGraphExecChildGraphNodeSetParams();
int cuGraphExecDestroy();
int cuGraphExecEventRecordNodeSetEvent();
int cuGraphExecEventWaitNodeSetEvent();
int cuGraphExecExternalSemaphoresSignalNodeSetParams();
int cuGraphExecExternalSemaphoresWaitNodeSetParams();
int cuGraphExecGetFlags();
int cuGraphExecHostNodeSetParams();
int cuGraphExecKernelNodeSetParams();
int cuGraphExecKernelNodeSetParams_v2();
int cuGraphExecMemcpyNodeSetParams();
int cuGraphExecMemsetNodeSetParams();
int cuGraphExecNodeSetParams();
int cuGraphExecUpdate();
int cuGraphExecUpdate_v2();
int cuGraphExternalSemaphoresSignalNodeGetParams();
int cuGraphExternalSemaphoresSignalNodeSetParams();
int cuGraphExternalSemaphoresWaitNodeGetParams();
int cuGraphExternalSemaphoresWaitNodeSetParams();
int cuGraphGetEdges();
int cuGraphGetEdges_v2();
int cuGraphGetNodes();
int cuGraphGetRootNodes();
int cuGraphHostNodeGetParams();
int cuGraphHostNodeSetParams();
int cuGraphInstantiate();
int cuGraphInstantiateWithFlags();
int cuGraphInstantiateWithParams();
int cuGraphInstantiateWithParams_ptsz();
int cuGraphInstantiate_v2();
int cuGraphKernelNodeCopyAttributes();
int cuGraphKernelNodeGetAttribute();
int cuGraphKernelNodeGetParams();
int cuGraphKernelNodeGetParams_v2();
int cuGraphKernelNodeSetAttribute();
int cuGraphKernelNodeSetParams();
int cuGraphKernelNodeSetParams_v2();
int cuGraphLaunch();
int cuGraphLaunch_ptsz();
int cuGraphMemAllocNodeGetParams();
int cuGraphMemFreeNodeGetParams();
int cuGraphMemcpyNodeGetParams();
int cuGraphMemcpyNodeSetParams();
int cuGraphMemsetNodeGetParams();
int cuGraphMemsetNodeSetParams();
int cuGraphNodeFindInClone();
int cuGraphNodeGetDependencies();
int cuGraphNodeGetDependencies_v2();
int cuGraphNodeGetDependentNodes();
int cuGraphNodeGetDependentNodes_v2();
int cuGraphNodeGetEnabled();
int cuGraphNodeGetType();
int cuGraphNodeSetEnabled();
int cuGraphNodeSetParams();
int cuGraphReleaseUserObject();
int cuGraphRemoveDependencies();
int cuGraphRemoveDependencies_v2();
int cuGraphRetainUserObject();
int cuGraphUpload();
int cuGraphUpload_ptsz();
int cuGraphicsEGLRegisterImage();
int cuGraphicsGLRegisterBuffer();
int cuGraphicsGLRegisterImage();
int cuGraphicsMapResources();
int cuGraphicsMapResources_ptsz();
int cuGraphicsResourceGetMappedEglFrame();
int cuGraphicsResourceGetMappedMipmappedArray();
int cuGraphicsResourceGetMappedPointer();
int cuGraphicsResourceGetMappedPointer_v2();
int cuGraphicsResourceSetMapFlags();
int cuGraphicsResourceSetMapFlags_v2();
int cuGraphicsSubResourceGetMappedArray();
int cuGraphicsUnmapResources();
int cuGraphicsUnmapResources_ptsz();
int cuGraphicsUnregisterResource();
int cuGraphicsVDPAURegisterOutputSurface();
int cuGraphicsVDPAURegisterVideoSurface();
int cuGreenCtxCreate();
int cuGreenCtxDestroy();
int cuGreenCtxGetDevResource();
int cuGreenCtxGetId();
int cuGreenCtxRecordEvent();
int cuGreenCtxStreamCreate();
int cuGreenCtxWaitEvent();
int cuImportExternalMemory();
int cuImportExternalSemaphore();
int cuInit();
int cuIpcCloseMemHandle();
int cuIpcGetEventHandle();
int cuIpcGetMemHandle();
int cuIpcOpenEventHandle();
int cuIpcOpenMemHandle();
int cuIpcOpenMemHandle_v2();
int cuKernelGetAttribute();
int cuKernelGetFunction();
int cuKernelGetLibrary();
int cuKernelGetName();
int cuKernelGetParamInfo();
int cuKernelSetAttribute();
int cuKernelSetCacheConfig();
int cuLaunch();
int cuLaunchCooperativeKernel();
int cuLaunchCooperativeKernelMultiDevice();
int cuLaunchCooperativeKernel_ptsz();
int cuLaunchGrid();
int cuLaunchGridAsync();
int cuLaunchHostFunc();
int cuLaunchHostFunc_ptsz();
int cuLaunchKernel();
int cuLaunchKernelEx();
int cuLaunchKernelEx_ptsz();
int cuLaunchKernel_ptsz();
int cuLibraryEnumerateKernels();
int cuLibraryGetGlobal();
int cuLibraryGetKernel();
int cuLibraryGetKernelCount();
int cuLibraryGetManaged();
int cuLibraryGetModule();
int cuLibraryGetUnifiedFunction();
int cuLibraryLoadData();
int cuLibraryLoadFromFile();
int cuLibraryUnload();
int cuLinkAddData();
int cuLinkAddData_v2();
int cuLinkAddFile();
int cuLinkAddFile_v2();
int cuLinkComplete();
int cuLinkCreate();
int cuLinkCreate_v2();
int cuLinkDestroy();
int cuLogsCurrent();
int cuLogsDumpToFile();
int cuLogsDumpToMemory();
int cuLogsRegisterCallback();
int cuLogsUnregisterCallback();
int cuMemAddressFree();
int cuMemAddressReserve();
int cuMemAdvise();
int cuMemAdvise_v2();
int cuMemAlloc();
int cuMemAllocAsync();
int cuMemAllocAsync_ptsz();
int cuMemAllocFromPoolAsync();
int cuMemAllocFromPoolAsync_ptsz();
int cuMemAllocHost();
int cuMemAllocHost_v2();
int cuMemAllocManaged();
int cuMemAllocPitch();
int cuMemAllocPitch_v2();
int cuMemAlloc_v2();
int cuMemBatchDecompressAsync();
int cuMemBatchDecompressAsync_ptsz();
int cuMemCreate();
int cuMemDiscardAndPrefetchBatchAsync();
int cuMemDiscardAndPrefetchBatchAsync_ptsz();
int cuMemDiscardBatchAsync();
int cuMemDiscardBatchAsync_ptsz();
int cuMemExportToShareableHandle();
int cuMemFree();
int cuMemFreeAsync();
int cuMemFreeAsync_ptsz();
int cuMemFreeHost();
int cuMemFree_v2();
int cuMemGetAccess();
int cuMemGetAddressRange();
int cuMemGetAddressRange_v2();
int cuMemGetAllocationGranularity();
int cuMemGetAllocationPropertiesFromHandle();
int cuMemGetDefaultMemPool();
int cuMemGetHandleForAddressRange();
int cuMemGetInfo();
int cuMemGetInfo_v2();
int cuMemGetMemPool();
int cuMemHostAlloc();
int cuMemHostGetDevicePointer();
int cuMemHostGetDevicePointer_v2();
int cuMemHostGetFlags();
int cuMemHostRegister();
int cuMemHostRegister_v2();
int cuMemHostUnregister();
int cuMemImportFromShareableHandle();
int cuMemMap();
int cuMemMapArrayAsync();
int cuMemMapArrayAsync_ptsz();
int cuMemPoolCreate();
int cuMemPoolDestroy();
int cuMemPoolExportPointer();
int cuMemPoolExportToShareableHandle();
int cuMemPoolGetAccess();
int cuMemPoolGetAttribute();
int cuMemPoolImportFromShareableHandle();
int cuMemPoolImportPointer();
int cuMemPoolSetAccess();
int cuMemPoolSetAttribute();
int cuMemPoolTrimTo();
int cuMemPrefetchAsync();
int cuMemPrefetchAsync_ptsz();
int cuMemPrefetchAsync_v2();
int cuMemPrefetchAsync_v2_ptsz();
int cuMemPrefetchBatchAsync();
int cuMemPrefetchBatchAsync_ptsz();
int cuMemRangeGetAttribute();
int cuMemRangeGetAttributes();
int cuMemRelease();
int cuMemRetainAllocationHandle();
int cuMemSetAccess();
int cuMemSetMemPool();
int cuMemUnmap();
int cuMemcpy();
int cuMemcpy2D();
int cuMemcpy2DAsync();
int cuMemcpy2DAsync_v2();
int cuMemcpy2DAsync_v2_ptsz();
int cuMemcpy2DUnaligned();
int cuMemcpy2DUnaligned_v2();
int cuMemcpy2DUnaligned_v2_ptds();
int cuMemcpy2D_v2();
int cuMemcpy2D_v2_ptds();
int cuMemcpy3D();
int cuMemcpy3DAsync();
int cuMemcpy3DAsync_v2();
int cuMemcpy3DAsync_v2_ptsz();
int cuMemcpy3DBatchAsync();
int cuMemcpy3DBatchAsync_ptsz();
int cuMemcpy3DBatchAsync_v2();
int cuMemcpy3DBatchAsync_v2_ptsz();
int cuMemcpy3DPeer();
int cuMemcpy3DPeerAsync();
int cuMemcpy3DPeerAsync_ptsz();
int cuMemcpy3DPeer_ptds();
int cuMemcpy3D_v2();
int cuMemcpy3D_v2_ptds();
int cuMemcpyAsync();
int cuMemcpyAsync_ptsz();
int cuMemcpyAtoA();
int cuMemcpyAtoA_v2();
int cuMemcpyAtoA_v2_ptds();
int cuMemcpyAtoD();
int cuMemcpyAtoD_v2();
int cuMemcpyAtoD_v2_ptds();
int cuMemcpyAtoH();
int cuMemcpyAtoHAsync();
int cuMemcpyAtoHAsync_v2();
int cuMemcpyAtoHAsync_v2_ptsz();
int cuMemcpyAtoH_v2();
int cuMemcpyAtoH_v2_ptds();
int cuMemcpyBatchAsync();
int cuMemcpyBatchAsync_ptsz();
int cuMemcpyBatchAsync_v2();
int cuMemcpyBatchAsync_v2_ptsz();
int cuMemcpyDtoA();
int cuMemcpyDtoA_v2();
int cuMemcpyDtoA_v2_ptds();
int cuMemcpyDtoD();
int cuMemcpyDtoDAsync();
int cuMemcpyDtoDAsync_v2();
int cuMemcpyDtoDAsync_v2_ptsz();
int cuMemcpyDtoD_v2();
int cuMemcpyDtoD_v2_ptds();
int cuMemcpyDtoH();
int cuMemcpyDtoHAsync();
int cuMemcpyDtoHAsync_v2();
int cuMemcpyDtoHAsync_v2_ptsz();
int cuMemcpyDtoH_v2();
int cuMemcpyDtoH_v2_ptds();
int cuMemcpyHtoA();
int cuMemcpyHtoAAsync();
int cuMemcpyHtoAAsync_v2();
int cuMemcpyHtoAAsync_v2_ptsz();
int cuMemcpyHtoA_v2();
int cuMemcpyHtoA_v2_ptds();
int cuMemcpyHtoD();
int cuMemcpyHtoDAsync();
int cuMemcpyHtoDAsync_v2();
int cuMemcpyHtoDAsync_v2_ptsz();
int cuMemcpyHtoD_v2();
int cuMemcpyHtoD_v2_ptds();
int cuMemcpyPeer();
int cuMemcpyPeerAsync();
int cuMemcpyPeerAsync_ptsz();
int cuMemcpyPeer_ptds();
int cuMemcpy_ptds();
int cuMemsetD16();
int cuMemsetD16Async();
int cuMemsetD16Async_ptsz();
int cuMemsetD16_v2();
int cuMemsetD16_v2_ptds();
int cuMemsetD2D16();
int cuMemsetD2D16Async();
int cuMemsetD2D16Async_ptsz();
int cuMemsetD2D16_v2();
int cuMemsetD2D16_v2_ptds();
int cuMemsetD2D32();
int cuMemsetD2D32Async();
int cuMemsetD2D32Async_ptsz();
int cuMemsetD2D32_v2();
int cuMemsetD2D32_v2_ptds();
int cuMemsetD2D8();
int cuMemsetD2D8Async();
int cuMemsetD2D8Async_ptsz();
int cuMemsetD2D8_v2();
int cuMemsetD2D8_v2_ptds();
int cuMemsetD32();
int cuMemsetD32Async();
int cuMemsetD32Async_ptsz();
int cuMemsetD32_v2();
int cuMemsetD32_v2_ptds();
int cuMemsetD8();
int cuMemsetD8Async();
int cuMemsetD8Async_ptsz();
int cuMemsetD8_v2();
int cuMemsetD8_v2_ptds();
int cuMipmappedArrayCreate();
int cuMipmappedArrayDestroy();
int cuMipmappedArrayGetLevel();
int cuMipmappedArrayGetMemoryRequirements();
int cuMipmappedArrayGetSparseProperties();
int cuModuleEnumerateFunctions();
int cuModuleGetFunction();
int cuModuleGetFunctionCount();
int cuModuleGetGlobal();
int cuModuleGetGlobal_v2();
int cuModuleGetLoadingMode();
int cuModuleGetSurfRef();
int cuModuleGetTexRef();
int cuModuleLoad();
int cuModuleLoadData();
int cuModuleLoadDataEx();
int cuModuleLoadFatBinary();
int cuModuleUnload();
int cuMulticastAddDevice();
int cuMulticastBindAddr();
int cuMulticastBindMem();
int cuMulticastCreate();
int cuMulticastGetGranularity();
int cuMulticastUnbind();
int cuOccupancyAvailableDynamicSMemPerBlock();
int cuOccupancyMaxActiveBlocksPerMultiprocessor();
int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags();
int cuOccupancyMaxActiveClusters();
int cuOccupancyMaxPotentialBlockSize();
int cuOccupancyMaxPotentialBlockSizeWithFlags();
int cuOccupancyMaxPotentialClusterSize();
int cuParamSetSize();
int cuParamSetTexRef();
int cuParamSetf();
int cuParamSeti();
int cuParamSetv();
int cuPointerGetAttribute();
int cuPointerGetAttributes();
int cuPointerSetAttribute();
int cuProfilerInitialize();
int cuProfilerStart();
int cuProfilerStop();
int cuSignalExternalSemaphoresAsync();
int cuSignalExternalSemaphoresAsync_ptsz();
int cuStreamAddCallback();
int cuStreamAddCallback_ptsz();
int cuStreamAttachMemAsync();
int cuStreamAttachMemAsync_ptsz();
int cuStreamBatchMemOp();
int cuStreamBatchMemOp_ptsz();
int cuStreamBatchMemOp_v2();
int cuStreamBatchMemOp_v2_ptsz();
int cuStreamBeginCapture();
int cuStreamBeginCaptureToGraph();
int cuStreamBeginCaptureToGraph_ptsz();
int cuStreamBeginCapture_ptsz();
int cuStreamBeginCapture_v2();
int cuStreamBeginCapture_v2_ptsz();
int cuStreamCopyAttributes();
int cuStreamCopyAttributes_ptsz();
int cuStreamCreate();
int cuStreamCreateWithPriority();
int cuStreamDestroy();
int cuStreamDestroy_v2();
int cuStreamEndCapture();
int cuStreamEndCapture_ptsz();
int cuStreamGetAttribute();
int cuStreamGetAttribute_ptsz();
int cuStreamGetCaptureInfo();
int cuStreamGetCaptureInfo_ptsz();
int cuStreamGetCaptureInfo_v2();
int cuStreamGetCaptureInfo_v2_ptsz();
int cuStreamGetCaptureInfo_v3();
int cuStreamGetCaptureInfo_v3_ptsz();
int cuStreamGetCtx();
int cuStreamGetCtx_ptsz();
int cuStreamGetCtx_v2();
int cuStreamGetCtx_v2_ptsz();
int cuStreamGetDevice();
int cuStreamGetDevice_ptsz();
int cuStreamGetFlags();
int cuStreamGetFlags_ptsz();
int cuStreamGetGreenCtx();
int cuStreamGetId();
int cuStreamGetId_ptsz();
int cuStreamGetPriority();
int cuStreamGetPriority_ptsz();
int cuStreamIsCapturing();
int cuStreamIsCapturing_ptsz();
int cuStreamQuery();
int cuStreamQuery_ptsz();
int cuStreamSetAttribute();
int cuStreamSetAttribute_ptsz();
int cuStreamSynchronize();
int cuStreamSynchronize_ptsz();
int cuStreamUpdateCaptureDependencies();
int cuStreamUpdateCaptureDependencies_ptsz();
int cuStreamUpdateCaptureDependencies_v2();
int cuStreamUpdateCaptureDependencies_v2_ptsz();
int cuStreamWaitEvent();
int cuStreamWaitEvent_ptsz();
int cuStreamWaitValue32();
int cuStreamWaitValue32_ptsz();
int cuStreamWaitValue32_v2();
int cuStreamWaitValue32_v2_ptsz();
int cuStreamWaitValue64();
int cuStreamWaitValue64_ptsz();
int cuStreamWaitValue64_v2();
int cuStreamWaitValue64_v2_ptsz();
int cuStreamWriteValue32();
int cuStreamWriteValue32_ptsz();
int cuStreamWriteValue32_v2();
int cuStreamWriteValue32_v2_ptsz();
int cuStreamWriteValue64();
int cuStreamWriteValue64_ptsz();
int cuStreamWriteValue64_v2();
int cuStreamWriteValue64_v2_ptsz();
int cuSurfObjectCreate();
int cuSurfObjectDestroy();
int cuSurfObjectGetResourceDesc();
int cuSurfRefGetArray();
int cuSurfRefSetArray();
int cuTensorMapEncodeIm2col();
int cuTensorMapEncodeIm2colWide();
int cuTensorMapEncodeTiled();
int cuTensorMapReplaceAddress();
int cuTexObjectCreate();
int cuTexObjectDestroy();
int cuTexObjectGetResourceDesc();
int cuTexObjectGetResourceViewDesc();
int cuTexObjectGetTextureDesc();
int cuTexRefCreate();
int cuTexRefDestroy();
int cuTexRefGetAddress();
int cuTexRefGetAddressMode();
int cuTexRefGetAddress_v2();
int cuTexRefGetArray();
int cuTexRefGetBorderColor();
int cuTexRefGetFilterMode();
int cuTexRefGetFlags();
int cuTexRefGetFormat();
int cuTexRefGetMaxAnisotropy();
int cuTexRefGetMipmapFilterMode();
int cuTexRefGetMipmapLevelBias();
int cuTexRefGetMipmapLevelClamp();
int cuTexRefGetMipmappedArray();
int cuTexRefSetAddress();
int cuTexRefSetAddress2D();
int cuTexRefSetAddress2D_v2();
int cuTexRefSetAddress2D_v3();
int cuTexRefSetAddressMode();
int cuTexRefSetAddress_v2();
int cuTexRefSetArray();
int cuTexRefSetBorderColor();
int cuTexRefSetFilterMode();
int cuTexRefSetFlags();
int cuTexRefSetFormat();
int cuTexRefSetMaxAnisotropy();
int cuTexRefSetMipmapFilterMode();
int cuTexRefSetMipmapLevelBias();
int cuTexRefSetMipmapLevelClamp();
int cuTexRefSetMipmappedArray();
int cuThreadExchangeStreamCaptureMode();
int cuUserObjectCreate();
int cuUserObjectRelease();
int cuUserObjectRetain();
int cuVDPAUCtxCreate();
int cuVDPAUCtxCreate_v2();
int cuVDPAUGetDevice();
int cuWaitExternalSemaphoresAsync();
int cuWaitExternalSemaphoresAsync_ptsz();
}

namespace vgpud::cuda {

const ProcRow kProcTable[] = {
    {"cuArray3DCreate", 2000, false, reinterpret_cast<void*>(&cuArray3DCreate)},
    {"cuArray3DCreate", 3020, false, reinterpret_cast<void*>(&cuArray3DCreate_v2)},
    {"cuArray3DGetDescriptor", 2000, false, reinterpret_cast<void*>(&cuArray3DGetDescriptor)},
    {"cuArray3DGetDescriptor", 3020, false, reinterpret_cast<void*>(&cuArray3DGetDescriptor_v2)},
    {"cuArrayCreate", 2000, false, reinterpret_cast<void*>(&cuArrayCreate)},
    {"cuArrayCreate", 3020, false, reinterpret_cast<void*>(&cuArrayCreate_v2)},
    {"cuArrayDestroy", 2000, false, reinterpret_cast<void*>(&cuArrayDestroy)},
    {"cuArrayGetDescriptor", 2000, false, reinterpret_cast<void*>(&cuArrayGetDescriptor)},
    {"cuArrayGetDescriptor", 3020, false, reinterpret_cast<void*>(&cuArrayGetDescriptor_v2)},
    {"cuArrayGetMemoryRequirements", 11060, false, reinterpret_cast<void*>(&cuArrayGetMemoryRequirements)},
    {"cuArrayGetPlane", 11020, false, reinterpret_cast<void*>(&cuArrayGetPlane)},
    {"cuArrayGetSparseProperties", 11010, false, reinterpret_cast<void*>(&cuArrayGetSparseProperties)},
    {"cuCheckpointProcessCheckpoint", 12080, false, reinterpret_cast<void*>(&cuCheckpointProcessCheckpoint)},
    {"cuCheckpointProcessGetRestoreThreadId", 12080, false, reinterpret_cast<void*>(&cuCheckpointProcessGetRestoreThreadId)},
    {"cuCheckpointProcessGetState", 12080, false, reinterpret_cast<void*>(&cuCheckpointProcessGetState)},
    {"cuCheckpointProcessLock", 12080, false, reinterpret_cast<void*>(&cuCheckpointProcessLock)},
    {"cuCheckpointProcessRestore", 12080, false, reinterpret_cast<void*>(&cuCheckpointProcessRestore)},
    {"cuCheckpointProcessUnlock", 12080, false, reinterpret_cast<void*>(&cuCheckpointProcessUnlock)},
    {"cuCoredumpGetAttribute", 12010, false, reinterpret_cast<void*>(&cuCoredumpGetAttribute)},
    {"cuCoredumpGetAttributeGlobal", 12010, false, reinterpret_cast<void*>(&cuCoredumpGetAttributeGlobal)},
    {"cuCoredumpSetAttribute", 12010, false, reinterpret_cast<void*>(&cuCoredumpSetAttribute)},
    {"cuCoredumpSetAttributeGlobal", 12010, false, reinterpret_cast<void*>(&cuCoredumpSetAttributeGlobal)},
    {"cuCtxAttach", 2000, false, reinterpret_cast<void*>(&cuCtxAttach)},
    {"cuCtxCreate", 2000, false, reinterpret_cast<void*>(&cuCtxCreate)},
    {"cuCtxCreate", 3020, false, reinterpret_cast<void*>(&cuCtxCreate_v2)},
    {"cuCtxCreate", 11040, false, reinterpret_cast<void*>(&cuCtxCreate_v3)},
    {"cuCtxCreate", 12050, false, reinterpret_cast<void*>(&cuCtxCreate_v4)},
    {"cuCtxDestroy", 2000, false, reinterpret_cast<void*>(&cuCtxDestroy)},
    {"cuCtxDestroy", 4000, false, reinterpret_cast<void*>(&cuCtxDestroy_v2)},
    {"cuCtxDetach", 2000, false, reinterpret_cast<void*>(&cuCtxDetach)},
    {"cuCtxDisablePeerAccess", 4000, false, reinterpret_cast<void*>(&cuCtxDisablePeerAccess)},
    {"cuCtxEnablePeerAccess", 4000, false, reinterpret_cast<void*>(&cuCtxEnablePeerAccess)},
    {"cuCtxFromGreenCtx", 12040, false, reinterpret_cast<void*>(&cuCtxFromGreenCtx)},
    {"cuCtxGetApiVersion", 3020, false, reinterpret_cast<void*>(&cuCtxGetApiVersion)},
    {"cuCtxGetCacheConfig", 3020, false, reinterpret_cast<void*>(&cuCtxGetCacheConfig)},
    {"cuCtxGetCurrent", 4000, false, reinterpret_cast<void*>(&cuCtxGetCurrent)},
    {"cuCtxGetDevResource", 12040, false, reinterpret_cast<void*>(&cuCtxGetDevResource)},
    {"cuCtxGetDevice", 2000, false, reinterpret_cast<void*>(&cuCtxGetDevice)},
    {"cuCtxGetDevice", 13000, false, reinterpret_cast<void*>(&cuCtxGetDevice_v2)},
    {"cuCtxGetExecAffinity", 11040, false, reinterpret_cast<void*>(&cuCtxGetExecAffinity)},
    {"cuCtxGetFlags", 7000, false, reinterpret_cast<void*>(&cuCtxGetFlags)},
    {"cuCtxGetId", 12000, false, reinterpret_cast<void*>(&cuCtxGetId)},
    {"cuCtxGetLimit", 3010, false, reinterpret_cast<void*>(&cuCtxGetLimit)},
    {"cuCtxGetSharedMemConfig", 4020, false, reinterpret_cast<void*>(&cuCtxGetSharedMemConfig)},
    {"cuCtxGetStreamPriorityRange", 5050, false, reinterpret_cast<void*>(&cuCtxGetStreamPriorityRange)},
    {"cuCtxPopCurrent", 2000, false, reinterpret_cast<void*>(&cuCtxPopCurrent)},
    {"cuCtxPopCurrent", 4000, false, reinterpret_cast<void*>(&cuCtxPopCurrent_v2)},
    {"cuCtxPushCurrent", 2000, false, reinterpret_cast<void*>(&cuCtxPushCurrent)},
    {"cuCtxPushCurrent", 4000, false, reinterpret_cast<void*>(&cuCtxPushCurrent_v2)},
    {"cuCtxRecordEvent", 12050, false, reinterpret_cast<void*>(&cuCtxRecordEvent)},
    {"cuCtxResetPersistingL2Cache", 11000, false, reinterpret_cast<void*>(&cuCtxResetPersistingL2Cache)},
    {"cuCtxSetCacheConfig", 3020, false, reinterpret_cast<void*>(&cuCtxSetCacheConfig)},
    {"cuCtxSetCurrent", 4000, false, reinterpret_cast<void*>(&cuCtxSetCurrent)},
    {"cuCtxSetFlags", 12010, false, reinterpret_cast<void*>(&cuCtxSetFlags)},
    {"cuCtxSetLimit", 3010, false, reinterpret_cast<void*>(&cuCtxSetLimit)},
    {"cuCtxSetSharedMemConfig", 4020, false, reinterpret_cast<void*>(&cuCtxSetSharedMemConfig)},
    {"cuCtxSynchronize", 2000, false, reinterpret_cast<void*>(&cuCtxSynchronize)},
    {"cuCtxSynchronize", 13000, false, reinterpret_cast<void*>(&cuCtxSynchronize_v2)},
    {"cuCtxWaitEvent", 12050, false, reinterpret_cast<void*>(&cuCtxWaitEvent)},
    {"cuDestroyExternalMemory", 10000, false, reinterpret_cast<void*>(&cuDestroyExternalMemory)},
    {"cuDestroyExternalSemaphore", 10000, false, reinterpret_cast<void*>(&cuDestroyExternalSemaphore)},
    {"cuDevResourceGenerateDesc", 12040, false, reinterpret_cast<void*>(&cuDevResourceGenerateDesc)},
    {"cuDevSmResourceSplitByCount", 12040, false, reinterpret_cast<void*>(&cuDevSmResourceSplitByCount)},
    {"cuDeviceCanAccessPeer", 4000, false, reinterpret_cast<void*>(&cuDeviceCanAccessPeer)},
    {"cuDeviceComputeCapability", 2000, false, reinterpret_cast<void*>(&cuDeviceComputeCapability)},
    {"cuDeviceGet", 2000, false, reinterpret_cast<void*>(&cuDeviceGet)},
    {"cuDeviceGetAttribute", 2000, false, reinterpret_cast<void*>(&cuDeviceGetAttribute)},
    {"cuDeviceGetByPCIBusId", 4010, false, reinterpret_cast<void*>(&cuDeviceGetByPCIBusId)},
    {"cuDeviceGetCount", 2000, false, reinterpret_cast<void*>(&cuDeviceGetCount)},
    {"cuDeviceGetDefaultMemPool", 11020, false, reinterpret_cast<void*>(&cuDeviceGetDefaultMemPool)},
    {"cuDeviceGetDevResource", 12040, false, reinterpret_cast<void*>(&cuDeviceGetDevResource)},
    {"cuDeviceGetExecAffinitySupport", 11040, false, reinterpret_cast<void*>(&cuDeviceGetExecAffinitySupport)},
    {"cuDeviceGetGraphMemAttribute", 11040, false, reinterpret_cast<void*>(&cuDeviceGetGraphMemAttribute)},
    {"cuDeviceGetHostAtomicCapabilities", 13000, false, reinterpret_cast<void*>(&cuDeviceGetHostAtomicCapabilities)},
    {"cuDeviceGetLuid", 10000, false, reinterpret_cast<void*>(&cuDeviceGetLuid)},
    {"cuDeviceGetMemPool", 11020, false, reinterpret_cast<void*>(&cuDeviceGetMemPool)},
    {"cuDeviceGetName", 2000, false, reinterpret_cast<void*>(&cuDeviceGetName)},
    {"cuDeviceGetNvSciSyncAttributes", 10020, false, reinterpret_cast<void*>(&cuDeviceGetNvSciSyncAttributes)},
    {"cuDeviceGetP2PAtomicCapabilities", 13000, false, reinterpret_cast<void*>(&cuDeviceGetP2PAtomicCapabilities)},
    {"cuDeviceGetP2PAttribute", 8000, false, reinterpret_cast<void*>(&cuDeviceGetP2PAttribute)},
    {"cuDeviceGetPCIBusId", 4010, false, reinterpret_cast<void*>(&cuDeviceGetPCIBusId)},
    {"cuDeviceGetProperties", 2000, false, reinterpret_cast<void*>(&cuDeviceGetProperties)},
    {"cuDeviceGetTexture1DLinearMaxWidth", 11010, false, reinterpret_cast<void*>(&cuDeviceGetTexture1DLinearMaxWidth)},
    {"cuDeviceGetUuid", 9020, false, reinterpret_cast<void*>(&cuDeviceGetUuid)},
    {"cuDeviceGetUuid", 11040, false, reinterpret_cast<void*>(&cuDeviceGetUuid_v2)},
    {"cuDeviceGraphMemTrim", 11040, false, reinterpret_cast<void*>(&cuDeviceGraphMemTrim)},
    {"cuDevicePrimaryCtxGetState", 7000, false, reinterpret_cast<void*>(&cuDevicePrimaryCtxGetState)},
    {"cuDevicePrimaryCtxRelease", 7000, false, reinterpret_cast<void*>(&cuDevicePrimaryCtxRelease)},
    {"cuDevicePrimaryCtxRelease", 11000, false, reinterpret_cast<void*>(&cuDevicePrimaryCtxRelease_v2)},
    {"cuDevicePrimaryCtxReset", 7000, false, reinterpret_cast<void*>(&cuDevicePrimaryCtxReset)},
    {"cuDevicePrimaryCtxReset", 11000, false, reinterpret_cast<void*>(&cuDevicePrimaryCtxReset_v2)},
    {"cuDevicePrimaryCtxRetain", 7000, false, reinterpret_cast<void*>(&cuDevicePrimaryCtxRetain)},
    {"cuDevicePrimaryCtxSetFlags", 7000, false, reinterpret_cast<void*>(&cuDevicePrimaryCtxSetFlags)},
    {"cuDevicePrimaryCtxSetFlags", 11000, false, reinterpret_cast<void*>(&cuDevicePrimaryCtxSetFlags_v2)},
    {"cuDeviceRegisterAsyncNotification", 12040, false, reinterpret_cast<void*>(&cuDeviceRegisterAsyncNotification)},
    {"cuDeviceSetGraphMemAttribute", 11040, false, reinterpret_cast<void*>(&cuDeviceSetGraphMemAttribute)},
    {"cuDeviceSetMemPool", 11020, false, reinterpret_cast<void*>(&cuDeviceSetMemPool)},
    {"cuDeviceTotalMem", 2000, false, reinterpret_cast<void*>(&cuDeviceTotalMem)},
    {"cuDeviceTotalMem", 3020, false, reinterpret_cast<void*>(&cuDeviceTotalMem_v2)},
    {"cuDeviceUnregisterAsyncNotification", 12040, false, reinterpret_cast<void*>(&cuDeviceUnregisterAsyncNotification)},
    {"cuDriverGetVersion", 2020, false, reinterpret_cast<void*>(&cuDriverGetVersion)},
    {"cuEGLStreamConsumerAcquireFrame", 7000, false, reinterpret_cast<void*>(&cuEGLStreamConsumerAcquireFrame)},
    {"cuEGLStreamConsumerConnect", 7000, false, reinterpret_cast<void*>(&cuEGLStreamConsumerConnect)},
    {"cuEGLStreamConsumerConnectWithFlags", 8000, false, reinterpret_cast<void*>(&cuEGLStreamConsumerConnectWithFlags)},
    {"cuEGLStreamConsumerDisconnect", 7000, false, reinterpret_cast<void*>(&cuEGLStreamConsumerDisconnect)},
    {"cuEGLStreamConsumerReleaseFrame", 7000, false, reinterpret_cast<void*>(&cuEGLStreamConsumerReleaseFrame)},
    {"cuEGLStreamProducerConnect", 7000, false, reinterpret_cast<void*>(&cuEGLStreamProducerConnect)},
    {"cuEGLStreamProducerDisconnect", 7000, false, reinterpret_cast<void*>(&cuEGLStreamProducerDisconnect)},
    {"cuEGLStreamProducerPresentFrame", 7000, false, reinterpret_cast<void*>(&cuEGLStreamProducerPresentFrame)},
    {"cuEGLStreamProducerReturnFrame", 7000, false, reinterpret_cast<void*>(&cuEGLStreamProducerReturnFrame)},
    {"cuEventCreate", 2000, false, reinterpret_cast<void*>(&cuEventCreate)},
    {"cuEventCreateFromEGLSync", 9000, false, reinterpret_cast<void*>(&cuEventCreateFromEGLSync)},
    {"cuEventDestroy", 2000, false, reinterpret_cast<void*>(&cuEventDestroy)},
    {"cuEventDestroy", 4000, false, reinterpret_cast<void*>(&cuEventDestroy_v2)},
    {"cuEventElapsedTime", 2000, false, reinterpret_cast<void*>(&cuEventElapsedTime)},
    {"cuEventElapsedTime", 12080, false, reinterpret_cast<void*>(&cuEventElapsedTime_v2)},
    {"cuEventQuery", 2000, false, reinterpret_cast<void*>(&cuEventQuery)},
    {"cuEventRecord", 2000, false, reinterpret_cast<void*>(&cuEventRecord)},
    {"cuEventRecord", 7000, true, reinterpret_cast<void*>(&cuEventRecord_ptsz)},
    {"cuEventRecordWithFlags", 11010, false, reinterpret_cast<void*>(&cuEventRecordWithFlags)},
    {"cuEventRecordWithFlags", 11010, true, reinterpret_cast<void*>(&cuEventRecordWithFlags_ptsz)},
    {"cuEventSynchronize", 2000, false, reinterpret_cast<void*>(&cuEventSynchronize)},
    {"cuExternalMemoryGetMappedBuffer", 10000, false, reinterpret_cast<void*>(&cuExternalMemoryGetMappedBuffer)},
    {"cuExternalMemoryGetMappedMipmappedArray", 10000, false, reinterpret_cast<void*>(&cuExternalMemoryGetMappedMipmappedArray)},
    {"cuFlushGPUDirectRDMAWrites", 11030, false, reinterpret_cast<void*>(&cuFlushGPUDirectRDMAWrites)},
    {"cuFuncGetAttribute", 2020, false, reinterpret_cast<void*>(&cuFuncGetAttribute)},
    {"cuFuncGetModule", 11000, false, reinterpret_cast<void*>(&cuFuncGetModule)},
    {"cuFuncGetName", 12030, false, reinterpret_cast<void*>(&cuFuncGetName)},
    {"cuFuncGetParamInfo", 12040, false, reinterpret_cast<void*>(&cuFuncGetParamInfo)},
    {"cuFuncIsLoaded", 12040, false, reinterpret_cast<void*>(&cuFuncIsLoaded)},
    {"cuFuncLoad", 12040, false, reinterpret_cast<void*>(&cuFuncLoad)},
    {"cuFuncSetAttribute", 9000, false, reinterpret_cast<void*>(&cuFuncSetAttribute)},
    {"cuFuncSetBlockShape", 2000, false, reinterpret_cast<void*>(&cuFuncSetBlockShape)},
    {"cuFuncSetCacheConfig", 3000, false, reinterpret_cast<void*>(&cuFuncSetCacheConfig)},
    {"cuFuncSetSharedMemConfig", 4020, false, reinterpret_cast<void*>(&cuFuncSetSharedMemConfig)},
    {"cuFuncSetSharedSize", 2000, false, reinterpret_cast<void*>(&cuFuncSetSharedSize)},
    {"cuGLCtxCreate", 2000, false, reinterpret_cast<void*>(&cuGLCtxCreate)},
    {"cuGLCtxCreate", 3020, false, reinterpret_cast<void*>(&cuGLCtxCreate_v2)},
    {"cuGLGetDevices", 4010, false, reinterpret_cast<void*>(&cuGLGetDevices)},
    {"cuGLGetDevices", 6050, false, reinterpret_cast<void*>(&cuGLGetDevices_v2)},
    {"cuGLInit", 2000, false, reinterpret_cast<void*>(&cuGLInit)},
    {"cuGLMapBufferObject", 2000, false, reinterpret_cast<void*>(&cuGLMapBufferObject)},
    {"cuGLMapBufferObject", 3020, false, reinterpret_cast<void*>(&cuGLMapBufferObject_v2)},
    {"cuGLMapBufferObject", 7000, true, reinterpret_cast<void*>(&cuGLMapBufferObject_v2_ptds)},
    {"cuGLMapBufferObjectAsync", 2030, false, reinterpret_cast<void*>(&cuGLMapBufferObjectAsync)},
    {"cuGLMapBufferObjectAsync", 3020, false, reinterpret_cast<void*>(&cuGLMapBufferObjectAsync_v2)},
    {"cuGLMapBufferObjectAsync", 7000, true, reinterpret_cast<void*>(&cuGLMapBufferObjectAsync_v2_ptsz)},
    {"cuGLRegisterBufferObject", 2000, false, reinterpret_cast<void*>(&cuGLRegisterBufferObject)},
    {"cuGLSetBufferObjectMapFlags", 2030, false, reinterpret_cast<void*>(&cuGLSetBufferObjectMapFlags)},
    {"cuGLUnmapBufferObject", 2000, false, reinterpret_cast<void*>(&cuGLUnmapBufferObject)},
    {"cuGLUnmapBufferObjectAsync", 2030, false, reinterpret_cast<void*>(&cuGLUnmapBufferObjectAsync)},
    {"cuGLUnregisterBufferObject", 2000, false, reinterpret_cast<void*>(&cuGLUnregisterBufferObject)},
    {"cuGetErrorName", 6000, false, reinterpret_cast<void*>(&cuGetErrorName)},
    {"cuGetErrorString", 6000, false, reinterpret_cast<void*>(&cuGetErrorString)},
    {"cuGetExportTable", 3000, false, reinterpret_cast<void*>(&cuGetExportTable)},
    {"cuGetProcAddress", 11030, false, reinterpret_cast<void*>(&cuGetProcAddress)},
    {"cuGetProcAddress", 12000, false, reinterpret_cast<void*>(&cuGetProcAddress_v2)},
    {"cuGraphAddBatchMemOpNode", 11070, false, reinterpret_cast<void*>(&cuGraphAddBatchMemOpNode)},
    {"cuGraphAddChildGraphNode", 10000, false, reinterpret_cast<void*>(&cuGraphAddChildGraphNode)},
    {"cuGraphAddDependencies", 10000, false, reinterpret_cast<void*>(&cuGraphAddDependencies)},
    {"cuGraphAddDependencies", 12030, false, reinterpret_cast<void*>(&cuGraphAddDependencies_v2)},
    {"cuGraphAddEmptyNode", 10000, false, reinterpret_cast<void*>(&cuGraphAddEmptyNode)},
    {"cuGraphAddEventRecordNode", 11010, false, reinterpret_cast<void*>(&cuGraphAddEventRecordNode)},
    {"cuGraphAddEventWaitNode", 11010, false, reinterpret_cast<void*>(&cuGraphAddEventWaitNode)},
    {"cuGraphAddExternalSemaphoresSignalNode", 11020, false, reinterpret_cast<void*>(&cuGraphAddExternalSemaphoresSignalNode)},
    {"cuGraphAddExternalSemaphoresWaitNode", 11020, false, reinterpret_cast<void*>(&cuGraphAddExternalSemaphoresWaitNode)},
    {"cuGraphAddHostNode", 10000, false, reinterpret_cast<void*>(&cuGraphAddHostNode)},
    {"cuGraphAddKernelNode", 10000, false, reinterpret_cast<void*>(&cuGraphAddKernelNode)},
    {"cuGraphAddKernelNode", 12000, false, reinterpret_cast<void*>(&cuGraphAddKernelNode_v2)},
    {"cuGraphAddMemAllocNode", 11040, false, reinterpret_cast<void*>(&cuGraphAddMemAllocNode)},
    {"cuGraphAddMemFreeNode", 11040, false, reinterpret_cast<void*>(&cuGraphAddMemFreeNode)},
    {"cuGraphAddMemcpyNode", 10000, false, reinterpret_cast<void*>(&cuGraphAddMemcpyNode)},
    {"cuGraphAddMemsetNode", 10000, false, reinterpret_cast<void*>(&cuGraphAddMemsetNode)},
    {"cuGraphAddNode", 12020, false, reinterpret_cast<void*>(&cuGraphAddNode)},
    {"cuGraphAddNode", 12030, false, reinterpret_cast<void*>(&cuGraphAddNode_v2)},
    {"cuGraphBatchMemOpNodeGetParams", 11070, false, reinterpret_cast<void*>(&cuGraphBatchMemOpNodeGetParams)},
    {"cuGraphBatchMemOpNodeSetParams", 11070, false, reinterpret_cast<void*>(&cuGraphBatchMemOpNodeSetParams)},
    {"cuGraphChildGraphNodeGetGraph", 10000, false, reinterpret_cast<void*>(&cuGraphChildGraphNodeGetGraph)},
    {"cuGraphClone", 10000, false, reinterpret_cast<void*>(&cuGraphClone)},
    {"cuGraphConditionalHandleCreate", 12030, false, reinterpret_cast<void*>(&cuGraphConditionalHandleCreate)},
    {"cuGraphCreate", 10000, false, reinterpret_cast<void*>(&cuGraphCreate)},
    {"cuGraphDebugDotPrint", 11030, false, reinterpret_cast<void*>(&cuGraphDebugDotPrint)},
    {"cuGraphDestroy", 10000, false, reinterpret_cast<void*>(&cuGraphDestroy)},
    {"cuGraphDestroyNode", 10000, false, reinterpret_cast<void*>(&cuGraphDestroyNode)},
    {"cuGraphEventRecordNodeGetEvent", 11010, false, reinterpret_cast<void*>(&cuGraphEventRecordNodeGetEvent)},
    {"cuGraphEventRecordNodeSetEvent", 11010, false, reinterpret_cast<void*>(&cuGraphEventRecordNodeSetEvent)},
    {"cuGraphEventWaitNodeGetEvent", 11010, false, reinterpret_cast<void*>(&cuGraphEventWaitNodeGetEvent)},
    {"cuGraphEventWaitNodeSetEvent", 11010, false, reinterpret_cast<void*>(&cuGraphEventWaitNodeSetEvent)},
    {"cuGraphExecBatchMemOpNodeSetParams", 11070, false, reinterpret_cast<void*>(&cuGraphExecBatchMemOpNodeSetParams)},
    {"cuGraphExecChildGraphNodeSetParams", 11010, false, reinterpret_cast<void*>(&cuGraphExecChildGraphNodeSetParams)},
    {"cuGraphExecDestroy", 10000, false, reinterpret_cast<void*>(&cuGraphExecDestroy)},
    {"cuGraphExecEventRecordNodeSetEvent", 11010, false, reinterpret_cast<void*>(&cuGraphExecEventRecordNodeSetEvent)},
    {"cuGraphExecEventWaitNodeSetEvent", 11010, false, reinterpret_cast<void*>(&cuGraphExecEventWaitNodeSetEvent)},
    {"cuGraphExecExternalSemaphoresSignalNodeSetParams", 11020, false, reinterpret_cast<void*>(&cuGraphExecExternalSemaphoresSignalNodeSetParams)},
    {"cuGraphExecExternalSemaphoresWaitNodeSetParams", 11020, false, reinterpret_cast<void*>(&cuGraphExecExternalSemaphoresWaitNodeSetParams)},
    {"cuGraphExecGetFlags", 12000, false, reinterpret_cast<void*>(&cuGraphExecGetFlags)},
    {"cuGraphExecHostNodeSetParams", 10020, false, reinterpret_cast<void*>(&cuGraphExecHostNodeSetParams)},
    {"cuGraphExecKernelNodeSetParams", 10010, false, reinterpret_cast<void*>(&cuGraphExecKernelNodeSetParams)},
    {"cuGraphExecKernelNodeSetParams", 12000, false, reinterpret_cast<void*>(&cuGraphExecKernelNodeSetParams_v2)},
    {"cuGraphExecMemcpyNodeSetParams", 10020, false, reinterpret_cast<void*>(&cuGraphExecMemcpyNodeSetParams)},
    {"cuGraphExecMemsetNodeSetParams", 10020, false, reinterpret_cast<void*>(&cuGraphExecMemsetNodeSetParams)},
    {"cuGraphExecNodeSetParams", 12020, false, reinterpret_cast<void*>(&cuGraphExecNodeSetParams)},
    {"cuGraphExecUpdate", 10020, false, reinterpret_cast<void*>(&cuGraphExecUpdate)},
    {"cuGraphExecUpdate", 12000, false, reinterpret_cast<void*>(&cuGraphExecUpdate_v2)},
    {"cuGraphExternalSemaphoresSignalNodeGetParams", 11020, false, reinterpret_cast<void*>(&cuGraphExternalSemaphoresSignalNodeGetParams)},
    {"cuGraphExternalSemaphoresSignalNodeSetParams", 11020, false, reinterpret_cast<void*>(&cuGraphExternalSemaphoresSignalNodeSetParams)},
    {"cuGraphExternalSemaphoresWaitNodeGetParams", 11020, false, reinterpret_cast<void*>(&cuGraphExternalSemaphoresWaitNodeGetParams)},
    {"cuGraphExternalSemaphoresWaitNodeSetParams", 11020, false, reinterpret_cast<void*>(&cuGraphExternalSemaphoresWaitNodeSetParams)},
    {"cuGraphGetEdges", 10000, false, reinterpret_cast<void*>(&cuGraphGetEdges)},
    {"cuGraphGetEdges", 12030, false, reinterpret_cast<void*>(&cuGraphGetEdges_v2)},
    {"cuGraphGetNodes", 10000, false, reinterpret_cast<void*>(&cuGraphGetNodes)},
    {"cuGraphGetRootNodes", 10000, false, reinterpret_cast<void*>(&cuGraphGetRootNodes)},
    {"cuGraphHostNodeGetParams", 10000, false, reinterpret_cast<void*>(&cuGraphHostNodeGetParams)},
    {"cuGraphHostNodeSetParams", 10000, false, reinterpret_cast<void*>(&cuGraphHostNodeSetParams)},
    {"cuGraphInstantiate", 10000, false, reinterpret_cast<void*>(&cuGraphInstantiate)},
    {"cuGraphInstantiate", 11000, false, reinterpret_cast<void*>(&cuGraphInstantiate_v2)},
    {"cuGraphInstantiateWithFlags", 11040, false, reinterpret_cast<void*>(&cuGraphInstantiateWithFlags)},
    {"cuGraphInstantiateWithParams", 12000, false, reinterpret_cast<void*>(&cuGraphInstantiateWithParams)},
    {"cuGraphInstantiateWithParams", 12000, true, reinterpret_cast<void*>(&cuGraphInstantiateWithParams_ptsz)},
    {"cuGraphKernelNodeCopyAttributes", 11000, false, reinterpret_cast<void*>(&cuGraphKernelNodeCopyAttributes)},
    {"cuGraphKernelNodeGetAttribute", 11000, false, reinterpret_cast<void*>(&cuGraphKernelNodeGetAttribute)},
    {"cuGraphKernelNodeGetParams", 10000, false, reinterpret_cast<void*>(&cuGraphKernelNodeGetParams)},
    {"cuGraphKernelNodeGetParams", 12000, false, reinterpret_cast<void*>(&cuGraphKernelNodeGetParams_v2)},
    {"cuGraphKernelNodeSetAttribute", 11000, false, reinterpret_cast<void*>(&cuGraphKernelNodeSetAttribute)},
    {"cuGraphKernelNodeSetParams", 10000, false, reinterpret_cast<void*>(&cuGraphKernelNodeSetParams)},
    {"cuGraphKernelNodeSetParams", 12000, false, reinterpret_cast<void*>(&cuGraphKernelNodeSetParams_v2)},
    {"cuGraphLaunch", 10000, false, reinterpret_cast<void*>(&cuGraphLaunch)},
    {"cuGraphLaunch", 10000, true, reinterpret_cast<void*>(&cuGraphLaunch_ptsz)},
    {"cuGraphMemAllocNodeGetParams", 11040, false, reinterpret_cast<void*>(&cuGraphMemAllocNodeGetParams)},
    {"cuGraphMemFreeNodeGetParams", 11040, false, reinterpret_cast<void*>(&cuGraphMemFreeNodeGetParams)},
    {"cuGraphMemcpyNodeGetParams", 10000, false, reinterpret_cast<void*>(&cuGraphMemcpyNodeGetParams)},
    {"cuGraphMemcpyNodeSetParams", 10000, false, reinterpret_cast<void*>(&cuGraphMemcpyNodeSetParams)},
    {"cuGraphMemsetNodeGetParams", 10000, false, reinterpret_cast<void*>(&cuGraphMemsetNodeGetParams)},
    {"cuGraphMemsetNodeSetParams", 10000, false, reinterpret_cast<void*>(&cuGraphMemsetNodeSetParams)},
    {"cuGraphNodeFindInClone", 10000, false, reinterpret_cast<void*>(&cuGraphNodeFindInClone)},
    {"cuGraphNodeGetDependencies", 10000, false, reinterpret_cast<void*>(&cuGraphNodeGetDependencies)},
    {"cuGraphNodeGetDependencies", 12030, false, reinterpret_cast<void*>(&cuGraphNodeGetDependencies_v2)},
    {"cuGraphNodeGetDependentNodes", 10000, false, reinterpret_cast<void*>(&cuGraphNodeGetDependentNodes)},
    {"cuGraphNodeGetDependentNodes", 12030, false, reinterpret_cast<void*>(&cuGraphNodeGetDependentNodes_v2)},
    {"cuGraphNodeGetEnabled", 11060, false, reinterpret_cast<void*>(&cuGraphNodeGetEnabled)},
    {"cuGraphNodeGetType", 10000, false, reinterpret_cast<void*>(&cuGraphNodeGetType)},
    {"cuGraphNodeSetEnabled", 11060, false, reinterpret_cast<void*>(&cuGraphNodeSetEnabled)},
    {"cuGraphNodeSetParams", 12020, false, reinterpret_cast<void*>(&cuGraphNodeSetParams)},
    {"cuGraphReleaseUserObject", 11030, false, reinterpret_cast<void*>(&cuGraphReleaseUserObject)},
    {"cuGraphRemoveDependencies", 10000, false, reinterpret_cast<void*>(&cuGraphRemoveDependencies)},
    {"cuGraphRemoveDependencies", 12030, false, reinterpret_cast<void*>(&cuGraphRemoveDependencies_v2)},
    {"cuGraphRetainUserObject", 11030, false, reinterpret_cast<void*>(&cuGraphRetainUserObject)},
    {"cuGraphUpload", 11010, false, reinterpret_cast<void*>(&cuGraphUpload)},
    {"cuGraphUpload", 11010, true, reinterpret_cast<void*>(&cuGraphUpload_ptsz)},
    {"cuGraphicsEGLRegisterImage", 7000, false, reinterpret_cast<void*>(&cuGraphicsEGLRegisterImage)},
    {"cuGraphicsGLRegisterBuffer", 3000, false, reinterpret_cast<void*>(&cuGraphicsGLRegisterBuffer)},
    {"cuGraphicsGLRegisterImage", 3000, false, reinterpret_cast<void*>(&cuGraphicsGLRegisterImage)},
    {"cuGraphicsMapResources", 3000, false, reinterpret_cast<void*>(&cuGraphicsMapResources)},
    {"cuGraphicsMapResources", 7000, true, reinterpret_cast<void*>(&cuGraphicsMapResources_ptsz)},
    {"cuGraphicsResourceGetMappedEglFrame", 7000, false, reinterpret_cast<void*>(&cuGraphicsResourceGetMappedEglFrame)},
    {"cuGraphicsResourceGetMappedMipmappedArray", 5000, false, reinterpret_cast<void*>(&cuGraphicsResourceGetMappedMipmappedArray)},
    {"cuGraphicsResourceGetMappedPointer", 3000, false, reinterpret_cast<void*>(&cuGraphicsResourceGetMappedPointer)},
    {"cuGraphicsResourceGetMappedPointer", 3020, false, reinterpret_cast<void*>(&cuGraphicsResourceGetMappedPointer_v2)},
    {"cuGraphicsResourceSetMapFlags", 3000, false, reinterpret_cast<void*>(&cuGraphicsResourceSetMapFlags)},
    {"cuGraphicsResourceSetMapFlags", 6050, false, reinterpret_cast<void*>(&cuGraphicsResourceSetMapFlags_v2)},
    {"cuGraphicsSubResourceGetMappedArray", 3000, false, reinterpret_cast<void*>(&cuGraphicsSubResourceGetMappedArray)},
    {"cuGraphicsUnmapResources", 3000, false, reinterpret_cast<void*>(&cuGraphicsUnmapResources)},
    {"cuGraphicsUnmapResources", 7000, true, reinterpret_cast<void*>(&cuGraphicsUnmapResources_ptsz)},
    {"cuGraphicsUnregisterResource", 3000, false, reinterpret_cast<void*>(&cuGraphicsUnregisterResource)},
    {"cuGraphicsVDPAURegisterOutputSurface", 3010, false, reinterpret_cast<void*>(&cuGraphicsVDPAURegisterOutputSurface)},
    {"cuGraphicsVDPAURegisterVideoSurface", 3010, false, reinterpret_cast<void*>(&cuGraphicsVDPAURegisterVideoSurface)},
    {"cuGreenCtxCreate", 12040, false, reinterpret_cast<void*>(&cuGreenCtxCreate)},
    {"cuGreenCtxDestroy", 12040, false, reinterpret_cast<void*>(&cuGreenCtxDestroy)},
    {"cuGreenCtxGetDevResource", 12040, false, reinterpret_cast<void*>(&cuGreenCtxGetDevResource)},
    {"cuGreenCtxGetId", 12090, false, reinterpret_cast<void*>(&cuGreenCtxGetId)},
    {"cuGreenCtxRecordEvent", 12040, false, reinterpret_cast<void*>(&cuGreenCtxRecordEvent)},
    {"cuGreenCtxStreamCreate", 12050, false, reinterpret_cast<void*>(&cuGreenCtxStreamCreate)},
    {"cuGreenCtxWaitEvent", 12040, false, reinterpret_cast<void*>(&cuGreenCtxWaitEvent)},
    {"cuImportExternalMemory", 10000, false, reinterpret_cast<void*>(&cuImportExternalMemory)},
    {"cuImportExternalSemaphore", 10000, false, reinterpret_cast<void*>(&cuImportExternalSemaphore)},
    {"cuInit", 2000, false, reinterpret_cast<void*>(&cuInit)},
    {"cuIpcCloseMemHandle", 4010, false, reinterpret_cast<void*>(&cuIpcCloseMemHandle)},
    {"cuIpcGetEventHandle", 4010, false, reinterpret_cast<void*>(&cuIpcGetEventHandle)},
    {"cuIpcGetMemHandle", 4010, false, reinterpret_cast<void*>(&cuIpcGetMemHandle)},
    {"cuIpcOpenEventHandle", 4010, false, reinterpret_cast<void*>(&cuIpcOpenEventHandle)},
    {"cuIpcOpenMemHandle", 4010, false, reinterpret_cast<void*>(&cuIpcOpenMemHandle)},
    {"cuIpcOpenMemHandle", 11000, false, reinterpret_cast<void*>(&cuIpcOpenMemHandle_v2)},
    {"cuKernelGetAttribute", 12000, false, reinterpret_cast<void*>(&cuKernelGetAttribute)},
    {"cuKernelGetFunction", 12000, false, reinterpret_cast<void*>(&cuKernelGetFunction)},
    {"cuKernelGetLibrary", 12050, false, reinterpret_cast<void*>(&cuKernelGetLibrary)},
    {"cuKernelGetName", 12030, false, reinterpret_cast<void*>(&cuKernelGetName)},
    {"cuKernelGetParamInfo", 12040, false, reinterpret_cast<void*>(&cuKernelGetParamInfo)},
    {"cuKernelSetAttribute", 12000, false, reinterpret_cast<void*>(&cuKernelSetAttribute)},
    {"cuKernelSetCacheConfig", 12000, false, reinterpret_cast<void*>(&cuKernelSetCacheConfig)},
    {"cuLaunch", 2000, false, reinterpret_cast<void*>(&cuLaunch)},
    {"cuLaunchCooperativeKernel", 9000, false, reinterpret_cast<void*>(&cuLaunchCooperativeKernel)},
    {"cuLaunchCooperativeKernel", 9000, true, reinterpret_cast<void*>(&cuLaunchCooperativeKernel_ptsz)},
    {"cuLaunchCooperativeKernelMultiDevice", 9000, false, reinterpret_cast<void*>(&cuLaunchCooperativeKernelMultiDevice)},
    {"cuLaunchGrid", 2000, false, reinterpret_cast<void*>(&cuLaunchGrid)},
    {"cuLaunchGridAsync", 2000, false, reinterpret_cast<void*>(&cuLaunchGridAsync)},
    {"cuLaunchHostFunc", 10000, false, reinterpret_cast<void*>(&cuLaunchHostFunc)},
    {"cuLaunchHostFunc", 10000, true, reinterpret_cast<void*>(&cuLaunchHostFunc_ptsz)},
    {"cuLaunchKernel", 4000, false, reinterpret_cast<void*>(&cuLaunchKernel)},
    {"cuLaunchKernel", 7000, true, reinterpret_cast<void*>(&cuLaunchKernel_ptsz)},
    {"cuLaunchKernelEx", 11060, false, reinterpret_cast<void*>(&cuLaunchKernelEx)},
    {"cuLaunchKernelEx", 11060, true, reinterpret_cast<void*>(&cuLaunchKernelEx_ptsz)},
    {"cuLibraryEnumerateKernels", 12040, false, reinterpret_cast<void*>(&cuLibraryEnumerateKernels)},
    {"cuLibraryGetGlobal", 12000, false, reinterpret_cast<void*>(&cuLibraryGetGlobal)},
    {"cuLibraryGetKernel", 12000, false, reinterpret_cast<void*>(&cuLibraryGetKernel)},
    {"cuLibraryGetKernelCount", 12040, false, reinterpret_cast<void*>(&cuLibraryGetKernelCount)},
    {"cuLibraryGetManaged", 12000, false, reinterpret_cast<void*>(&cuLibraryGetManaged)},
    {"cuLibraryGetModule", 12000, false, reinterpret_cast<void*>(&cuLibraryGetModule)},
    {"cuLibraryGetUnifiedFunction", 12000, false, reinterpret_cast<void*>(&cuLibraryGetUnifiedFunction)},
    {"cuLibraryLoadData", 12000, false, reinterpret_cast<void*>(&cuLibraryLoadData)},
    {"cuLibraryLoadFromFile", 12000, false, reinterpret_cast<void*>(&cuLibraryLoadFromFile)},
    {"cuLibraryUnload", 12000, false, reinterpret_cast<void*>(&cuLibraryUnload)},
    {"cuLinkAddData", 5050, false, reinterpret_cast<void*>(&cuLinkAddData)},
    {"cuLinkAddData", 6050, false, reinterpret_cast<void*>(&cuLinkAddData_v2)},
    {"cuLinkAddFile", 5050, false, reinterpret_cast<void*>(&cuLinkAddFile)},
    {"cuLinkAddFile", 6050, false, reinterpret_cast<void*>(&cuLinkAddFile_v2)},
    {"cuLinkComplete", 5050, false, reinterpret_cast<void*>(&cuLinkComplete)},
    {"cuLinkCreate", 5050, false, reinterpret_cast<void*>(&cuLinkCreate)},
    {"cuLinkCreate", 6050, false, reinterpret_cast<void*>(&cuLinkCreate_v2)},
    {"cuLinkDestroy", 5050, false, reinterpret_cast<void*>(&cuLinkDestroy)},
    {"cuLogsCurrent", 12090, false, reinterpret_cast<void*>(&cuLogsCurrent)},
    {"cuLogsDumpToFile", 12090, false, reinterpret_cast<void*>(&cuLogsDumpToFile)},
    {"cuLogsDumpToMemory", 12090, false, reinterpret_cast<void*>(&cuLogsDumpToMemory)},
    {"cuLogsRegisterCallback", 12090, false, reinterpret_cast<void*>(&cuLogsRegisterCallback)},
    {"cuLogsUnregisterCallback", 12090, false, reinterpret_cast<void*>(&cuLogsUnregisterCallback)},
    {"cuMemAddressFree", 10020, false, reinterpret_cast<void*>(&cuMemAddressFree)},
    {"cuMemAddressReserve", 10020, false, reinterpret_cast<void*>(&cuMemAddressReserve)},
    {"cuMemAdvise", 8000, false, reinterpret_cast<void*>(&cuMemAdvise)},
    {"cuMemAdvise", 12020, false, reinterpret_cast<void*>(&cuMemAdvise_v2)},
    {"cuMemAlloc", 2000, false, reinterpret_cast<void*>(&cuMemAlloc)},
    {"cuMemAlloc", 3020, false, reinterpret_cast<void*>(&cuMemAlloc_v2)},
    {"cuMemAllocAsync", 11020, false, reinterpret_cast<void*>(&cuMemAllocAsync)},
    {"cuMemAllocAsync", 11020, true, reinterpret_cast<void*>(&cuMemAllocAsync_ptsz)},
    {"cuMemAllocFromPoolAsync", 11020, false, reinterpret_cast<void*>(&cuMemAllocFromPoolAsync)},
    {"cuMemAllocFromPoolAsync", 11020, true, reinterpret_cast<void*>(&cuMemAllocFromPoolAsync_ptsz)},
    {"cuMemAllocHost", 2000, false, reinterpret_cast<void*>(&cuMemAllocHost)},
    {"cuMemAllocHost", 3020, false, reinterpret_cast<void*>(&cuMemAllocHost_v2)},
    {"cuMemAllocManaged", 6000, false, reinterpret_cast<void*>(&cuMemAllocManaged)},
    {"cuMemAllocPitch", 2000, false, reinterpret_cast<void*>(&cuMemAllocPitch)},
    {"cuMemAllocPitch", 3020, false, reinterpret_cast<void*>(&cuMemAllocPitch_v2)},
    {"cuMemBatchDecompressAsync", 12060, false, reinterpret_cast<void*>(&cuMemBatchDecompressAsync)},
    {"cuMemBatchDecompressAsync", 12060, true, reinterpret_cast<void*>(&cuMemBatchDecompressAsync_ptsz)},
    {"cuMemCreate", 10020, false, reinterpret_cast<void*>(&cuMemCreate)},
    {"cuMemDiscardAndPrefetchBatchAsync", 13000, false, reinterpret_cast<void*>(&cuMemDiscardAndPrefetchBatchAsync)},
    {"cuMemDiscardAndPrefetchBatchAsync", 13000, true, reinterpret_cast<void*>(&cuMemDiscardAndPrefetchBatchAsync_ptsz)},
    {"cuMemDiscardBatchAsync", 13000, false, reinterpret_cast<void*>(&cuMemDiscardBatchAsync)},
    {"cuMemDiscardBatchAsync", 13000, true, reinterpret_cast<void*>(&cuMemDiscardBatchAsync_ptsz)},
    {"cuMemExportToShareableHandle", 10020, false, reinterpret_cast<void*>(&cuMemExportToShareableHandle)},
    {"cuMemFree", 2000, false, reinterpret_cast<void*>(&cuMemFree)},
    {"cuMemFree", 3020, false, reinterpret_cast<void*>(&cuMemFree_v2)},
    {"cuMemFreeAsync", 11020, false, reinterpret_cast<void*>(&cuMemFreeAsync)},
    {"cuMemFreeAsync", 11020, true, reinterpret_cast<void*>(&cuMemFreeAsync_ptsz)},
    {"cuMemFreeHost", 2000, false, reinterpret_cast<void*>(&cuMemFreeHost)},
    {"cuMemGetAccess", 10020, false, reinterpret_cast<void*>(&cuMemGetAccess)},
    {"cuMemGetAddressRange", 2000, false, reinterpret_cast<void*>(&cuMemGetAddressRange)},
    {"cuMemGetAddressRange", 3020, false, reinterpret_cast<void*>(&cuMemGetAddressRange_v2)},
    {"cuMemGetAllocationGranularity", 10020, false, reinterpret_cast<void*>(&cuMemGetAllocationGranularity)},
    {"cuMemGetAllocationPropertiesFromHandle", 10020, false, reinterpret_cast<void*>(&cuMemGetAllocationPropertiesFromHandle)},
    {"cuMemGetDefaultMemPool", 13000, false, reinterpret_cast<void*>(&cuMemGetDefaultMemPool)},
    {"cuMemGetHandleForAddressRange", 11070, false, reinterpret_cast<void*>(&cuMemGetHandleForAddressRange)},
    {"cuMemGetInfo", 2000, false, reinterpret_cast<void*>(&cuMemGetInfo)},
    {"cuMemGetInfo", 3020, false, reinterpret_cast<void*>(&cuMemGetInfo_v2)},
    {"cuMemGetMemPool", 13000, false, reinterpret_cast<void*>(&cuMemGetMemPool)},
    {"cuMemHostAlloc", 2020, false, reinterpret_cast<void*>(&cuMemHostAlloc)},
    {"cuMemHostGetDevicePointer", 2020, false, reinterpret_cast<void*>(&cuMemHostGetDevicePointer)},
    {"cuMemHostGetDevicePointer", 3020, false, reinterpret_cast<void*>(&cuMemHostGetDevicePointer_v2)},
    {"cuMemHostGetFlags", 2030, false, reinterpret_cast<void*>(&cuMemHostGetFlags)},
    {"cuMemHostRegister", 4000, false, reinterpret_cast<void*>(&cuMemHostRegister)},
    {"cuMemHostRegister", 6050, false, reinterpret_cast<void*>(&cuMemHostRegister_v2)},
    {"cuMemHostUnregister", 4000, false, reinterpret_cast<void*>(&cuMemHostUnregister)},
    {"cuMemImportFromShareableHandle", 10020, false, reinterpret_cast<void*>(&cuMemImportFromShareableHandle)},
    {"cuMemMap", 10020, false, reinterpret_cast<void*>(&cuMemMap)},
    {"cuMemMapArrayAsync", 11010, false, reinterpret_cast<void*>(&cuMemMapArrayAsync)},
    {"cuMemMapArrayAsync", 11010, true, reinterpret_cast<void*>(&cuMemMapArrayAsync_ptsz)},
    {"cuMemPoolCreate", 11020, false, reinterpret_cast<void*>(&cuMemPoolCreate)},
    {"cuMemPoolDestroy", 11020, false, reinterpret_cast<void*>(&cuMemPoolDestroy)},
    {"cuMemPoolExportPointer", 11020, false, reinterpret_cast<void*>(&cuMemPoolExportPointer)},
    {"cuMemPoolExportToShareableHandle", 11020, false, reinterpret_cast<void*>(&cuMemPoolExportToShareableHandle)},
    {"cuMemPoolGetAccess", 11020, false, reinterpret_cast<void*>(&cuMemPoolGetAccess)},
    {"cuMemPoolGetAttribute", 11020, false, reinterpret_cast<void*>(&cuMemPoolGetAttribute)},
    {"cuMemPoolImportFromShareableHandle", 11020, false, reinterpret_cast<void*>(&cuMemPoolImportFromShareableHandle)},
    {"cuMemPoolImportPointer", 11020, false, reinterpret_cast<void*>(&cuMemPoolImportPointer)},
    {"cuMemPoolSetAccess", 11020, false, reinterpret_cast<void*>(&cuMemPoolSetAccess)},
    {"cuMemPoolSetAttribute", 11020, false, reinterpret_cast<void*>(&cuMemPoolSetAttribute)},
    {"cuMemPoolTrimTo", 11020, false, reinterpret_cast<void*>(&cuMemPoolTrimTo)},
    {"cuMemPrefetchAsync", 8000, false, reinterpret_cast<void*>(&cuMemPrefetchAsync)},
    {"cuMemPrefetchAsync", 12020, false, reinterpret_cast<void*>(&cuMemPrefetchAsync_v2)},
    {"cuMemPrefetchAsync", 8000, true, reinterpret_cast<void*>(&cuMemPrefetchAsync_ptsz)},
    {"cuMemPrefetchAsync", 12020, true, reinterpret_cast<void*>(&cuMemPrefetchAsync_v2_ptsz)},
    {"cuMemPrefetchBatchAsync", 13000, false, reinterpret_cast<void*>(&cuMemPrefetchBatchAsync)},
    {"cuMemPrefetchBatchAsync", 13000, true, reinterpret_cast<void*>(&cuMemPrefetchBatchAsync_ptsz)},
    {"cuMemRangeGetAttribute", 8000, false, reinterpret_cast<void*>(&cuMemRangeGetAttribute)},
    {"cuMemRangeGetAttributes", 8000, false, reinterpret_cast<void*>(&cuMemRangeGetAttributes)},
    {"cuMemRelease", 10020, false, reinterpret_cast<void*>(&cuMemRelease)},
    {"cuMemRetainAllocationHandle", 11000, false, reinterpret_cast<void*>(&cuMemRetainAllocationHandle)},
    {"cuMemSetAccess", 10020, false, reinterpret_cast<void*>(&cuMemSetAccess)},
    {"cuMemSetMemPool", 13000, false, reinterpret_cast<void*>(&cuMemSetMemPool)},
    {"cuMemUnmap", 10020, false, reinterpret_cast<void*>(&cuMemUnmap)},
    {"cuMemcpy", 4000, false, reinterpret_cast<void*>(&cuMemcpy)},
    {"cuMemcpy", 7000, true, reinterpret_cast<void*>(&cuMemcpy_ptds)},
    {"cuMemcpy2D", 2000, false, reinterpret_cast<void*>(&cuMemcpy2D)},
    {"cuMemcpy2D", 3020, false, reinterpret_cast<void*>(&cuMemcpy2D_v2)},
    {"cuMemcpy2D", 7000, true, reinterpret_cast<void*>(&cuMemcpy2D_v2_ptds)},
    {"cuMemcpy2DAsync", 2000, false, reinterpret_cast<void*>(&cuMemcpy2DAsync)},
    {"cuMemcpy2DAsync", 3020, false, reinterpret_cast<void*>(&cuMemcpy2DAsync_v2)},
    {"cuMemcpy2DAsync", 7000, true, reinterpret_cast<void*>(&cuMemcpy2DAsync_v2_ptsz)},
    {"cuMemcpy2DUnaligned", 2000, false, reinterpret_cast<void*>(&cuMemcpy2DUnaligned)},
    {"cuMemcpy2DUnaligned", 3020, false, reinterpret_cast<void*>(&cuMemcpy2DUnaligned_v2)},
    {"cuMemcpy2DUnaligned", 7000, true, reinterpret_cast<void*>(&cuMemcpy2DUnaligned_v2_ptds)},
    {"cuMemcpy3D", 2000, false, reinterpret_cast<void*>(&cuMemcpy3D)},
    {"cuMemcpy3D", 3020, false, reinterpret_cast<void*>(&cuMemcpy3D_v2)},
    {"cuMemcpy3D", 7000, true, reinterpret_cast<void*>(&cuMemcpy3D_v2_ptds)},
    {"cuMemcpy3DAsync", 2000, false, reinterpret_cast<void*>(&cuMemcpy3DAsync)},
    {"cuMemcpy3DAsync", 3020, false, reinterpret_cast<void*>(&cuMemcpy3DAsync_v2)},
    {"cuMemcpy3DAsync", 7000, true, reinterpret_cast<void*>(&cuMemcpy3DAsync_v2_ptsz)},
    {"cuMemcpy3DBatchAsync", 12080, false, reinterpret_cast<void*>(&cuMemcpy3DBatchAsync)},
    {"cuMemcpy3DBatchAsync", 13000, false, reinterpret_cast<void*>(&cuMemcpy3DBatchAsync_v2)},
    {"cuMemcpy3DBatchAsync", 12080, true, reinterpret_cast<void*>(&cuMemcpy3DBatchAsync_ptsz)},
    {"cuMemcpy3DBatchAsync", 13000, true, reinterpret_cast<void*>(&cuMemcpy3DBatchAsync_v2_ptsz)},
    {"cuMemcpy3DPeer", 4000, false, reinterpret_cast<void*>(&cuMemcpy3DPeer)},
    {"cuMemcpy3DPeer", 7000, true, reinterpret_cast<void*>(&cuMemcpy3DPeer_ptds)},
    {"cuMemcpy3DPeerAsync", 4000, false, reinterpret_cast<void*>(&cuMemcpy3DPeerAsync)},
    {"cuMemcpy3DPeerAsync", 7000, true, reinterpret_cast<void*>(&cuMemcpy3DPeerAsync_ptsz)},
    {"cuMemcpyAsync", 4000, false, reinterpret_cast<void*>(&cuMemcpyAsync)},
    {"cuMemcpyAsync", 7000, true, reinterpret_cast<void*>(&cuMemcpyAsync_ptsz)},
    {"cuMemcpyAtoA", 2000, false, reinterpret_cast<void*>(&cuMemcpyAtoA)},
    {"cuMemcpyAtoA", 3020, false, reinterpret_cast<void*>(&cuMemcpyAtoA_v2)},
    {"cuMemcpyAtoA", 7000, true, reinterpret_cast<void*>(&cuMemcpyAtoA_v2_ptds)},
    {"cuMemcpyAtoD", 2000, false, reinterpret_cast<void*>(&cuMemcpyAtoD)},
    {"cuMemcpyAtoD", 3020, false, reinterpret_cast<void*>(&cuMemcpyAtoD_v2)},
    {"cuMemcpyAtoD", 7000, true, reinterpret_cast<void*>(&cuMemcpyAtoD_v2_ptds)},
    {"cuMemcpyAtoH", 2000, false, reinterpret_cast<void*>(&cuMemcpyAtoH)},
    {"cuMemcpyAtoH", 3020, false, reinterpret_cast<void*>(&cuMemcpyAtoH_v2)},
    {"cuMemcpyAtoH", 7000, true, reinterpret_cast<void*>(&cuMemcpyAtoH_v2_ptds)},
    {"cuMemcpyAtoHAsync", 2000, false, reinterpret_cast<void*>(&cuMemcpyAtoHAsync)},
    {"cuMemcpyAtoHAsync", 3020, false, reinterpret_cast<void*>(&cuMemcpyAtoHAsync_v2)},
    {"cuMemcpyAtoHAsync", 7000, true, reinterpret_cast<void*>(&cuMemcpyAtoHAsync_v2_ptsz)},
    {"cuMemcpyBatchAsync", 12080, false, reinterpret_cast<void*>(&cuMemcpyBatchAsync)},
    {"cuMemcpyBatchAsync", 13000, false, reinterpret_cast<void*>(&cuMemcpyBatchAsync_v2)},
    {"cuMemcpyBatchAsync", 12080, true, reinterpret_cast<void*>(&cuMemcpyBatchAsync_ptsz)},
    {"cuMemcpyBatchAsync", 13000, true, reinterpret_cast<void*>(&cuMemcpyBatchAsync_v2_ptsz)},
    {"cuMemcpyDtoA", 2000, false, reinterpret_cast<void*>(&cuMemcpyDtoA)},
    {"cuMemcpyDtoA", 3020, false, reinterpret_cast<void*>(&cuMemcpyDtoA_v2)},
    {"cuMemcpyDtoA", 7000, true, reinterpret_cast<void*>(&cuMemcpyDtoA_v2_ptds)},
    {"cuMemcpyDtoD", 2000, false, reinterpret_cast<void*>(&cuMemcpyDtoD)},
    {"cuMemcpyDtoD", 3020, false, reinterpret_cast<void*>(&cuMemcpyDtoD_v2)},
    {"cuMemcpyDtoD", 7000, true, reinterpret_cast<void*>(&cuMemcpyDtoD_v2_ptds)},
    {"cuMemcpyDtoDAsync", 3000, false, reinterpret_cast<void*>(&cuMemcpyDtoDAsync)},
    {"cuMemcpyDtoDAsync", 3020, false, reinterpret_cast<void*>(&cuMemcpyDtoDAsync_v2)},
    {"cuMemcpyDtoDAsync", 7000, true, reinterpret_cast<void*>(&cuMemcpyDtoDAsync_v2_ptsz)},
    {"cuMemcpyDtoH", 2000, false, reinterpret_cast<void*>(&cuMemcpyDtoH)},
    {"cuMemcpyDtoH", 3020, false, reinterpret_cast<void*>(&cuMemcpyDtoH_v2)},
    {"cuMemcpyDtoH", 7000, true, reinterpret_cast<void*>(&cuMemcpyDtoH_v2_ptds)},
    {"cuMemcpyDtoHAsync", 2000, false, reinterpret_cast<void*>(&cuMemcpyDtoHAsync)},
    {"cuMemcpyDtoHAsync", 3020, false, reinterpret_cast<void*>(&cuMemcpyDtoHAsync_v2)},
    {"cuMemcpyDtoHAsync", 7000, true, reinterpret_cast<void*>(&cuMemcpyDtoHAsync_v2_ptsz)},
    {"cuMemcpyHtoA", 2000, false, reinterpret_cast<void*>(&cuMemcpyHtoA)},
    {"cuMemcpyHtoA", 3020, false, reinterpret_cast<void*>(&cuMemcpyHtoA_v2)},
    {"cuMemcpyHtoA", 7000, true, reinterpret_cast<void*>(&cuMemcpyHtoA_v2_ptds)},
    {"cuMemcpyHtoAAsync", 2000, false, reinterpret_cast<void*>(&cuMemcpyHtoAAsync)},
    {"cuMemcpyHtoAAsync", 3020, false, reinterpret_cast<void*>(&cuMemcpyHtoAAsync_v2)},
    {"cuMemcpyHtoAAsync", 7000, true, reinterpret_cast<void*>(&cuMemcpyHtoAAsync_v2_ptsz)},
    {"cuMemcpyHtoD", 2000, false, reinterpret_cast<void*>(&cuMemcpyHtoD)},
    {"cuMemcpyHtoD", 3020, false, reinterpret_cast<void*>(&cuMemcpyHtoD_v2)},
    {"cuMemcpyHtoD", 7000, true, reinterpret_cast<void*>(&cuMemcpyHtoD_v2_ptds)},
    {"cuMemcpyHtoDAsync", 2000, false, reinterpret_cast<void*>(&cuMemcpyHtoDAsync)},
    {"cuMemcpyHtoDAsync", 3020, false, reinterpret_cast<void*>(&cuMemcpyHtoDAsync_v2)},
    {"cuMemcpyHtoDAsync", 7000, true, reinterpret_cast<void*>(&cuMemcpyHtoDAsync_v2_ptsz)},
    {"cuMemcpyPeer", 4000, false, reinterpret_cast<void*>(&cuMemcpyPeer)},
    {"cuMemcpyPeer", 7000, true, reinterpret_cast<void*>(&cuMemcpyPeer_ptds)},
    {"cuMemcpyPeerAsync", 4000, false, reinterpret_cast<void*>(&cuMemcpyPeerAsync)},
    {"cuMemcpyPeerAsync", 7000, true, reinterpret_cast<void*>(&cuMemcpyPeerAsync_ptsz)},
    {"cuMemsetD16", 2000, false, reinterpret_cast<void*>(&cuMemsetD16)},
    {"cuMemsetD16", 3020, false, reinterpret_cast<void*>(&cuMemsetD16_v2)},
    {"cuMemsetD16", 7000, true, reinterpret_cast<void*>(&cuMemsetD16_v2_ptds)},
    {"cuMemsetD16Async", 3020, false, reinterpret_cast<void*>(&cuMemsetD16Async)},
    {"cuMemsetD16Async", 7000, true, reinterpret_cast<void*>(&cuMemsetD16Async_ptsz)},
    {"cuMemsetD2D16", 2000, false, reinterpret_cast<void*>(&cuMemsetD2D16)},
    {"cuMemsetD2D16", 3020, false, reinterpret_cast<void*>(&cuMemsetD2D16_v2)},
    {"cuMemsetD2D16", 7000, true, reinterpret_cast<void*>(&cuMemsetD2D16_v2_ptds)},
    {"cuMemsetD2D16Async", 3020, false, reinterpret_cast<void*>(&cuMemsetD2D16Async)},
    {"cuMemsetD2D16Async", 7000, true, reinterpret_cast<void*>(&cuMemsetD2D16Async_ptsz)},
    {"cuMemsetD2D32", 2000, false, reinterpret_cast<void*>(&cuMemsetD2D32)},
    {"cuMemsetD2D32", 3020, false, reinterpret_cast<void*>(&cuMemsetD2D32_v2)},
    {"cuMemsetD2D32", 7000, true, reinterpret_cast<void*>(&cuMemsetD2D32_v2_ptds)},
    {"cuMemsetD2D32Async", 3020, false, reinterpret_cast<void*>(&cuMemsetD2D32Async)},
    {"cuMemsetD2D32Async", 7000, true, reinterpret_cast<void*>(&cuMemsetD2D32Async_ptsz)},
    {"cuMemsetD2D8", 2000, false, reinterpret_cast<void*>(&cuMemsetD2D8)},
    {"cuMemsetD2D8", 3020, false, reinterpret_cast<void*>(&cuMemsetD2D8_v2)},
    {"cuMemsetD2D8", 7000, true, reinterpret_cast<void*>(&cuMemsetD2D8_v2_ptds)},
    {"cuMemsetD2D8Async", 3020, false, reinterpret_cast<void*>(&cuMemsetD2D8Async)},
    {"cuMemsetD2D8Async", 7000, true, reinterpret_cast<void*>(&cuMemsetD2D8Async_ptsz)},
    {"cuMemsetD32", 2000, false, reinterpret_cast<void*>(&cuMemsetD32)},
    {"cuMemsetD32", 3020, false, reinterpret_cast<void*>(&cuMemsetD32_v2)},
    {"cuMemsetD32", 7000, true, reinterpret_cast<void*>(&cuMemsetD32_v2_ptds)},
    {"cuMemsetD32Async", 3020, false, reinterpret_cast<void*>(&cuMemsetD32Async)},
    {"cuMemsetD32Async", 7000, true, reinterpret_cast<void*>(&cuMemsetD32Async_ptsz)},
    {"cuMemsetD8", 2000, false, reinterpret_cast<void*>(&cuMemsetD8)},
    {"cuMemsetD8", 3020, false, reinterpret_cast<void*>(&cuMemsetD8_v2)},
    {"cuMemsetD8", 7000, true, reinterpret_cast<void*>(&cuMemsetD8_v2_ptds)},
    {"cuMemsetD8Async", 3020, false, reinterpret_cast<void*>(&cuMemsetD8Async)},
    {"cuMemsetD8Async", 7000, true, reinterpret_cast<void*>(&cuMemsetD8Async_ptsz)},
    {"cuMipmappedArrayCreate", 5000, false, reinterpret_cast<void*>(&cuMipmappedArrayCreate)},
    {"cuMipmappedArrayDestroy", 5000, false, reinterpret_cast<void*>(&cuMipmappedArrayDestroy)},
    {"cuMipmappedArrayGetLevel", 5000, false, reinterpret_cast<void*>(&cuMipmappedArrayGetLevel)},
    {"cuMipmappedArrayGetMemoryRequirements", 11060, false, reinterpret_cast<void*>(&cuMipmappedArrayGetMemoryRequirements)},
    {"cuMipmappedArrayGetSparseProperties", 11010, false, reinterpret_cast<void*>(&cuMipmappedArrayGetSparseProperties)},
    {"cuModuleEnumerateFunctions", 12040, false, reinterpret_cast<void*>(&cuModuleEnumerateFunctions)},
    {"cuModuleGetFunction", 2000, false, reinterpret_cast<void*>(&cuModuleGetFunction)},
    {"cuModuleGetFunctionCount", 12040, false, reinterpret_cast<void*>(&cuModuleGetFunctionCount)},
    {"cuModuleGetGlobal", 2000, false, reinterpret_cast<void*>(&cuModuleGetGlobal)},
    {"cuModuleGetGlobal", 3020, false, reinterpret_cast<void*>(&cuModuleGetGlobal_v2)},
    {"cuModuleGetLoadingMode", 11070, false, reinterpret_cast<void*>(&cuModuleGetLoadingMode)},
    {"cuModuleGetSurfRef", 3000, false, reinterpret_cast<void*>(&cuModuleGetSurfRef)},
    {"cuModuleGetTexRef", 2000, false, reinterpret_cast<void*>(&cuModuleGetTexRef)},
    {"cuModuleLoad", 2000, false, reinterpret_cast<void*>(&cuModuleLoad)},
    {"cuModuleLoadData", 2000, false, reinterpret_cast<void*>(&cuModuleLoadData)},
    {"cuModuleLoadDataEx", 2010, false, reinterpret_cast<void*>(&cuModuleLoadDataEx)},
    {"cuModuleLoadFatBinary", 2000, false, reinterpret_cast<void*>(&cuModuleLoadFatBinary)},
    {"cuModuleUnload", 2000, false, reinterpret_cast<void*>(&cuModuleUnload)},
    {"cuMulticastAddDevice", 12010, false, reinterpret_cast<void*>(&cuMulticastAddDevice)},
    {"cuMulticastBindAddr", 12010, false, reinterpret_cast<void*>(&cuMulticastBindAddr)},
    {"cuMulticastBindMem", 12010, false, reinterpret_cast<void*>(&cuMulticastBindMem)},
    {"cuMulticastCreate", 12010, false, reinterpret_cast<void*>(&cuMulticastCreate)},
    {"cuMulticastGetGranularity", 12010, false, reinterpret_cast<void*>(&cuMulticastGetGranularity)},
    {"cuMulticastUnbind", 12010, false, reinterpret_cast<void*>(&cuMulticastUnbind)},
    {"cuOccupancyAvailableDynamicSMemPerBlock", 10020, false, reinterpret_cast<void*>(&cuOccupancyAvailableDynamicSMemPerBlock)},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050, false, reinterpret_cast<void*>(&cuOccupancyMaxActiveBlocksPerMultiprocessor)},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", 7000, false, reinterpret_cast<void*>(&cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)},
    {"cuOccupancyMaxActiveClusters", 11070, false, reinterpret_cast<void*>(&cuOccupancyMaxActiveClusters)},
    {"cuOccupancyMaxPotentialBlockSize", 6050, false, reinterpret_cast<void*>(&cuOccupancyMaxPotentialBlockSize)},
    {"cuOccupancyMaxPotentialBlockSizeWithFlags", 7000, false, reinterpret_cast<void*>(&cuOccupancyMaxPotentialBlockSizeWithFlags)},
    {"cuOccupancyMaxPotentialClusterSize", 11070, false, reinterpret_cast<void*>(&cuOccupancyMaxPotentialClusterSize)},
    {"cuParamSetSize", 2000, false, reinterpret_cast<void*>(&cuParamSetSize)},
    {"cuParamSetTexRef", 2000, false, reinterpret_cast<void*>(&cuParamSetTexRef)},
    {"cuParamSetf", 2000, false, reinterpret_cast<void*>(&cuParamSetf)},
    {"cuParamSeti", 2000, false, reinterpret_cast<void*>(&cuParamSeti)},
    {"cuParamSetv", 2000, false, reinterpret_cast<void*>(&cuParamSetv)},
    {"cuPointerGetAttribute", 4000, false, reinterpret_cast<void*>(&cuPointerGetAttribute)},
    {"cuPointerGetAttributes", 7000, false, reinterpret_cast<void*>(&cuPointerGetAttributes)},
    {"cuPointerSetAttribute", 6000, false, reinterpret_cast<void*>(&cuPointerSetAttribute)},
    {"cuProfilerInitialize", 4000, false, reinterpret_cast<void*>(&cuProfilerInitialize)},
    {"cuProfilerStart", 4000, false, reinterpret_cast<void*>(&cuProfilerStart)},
    {"cuProfilerStop", 4000, false, reinterpret_cast<void*>(&cuProfilerStop)},
    {"cuSignalExternalSemaphoresAsync", 10000, false, reinterpret_cast<void*>(&cuSignalExternalSemaphoresAsync)},
    {"cuSignalExternalSemaphoresAsync", 10000, true, reinterpret_cast<void*>(&cuSignalExternalSemaphoresAsync_ptsz)},
    {"cuStreamAddCallback", 5000, false, reinterpret_cast<void*>(&cuStreamAddCallback)},
    {"cuStreamAddCallback", 7000, true, reinterpret_cast<void*>(&cuStreamAddCallback_ptsz)},
    {"cuStreamAttachMemAsync", 6000, false, reinterpret_cast<void*>(&cuStreamAttachMemAsync)},
    {"cuStreamAttachMemAsync", 7000, true, reinterpret_cast<void*>(&cuStreamAttachMemAsync_ptsz)},
    {"cuStreamBatchMemOp", 8000, false, reinterpret_cast<void*>(&cuStreamBatchMemOp)},
    {"cuStreamBatchMemOp", 11070, false, reinterpret_cast<void*>(&cuStreamBatchMemOp_v2)},
    {"cuStreamBatchMemOp", 8000, true, reinterpret_cast<void*>(&cuStreamBatchMemOp_ptsz)},
    {"cuStreamBatchMemOp", 11070, true, reinterpret_cast<void*>(&cuStreamBatchMemOp_v2_ptsz)},
    {"cuStreamBeginCapture", 10000, false, reinterpret_cast<void*>(&cuStreamBeginCapture)},
    {"cuStreamBeginCapture", 10010, false, reinterpret_cast<void*>(&cuStreamBeginCapture_v2)},
    {"cuStreamBeginCapture", 10000, true, reinterpret_cast<void*>(&cuStreamBeginCapture_ptsz)},
    {"cuStreamBeginCapture", 10010, true, reinterpret_cast<void*>(&cuStreamBeginCapture_v2_ptsz)},
    {"cuStreamBeginCaptureToGraph", 12030, false, reinterpret_cast<void*>(&cuStreamBeginCaptureToGraph)},
    {"cuStreamBeginCaptureToGraph", 12030, true, reinterpret_cast<void*>(&cuStreamBeginCaptureToGraph_ptsz)},
    {"cuStreamCopyAttributes", 11000, false, reinterpret_cast<void*>(&cuStreamCopyAttributes)},
    {"cuStreamCopyAttributes", 11000, true, reinterpret_cast<void*>(&cuStreamCopyAttributes_ptsz)},
    {"cuStreamCreate", 2000, false, reinterpret_cast<void*>(&cuStreamCreate)},
    {"cuStreamCreateWithPriority", 5050, false, reinterpret_cast<void*>(&cuStreamCreateWithPriority)},
    {"cuStreamDestroy", 2000, false, reinterpret_cast<void*>(&cuStreamDestroy)},
    {"cuStreamDestroy", 4000, false, reinterpret_cast<void*>(&cuStreamDestroy_v2)},
    {"cuStreamEndCapture", 10000, false, reinterpret_cast<void*>(&cuStreamEndCapture)},
    {"cuStreamEndCapture", 10000, true, reinterpret_cast<void*>(&cuStreamEndCapture_ptsz)},
    {"cuStreamGetAttribute", 11000, false, reinterpret_cast<void*>(&cuStreamGetAttribute)},
    {"cuStreamGetAttribute", 11000, true, reinterpret_cast<void*>(&cuStreamGetAttribute_ptsz)},
    {"cuStreamGetCaptureInfo", 10010, false, reinterpret_cast<void*>(&cuStreamGetCaptureInfo)},
    {"cuStreamGetCaptureInfo", 11030, false, reinterpret_cast<void*>(&cuStreamGetCaptureInfo_v2)},
    {"cuStreamGetCaptureInfo", 12030, false, reinterpret_cast<void*>(&cuStreamGetCaptureInfo_v3)},
    {"cuStreamGetCaptureInfo", 10010, true, reinterpret_cast<void*>(&cuStreamGetCaptureInfo_ptsz)},
    {"cuStreamGetCaptureInfo", 11030, true, reinterpret_cast<void*>(&cuStreamGetCaptureInfo_v2_ptsz)},
    {"cuStreamGetCaptureInfo", 12030, true, reinterpret_cast<void*>(&cuStreamGetCaptureInfo_v3_ptsz)},
    {"cuStreamGetCtx", 9020, false, reinterpret_cast<void*>(&cuStreamGetCtx)},
    {"cuStreamGetCtx", 12050, false, reinterpret_cast<void*>(&cuStreamGetCtx_v2)},
    {"cuStreamGetCtx", 9020, true, reinterpret_cast<void*>(&cuStreamGetCtx_ptsz)},
    {"cuStreamGetCtx", 12050, true, reinterpret_cast<void*>(&cuStreamGetCtx_v2_ptsz)},
    {"cuStreamGetDevice", 12080, false, reinterpret_cast<void*>(&cuStreamGetDevice)},
    {"cuStreamGetDevice", 12080, true, reinterpret_cast<void*>(&cuStreamGetDevice_ptsz)},
    {"cuStreamGetFlags", 5050, false, reinterpret_cast<void*>(&cuStreamGetFlags)},
    {"cuStreamGetFlags", 7000, true, reinterpret_cast<void*>(&cuStreamGetFlags_ptsz)},
    {"cuStreamGetGreenCtx", 12040, false, reinterpret_cast<void*>(&cuStreamGetGreenCtx)},
    {"cuStreamGetId", 12000, false, reinterpret_cast<void*>(&cuStreamGetId)},
    {"cuStreamGetId", 12000, true, reinterpret_cast<void*>(&cuStreamGetId_ptsz)},
    {"cuStreamGetPriority", 5050, false, reinterpret_cast<void*>(&cuStreamGetPriority)},
    {"cuStreamGetPriority", 7000, true, reinterpret_cast<void*>(&cuStreamGetPriority_ptsz)},
    {"cuStreamIsCapturing", 10000, false, reinterpret_cast<void*>(&cuStreamIsCapturing)},
    {"cuStreamIsCapturing", 10000, true, reinterpret_cast<void*>(&cuStreamIsCapturing_ptsz)},
    {"cuStreamQuery", 2000, false, reinterpret_cast<void*>(&cuStreamQuery)},
    {"cuStreamQuery", 7000, true, reinterpret_cast<void*>(&cuStreamQuery_ptsz)},
    {"cuStreamSetAttribute", 11000, false, reinterpret_cast<void*>(&cuStreamSetAttribute)},
    {"cuStreamSetAttribute", 11000, true, reinterpret_cast<void*>(&cuStreamSetAttribute_ptsz)},
    {"cuStreamSynchronize", 2000, false, reinterpret_cast<void*>(&cuStreamSynchronize)},
    {"cuStreamSynchronize", 7000, true, reinterpret_cast<void*>(&cuStreamSynchronize_ptsz)},
    {"cuStreamUpdateCaptureDependencies", 11030, false, reinterpret_cast<void*>(&cuStreamUpdateCaptureDependencies)},
    {"cuStreamUpdateCaptureDependencies", 12030, false, reinterpret_cast<void*>(&cuStreamUpdateCaptureDependencies_v2)},
    {"cuStreamUpdateCaptureDependencies", 11030, true, reinterpret_cast<void*>(&cuStreamUpdateCaptureDependencies_ptsz)},
    {"cuStreamUpdateCaptureDependencies", 12030, true, reinterpret_cast<void*>(&cuStreamUpdateCaptureDependencies_v2_ptsz)},
    {"cuStreamWaitEvent", 3020, false, reinterpret_cast<void*>(&cuStreamWaitEvent)},
    {"cuStreamWaitEvent", 7000, true, reinterpret_cast<void*>(&cuStreamWaitEvent_ptsz)},
    {"cuStreamWaitValue32", 8000, false, reinterpret_cast<void*>(&cuStreamWaitValue32)},
    {"cuStreamWaitValue32", 11070, false, reinterpret_cast<void*>(&cuStreamWaitValue32_v2)},
    {"cuStreamWaitValue32", 8000, true, reinterpret_cast<void*>(&cuStreamWaitValue32_ptsz)},
    {"cuStreamWaitValue32", 11070, true, reinterpret_cast<void*>(&cuStreamWaitValue32_v2_ptsz)},
    {"cuStreamWaitValue64", 9000, false, reinterpret_cast<void*>(&cuStreamWaitValue64)},
    {"cuStreamWaitValue64", 11070, false, reinterpret_cast<void*>(&cuStreamWaitValue64_v2)},
    {"cuStreamWaitValue64", 9000, true, reinterpret_cast<void*>(&cuStreamWaitValue64_ptsz)},
    {"cuStreamWaitValue64", 11070, true, reinterpret_cast<void*>(&cuStreamWaitValue64_v2_ptsz)},
    {"cuStreamWriteValue32", 8000, false, reinterpret_cast<void*>(&cuStreamWriteValue32)},
    {"cuStreamWriteValue32", 11070, false, reinterpret_cast<void*>(&cuStreamWriteValue32_v2)},
    {"cuStreamWriteValue32", 8000, true, reinterpret_cast<void*>(&cuStreamWriteValue32_ptsz)},
    {"cuStreamWriteValue32", 11070, true, reinterpret_cast<void*>(&cuStreamWriteValue32_v2_ptsz)},
    {"cuStreamWriteValue64", 9000, false, reinterpret_cast<void*>(&cuStreamWriteValue64)},
    {"cuStreamWriteValue64", 11070, false, reinterpret_cast<void*>(&cuStreamWriteValue64_v2)},
    {"cuStreamWriteValue64", 9000, true, reinterpret_cast<void*>(&cuStreamWriteValue64_ptsz)},
    {"cuStreamWriteValue64", 11070, true, reinterpret_cast<void*>(&cuStreamWriteValue64_v2_ptsz)},
    {"cuSurfObjectCreate", 5000, false, reinterpret_cast<void*>(&cuSurfObjectCreate)},
    {"cuSurfObjectDestroy", 5000, false, reinterpret_cast<void*>(&cuSurfObjectDestroy)},
    {"cuSurfObjectGetResourceDesc", 5000, false, reinterpret_cast<void*>(&cuSurfObjectGetResourceDesc)},
    {"cuSurfRefGetArray", 3000, false, reinterpret_cast<void*>(&cuSurfRefGetArray)},
    {"cuSurfRefSetArray", 3000, false, reinterpret_cast<void*>(&cuSurfRefSetArray)},
    {"cuTensorMapEncodeIm2col", 12000, false, reinterpret_cast<void*>(&cuTensorMapEncodeIm2col)},
    {"cuTensorMapEncodeIm2colWide", 12080, false, reinterpret_cast<void*>(&cuTensorMapEncodeIm2colWide)},
    {"cuTensorMapEncodeTiled", 12000, false, reinterpret_cast<void*>(&cuTensorMapEncodeTiled)},
    {"cuTensorMapReplaceAddress", 12000, false, reinterpret_cast<void*>(&cuTensorMapReplaceAddress)},
    {"cuTexObjectCreate", 5000, false, reinterpret_cast<void*>(&cuTexObjectCreate)},
    {"cuTexObjectDestroy", 5000, false, reinterpret_cast<void*>(&cuTexObjectDestroy)},
    {"cuTexObjectGetResourceDesc", 5000, false, reinterpret_cast<void*>(&cuTexObjectGetResourceDesc)},
    {"cuTexObjectGetResourceViewDesc", 5000, false, reinterpret_cast<void*>(&cuTexObjectGetResourceViewDesc)},
    {"cuTexObjectGetTextureDesc", 5000, false, reinterpret_cast<void*>(&cuTexObjectGetTextureDesc)},
    {"cuTexRefCreate", 2000, false, reinterpret_cast<void*>(&cuTexRefCreate)},
    {"cuTexRefDestroy", 2000, false, reinterpret_cast<void*>(&cuTexRefDestroy)},
    {"cuTexRefGetAddress", 2000, false, reinterpret_cast<void*>(&cuTexRefGetAddress)},
    {"cuTexRefGetAddress", 3020, false, reinterpret_cast<void*>(&cuTexRefGetAddress_v2)},
    {"cuTexRefGetAddressMode", 2000, false, reinterpret_cast<void*>(&cuTexRefGetAddressMode)},
    {"cuTexRefGetArray", 2000, false, reinterpret_cast<void*>(&cuTexRefGetArray)},
    {"cuTexRefGetBorderColor", 8000, false, reinterpret_cast<void*>(&cuTexRefGetBorderColor)},
    {"cuTexRefGetFilterMode", 2000, false, reinterpret_cast<void*>(&cuTexRefGetFilterMode)},
    {"cuTexRefGetFlags", 2000, false, reinterpret_cast<void*>(&cuTexRefGetFlags)},
    {"cuTexRefGetFormat", 2000, false, reinterpret_cast<void*>(&cuTexRefGetFormat)},
    {"cuTexRefGetMaxAnisotropy", 5000, false, reinterpret_cast<void*>(&cuTexRefGetMaxAnisotropy)},
    {"cuTexRefGetMipmapFilterMode", 5000, false, reinterpret_cast<void*>(&cuTexRefGetMipmapFilterMode)},
    {"cuTexRefGetMipmapLevelBias", 5000, false, reinterpret_cast<void*>(&cuTexRefGetMipmapLevelBias)},
    {"cuTexRefGetMipmapLevelClamp", 5000, false, reinterpret_cast<void*>(&cuTexRefGetMipmapLevelClamp)},
    {"cuTexRefGetMipmappedArray", 5000, false, reinterpret_cast<void*>(&cuTexRefGetMipmappedArray)},
    {"cuTexRefSetAddress", 2000, false, reinterpret_cast<void*>(&cuTexRefSetAddress)},
    {"cuTexRefSetAddress", 3020, false, reinterpret_cast<void*>(&cuTexRefSetAddress_v2)},
    {"cuTexRefSetAddress2D", 2020, false, reinterpret_cast<void*>(&cuTexRefSetAddress2D)},
    {"cuTexRefSetAddress2D", 3020, false, reinterpret_cast<void*>(&cuTexRefSetAddress2D_v2)},
    {"cuTexRefSetAddress2D", 4010, false, reinterpret_cast<void*>(&cuTexRefSetAddress2D_v3)},
    {"cuTexRefSetAddressMode", 2000, false, reinterpret_cast<void*>(&cuTexRefSetAddressMode)},
    {"cuTexRefSetArray", 2000, false, reinterpret_cast<void*>(&cuTexRefSetArray)},
    {"cuTexRefSetBorderColor", 8000, false, reinterpret_cast<void*>(&cuTexRefSetBorderColor)},
    {"cuTexRefSetFilterMode", 2000, false, reinterpret_cast<void*>(&cuTexRefSetFilterMode)},
    {"cuTexRefSetFlags", 2000, false, reinterpret_cast<void*>(&cuTexRefSetFlags)},
    {"cuTexRefSetFormat", 2000, false, reinterpret_cast<void*>(&cuTexRefSetFormat)},
    {"cuTexRefSetMaxAnisotropy", 5000, false, reinterpret_cast<void*>(&cuTexRefSetMaxAnisotropy)},
    {"cuTexRefSetMipmapFilterMode", 5000, false, reinterpret_cast<void*>(&cuTexRefSetMipmapFilterMode)},
    {"cuTexRefSetMipmapLevelBias", 5000, false, reinterpret_cast<void*>(&cuTexRefSetMipmapLevelBias)},
    {"cuTexRefSetMipmapLevelClamp", 5000, false, reinterpret_cast<void*>(&cuTexRefSetMipmapLevelClamp)},
    {"cuTexRefSetMipmappedArray", 5000, false, reinterpret_cast<void*>(&cuTexRefSetMipmappedArray)},
    {"cuThreadExchangeStreamCaptureMode", 10010, false, reinterpret_cast<void*>(&cuThreadExchangeStreamCaptureMode)},
    {"cuUserObjectCreate", 11030, false, reinterpret_cast<void*>(&cuUserObjectCreate)},
    {"cuUserObjectRelease", 11030, false, reinterpret_cast<void*>(&cuUserObjectRelease)},
    {"cuUserObjectRetain", 11030, false, reinterpret_cast<void*>(&cuUserObjectRetain)},
    {"cuVDPAUCtxCreate", 3010, false, reinterpret_cast<void*>(&cuVDPAUCtxCreate)},
    {"cuVDPAUCtxCreate", 3020, false, reinterpret_cast<void*>(&cuVDPAUCtxCreate_v2)},
    {"cuVDPAUGetDevice", 3010, false, reinterpret_cast<void*>(&cuVDPAUGetDevice)},
    {"cuWaitExternalSemaphoresAsync", 10000, false, reinterpret_cast<void*>(&cuWaitExternalSemaphoresAsync)},
    {"cuWaitExternalSemaphoresAsync", 10000, true, reinterpret_cast<void*>(&cuWaitExternalSemaphoresAsync_ptsz)},
};
const unsigned kProcRows = sizeof kProcTable / sizeof kProcTable[0];

}  // namespace vgpud::cuda
