/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of CUDA calls, over its runtime.
 */
#include "ops/device/driver_cuda.h"

#include <cuda_runtime_api.h>
#include <stdint.h>

_Static_assert(CUDA_OK == (int)cudaSuccess && CUDA_NO_MEMORY == (int)cudaErrorMemoryAllocation &&
                   CUDA_OLD_DRIVER == (int)cudaErrorInsufficientDriver &&
                   CUDA_NO_DEVICE == (int)cudaErrorNoDevice &&
                   CUDA_ALREADY_PINNED == (int)cudaErrorHostMemoryAlreadyRegistered,
               "errors are CUDA's");
_Static_assert(CUDA_TO_DEVICE == (int)cudaMemcpyHostToDevice &&
                   CUDA_TO_HOST == (int)cudaMemcpyDeviceToHost &&
                   CUDA_WITHIN_DEVICE == (int)cudaMemcpyDeviceToDevice,
               "directions are CUDA's");

/* Clears the error that the runtime remembers: the next kernel launch would report it as its own.
 * Permanent errors are returned again. */
static int result(cudaError_t error)
{
    if (error != cudaSuccess)
        cudaGetLastError();
    return (int)error;
}

/* Defines a function of the table that is one call of CUDA's. */
#define CALL(name, parameters, call)                                                               \
    static int name parameters                                                                     \
    {                                                                                              \
        return result(call);                                                                       \
    }

/* ---- the device ---- */

static int versions(int *driver, int *runtime)
{
    int error = result(cudaDriverGetVersion(driver));
    return error ? error : result(cudaRuntimeGetVersion(runtime));
}

CALL(device_count, (int *count), cudaGetDeviceCount(count))

static int card(int device, struct cuda_card *card)
{
    struct cudaDeviceProp properties;
    int has_pools = 0;
    int error = result(cudaGetDeviceProperties(&properties, device));
    if (!error)
        error = result(cudaDeviceGetAttribute(&has_pools, cudaDevAttrMemoryPoolsSupported, device));
    if (!error)
        *card = (struct cuda_card){properties.totalGlobalMem, properties.major, properties.minor,
                                   has_pools != 0};
    return error;
}

CALL(set_device, (int device), cudaSetDevice(device))
CALL(device_wait, (void), cudaDeviceSynchronize())

static const char *error_text(int error)
{
    return cudaGetErrorString((cudaError_t)error);
}

/* ---- memory ---- */

static cudaStream_t real_stream(struct cuda_stream *stream)
{
    return (cudaStream_t)stream;
}

CALL(memory_alloc, (struct cuda_stream * stream, size_t bytes, void **memory),
     cudaMallocAsync(memory, bytes, real_stream(stream)))
CALL(memory_free, (struct cuda_stream * stream, void *memory),
     cudaFreeAsync(memory, real_stream(stream)))

