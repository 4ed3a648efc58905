/* SPDX-License-Identifier: Apache-2.0
 *
 * An NCCL communicator. Its calls do not block: a wait for other members polls whether the call is
 * still in progress, so that it can be given up.
 */
#include "ops/device/nccl_cuda.h"

#include <stdio.h>
#include <time.h>

#include "base/memory.h"
#include "ops/device/cuda.h"

#define LOOK_NS 200000 /* polling interval of a call in progress */

struct communicator {
    struct cuda_device *d;
    void *handle; /* NULL: it was aborted */
};

static int check(const struct cuda_device *d, int status, const char *what, struct error *err)
{
    if (status == CUDA_NCCL_IN_PROGRESS)
        return 0;
    return cuda_library_check(d, &d->nccl->calls, status, what, err);
}

/* Waits until the call that returned `status` is over. */
static int await_communicator(struct communicator *c, int status, const atomic_bool *gives_up,
                              const char *what, struct error *err)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    struct cuda_device *d = c->d;
    while (status == CUDA_NCCL_IN_PROGRESS) {
        if (atomic_load(gives_up))
            return error_set(err, ERR_CANCELLED, "%s:%d: NCCL: %s: given up", d->device.type,
                             d->device.index, what);
        nanosleep(&pause, NULL);
        int asked = d->nccl->state(c->handle, &status);
        status = asked ? asked : status;
    }
    return check(d, status, what, err);
}

static int describe(struct device *device, char *text, size_t bytes, struct error *err)
{
    struct cuda_device *d = cuda_device(device);
    bool is_there;
    int version = 0;
    if (cuda_load(d, NULL, &d->nccl->calls, &is_there, err) ||
        check(d, d->nccl->version(&version), "its version is asked for", err))
        return err->code;
    snprintf(text, bytes, "%s nccl=%d", d->choice, version);
    return 0;
}

static int make_id(struct device *device, char *id, struct error *err)
{
    struct cuda_device *d = cuda_device(device);
    return cuda_enter(d, err) ? err->code : check(d, d->nccl->id(id), "an id is made", err);
}

static void end(struct communicator *c)
{
    struct error ignored = ERROR_INIT;
    cuda_enter(c->d, &ignored);
    if (c->handle)
        c->d->nccl->abort(c->handle);
    c->handle = NULL;
}

static struct communicator *join(struct device *device, const struct communicator_place *place,
                                 const atomic_bool *gives_up, struct error *err)
{
    struct cuda_device *d = cuda_device(device);
    struct communicator *c;
    if (cuda_enter(d, err))
        return NULL;
    c = mem_alloc(sizeof *c);
    *c = (struct communicator){.d = d};
    int status = d->nccl->open(&c->handle, place);
    if (!await_communicator(c, status, gives_up, "members meet", err))
        return c;
    end(c);
    mem_free(c);
    return NULL;
}

static int add(struct communicator *c, const struct communicator_sum *sum,
               const atomic_bool *gives_up, struct error *err)
{
    struct cuda_device *d = c->d;
    struct CUstream_st *stream = (struct CUstream_st *)cuda_stream(d, QUEUE_COMPUTE);
    if (cuda_enter(d, err))
        return err->code;
    return await_communicator(c, d->nccl->add(c->handle, sum, stream), gives_up, "a sum", err);
}

static int state(struct communicator *c, struct error *err)
{
    int status = 0, asked = c->d->nccl->state(c->handle, &status);
    return check(c->d, asked ? asked : status, "members are lost", err);
}

/* Called when no call is in progress: an abort waits for no other member. */
static void release(struct communicator *c)
{
    end(c);
    mem_free(c);
}

const struct communicator_functions cuda_communicators = {.describe = describe,
                                                          .make_id = make_id,
                                                          .join = join,
                                                          .add = add,
                                                          .check = state,
                                                          .abort = end,
                                                          .free = release};
