/* SPDX-License-Identifier: MIT */
/* fake_cuda_contexts.c - calls and their lock, contexts, and streams, which are always done. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "fake_cuda.h"

struct CUstream_st {
    CUcontext context;
};

enum { DEEPEST = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool has_ended;
static struct CUctx_st primary[FAKE_MOST_VISIBLE];
static __thread CUcontext current[DEEPEST]; /* the last is the current one */
static __thread int depth;

/* ---- a call ---- */

static void end(void)
{
    has_ended = true;
}

void fake_end_with_process(void)
{
    atexit(end);
}

struct fake_call fake_enter(void)
{
    pthread_mutex_lock(&lock);
    CUresult code = fake_started_by != getpid() ? CUDA_ERROR_NOT_INITIALIZED
                    : has_ended                 ? CUDA_ERROR_DEINITIALIZED
                                                : CUDA_SUCCESS;
    return (struct fake_call){.code = code, .context = depth ? current[depth - 1] : NULL};
}

struct fake_call fake_enter_context(void)
{
    struct fake_call call = fake_enter();
    if (!call.code && !call.context)
        call.code = CUDA_ERROR_INVALID_CONTEXT;
    else if (!call.code && !call.context->is_live)
        call.code = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return call;
}

void fake_leave(struct fake_call *call)
{
    (void)call;
    pthread_mutex_unlock(&lock);
}

/* ---- contexts ---- */

static CUresult check_device(const struct fake_call *call, CUdevice device)
{
    if (call->code)
        return call->code;
    return fake_is_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult context_begin(CUcontext context)
{
    CUresult code = fake_card_take(context->device, FAKE_CONTEXT_BYTES);
    context->is_live = code == CUDA_SUCCESS;
    return code;
}

static void context_end(CUcontext context)
{
    fake_context_free(context);
    fake_card_give_back(context->device, FAKE_CONTEXT_BYTES);
    context->is_live = false;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    FAKE_CALL call = fake_enter();
    CUresult code = check_device(&call, device);
    if (!code && primary[device].n_retained == 0) {
        primary[device].device = device;
        code = context_begin(&primary[device]);
    }
    if (code)
        return code;
    primary[device].n_retained++;
    *context = &primary[device];
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    FAKE_CALL call = fake_enter();
    CUresult code = check_device(&call, device);
    if (code)
        return code;
    if (primary[device].n_retained == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (--primary[device].n_retained == 0)
        context_end(&primary[device]);
    return CUDA_SUCCESS;
}

/* All that it has ends, whoever retains it; those go on with an empty one. */
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    FAKE_CALL call = fake_enter();
    CUresult code = check_device(&call, device);
    if (!code && primary[device].n_retained > 0)
        fake_context_free(&primary[device]);
    return code;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *is_active)
{
    FAKE_CALL call = fake_enter();
    CUresult code = check_device(&call, device);
    if (code)
        return code;
    *flags = 0;
    *is_active = primary[device].is_live;
    return CUDA_SUCCESS;
}

static CUresult push(CUcontext context)
{
    if (depth == DEEPEST)
        return CUDA_ERROR_INVALID_VALUE;
    current[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
    (void)flags;
    FAKE_CALL call = fake_enter();
    CUresult code = check_device(&call, device);
    if (code)
        return code;
    CUcontext made = calloc(1, sizeof *made);
    made->device = device;
    code = context_begin(made);
    if (code) {
        free(made);
        return code;
    }
    *context = made;
    return push(made);
}

CUresult cuCtxCreate_v3(CUcontext *context, void *parameters, int count, unsigned flags,
                        CUdevice device)
{
    (void)parameters;
    (void)count;
    return cuCtxCreate_v2(context, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *context, void *parameters, unsigned flags, CUdevice device)
{
    (void)parameters;
    return cuCtxCreate_v2(context, flags, device);
}

/* Its memory stays: other threads may still have it as their current one, and are told. */
CUresult cuCtxDestroy_v2(CUcontext context)
{
    FAKE_CALL call = fake_enter();
    if (call.code)
        return call.code;
    if (!context || !context->is_live || context->n_retained > 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    context_end(context);
    if (call.context == context)
        depth--;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    FAKE_CALL call = fake_enter();
    if (call.code)
        return call.code;
    if (depth > 0)
        depth--;
    return context ? push(context) : CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    FAKE_CALL call = fake_enter();
    if (!call.code)
        *context = call.context;
    return call.code;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    FAKE_CALL call = fake_enter();
    if (call.code)
        return call.code;
    return context ? push(context) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    FAKE_CALL call = fake_enter();
    if (call.code)
        return call.code;
    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    if (context)
        *context = current[depth];
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    FAKE_CALL call = fake_enter_context();
    if (!call.code)
        *device = call.context->device;
    return call.code;
}

CUresult cuCtxSynchronize(void)
{
    FAKE_CALL call = fake_enter_context();
    if (!call.code)
        fake_pools_synchronize(call.context->device);
    return call.code;
}

/* ---- streams ---- */

CUcontext fake_stream_context(CUstream stream, CUcontext of_thread)
{
    return (uintptr_t)stream <= FAKE_LAST_NAMED_STREAM ? of_thread : stream->context;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    (void)flags;
    FAKE_CALL call = fake_enter_context();
    if (call.code)
        return call.code;
    *stream = malloc(sizeof **stream);
    (*stream)->context = call.context;
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    FAKE_CALL call = fake_enter();
    if (call.code)
        return call.code;
    if ((uintptr_t)stream <= FAKE_LAST_NAMED_STREAM)
        return CUDA_ERROR_INVALID_HANDLE;
    free(stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    FAKE_CALL call = fake_enter_context();
    if (!call.code)
        fake_pools_synchronize(fake_stream_context(stream, call.context)->device);
    return call.code;
}

CUresult cuStreamSynchronize_ptsz(CUstream stream)
{
    return cuStreamSynchronize(stream);
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    FAKE_CALL call = fake_enter_context();
    if (!call.code)
        *context = fake_stream_context(stream, call.context);
    return call.code;
}