static int memory_keep(int device)
{
    cudaMemPool_t pool;
    uint64_t all = UINT64_MAX;
    int error = result(cudaDeviceGetMemPool(&pool, device));
    return error ? error
                 : result(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
}

static int memory_trim(int device)
{
    cudaMemPool_t pool;
    int error = result(cudaDeviceGetMemPool(&pool, device));
    return error ? error : result(cudaMemPoolTrimTo(pool, 0));
}

CALL(host_alloc, (size_t bytes, void **memory), cudaHostAlloc(memory, bytes, cudaHostAllocPortable))
CALL(host_free, (void *memory), cudaFreeHost(memory))
CALL(host_register, (void *memory, size_t bytes),
     cudaHostRegister(memory, bytes, cudaHostRegisterPortable))
CALL(host_unregister, (void *memory), cudaHostUnregister(memory))

/* ---- streams ---- */

static int stream_new(struct cuda_stream **stream)
{
    cudaStream_t made = NULL;
    int error = result(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
    *stream = (struct cuda_stream *)made;
    return error;
}

CALL(stream_free, (struct cuda_stream * stream), cudaStreamDestroy(real_stream(stream)))
CALL(stream_wait, (struct cuda_stream * stream, struct cuda_event *event),
     cudaStreamWaitEvent(real_stream(stream), (cudaEvent_t)event, 0))
CALL(copy,
     (struct cuda_stream * stream, void *to, const void *from, size_t bytes,
      enum cuda_direction direction),
     cudaMemcpyAsync(to, from, bytes, (enum cudaMemcpyKind)direction, real_stream(stream)))

/* ---- peers ---- */

static int peer_can(int device, int other, bool *can)
{
    int answer = 0;
    int error = result(cudaDeviceCanAccessPeer(&answer, device, other));
    *can = answer != 0;
    return error;
}

/* Enabling access for a device does not cover memory pools, which need a call of their own. */
static int peer_enable(int device, int other)
{
    struct cudaMemAccessDesc access = {.location = {.type = cudaMemLocationTypeDevice},
                                       .flags = cudaMemAccessFlagsProtReadWrite};
    cudaMemPool_t pool;
    int error = result(cudaDeviceEnablePeerAccess(other, 0));
    if (error == cudaErrorPeerAccessAlreadyEnabled)
        error = 0;
    access.location.id = device;
    if (!error)
        error = result(cudaDeviceGetMemPool(&pool, other));
    return error ? error : result(cudaMemPoolSetAccess(pool, &access, 1));
}

CALL(copy_peer, (struct cuda_stream * stream, const struct cuda_peer_copy *copy),
     cudaMemcpyPeerAsync(copy->to, copy->to_device, copy->from, copy->from_device, copy->bytes,
                         real_stream(stream)))

/* ---- events ---- */

static int event_new(bool timed, struct cuda_event **event)
{
    unsigned flags = cudaEventBlockingSync | (timed ? 0 : cudaEventDisableTiming);
    cudaEvent_t made = NULL;
    int error = result(cudaEventCreateWithFlags(&made, flags));
    *event = (struct cuda_event *)made;
    return error;
}

CALL(event_free, (struct cuda_event * event), cudaEventDestroy((cudaEvent_t)event))
CALL(event_record, (struct cuda_event * event, struct cuda_stream *stream),
     cudaEventRecord((cudaEvent_t)event, real_stream(stream)))
CALL(event_wait, (struct cuda_event * event), cudaEventSynchronize((cudaEvent_t)event))
CALL(event_elapsed, (float *milliseconds, struct cuda_event *from, struct cuda_event *to),
     cudaEventElapsedTime(milliseconds, (cudaEvent_t)from, (cudaEvent_t)to))

/* ---- captured work ---- */

CALL(capture_begin, (struct cuda_stream * stream),
     cudaStreamBeginCapture(real_stream(stream), cudaStreamCaptureModeThreadLocal))

static int capture_end(struct cuda_stream *stream, struct cuda_graph **graph)
{
    cudaGraph_t captured = NULL;
    cudaGraphExec_t made = NULL;
    int error = result(cudaStreamEndCapture(real_stream(stream), &captured));
    if (!error)
        error = result(cudaGraphInstantiate(&made, captured, 0));
    if (captured)
        result(cudaGraphDestroy(captured));
    *graph = (struct cuda_graph *)made;
    return error;
}

CALL(graph_launch, (struct cuda_graph * graph, struct cuda_stream *stream),
     cudaGraphLaunch((cudaGraphExec_t)graph, real_stream(stream)))
CALL(graph_free, (struct cuda_graph * graph), cudaGraphExecDestroy((cudaGraphExec_t)graph))

const struct cuda_driver cuda_driver_real = {
    .versions = versions,
    .device_count = device_count,
    .card = card,
    .set_device = set_device,
    .device_wait = device_wait,
    .error_text = error_text,
    .memory_alloc = memory_alloc,
    .memory_free = memory_free,
    .memory_keep = memory_keep,
    .memory_trim = memory_trim,
    .host_alloc = host_alloc,
    .host_free = host_free,
    .host_register = host_register,
    .host_unregister = host_unregister,
    .stream_new = stream_new,
    .stream_free = stream_free,
    .stream_wait = stream_wait,
    .copy = copy,
    .peer_can = peer_can,
    .peer_enable = peer_enable,
    .copy_peer = copy_peer,
    .event_new = event_new,
    .event_free = event_free,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_elapsed = event_elapsed,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .graph_launch = graph_launch,
    .graph_free = graph_free,
};
