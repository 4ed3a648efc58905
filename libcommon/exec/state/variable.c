/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/state/variable.h"

#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/time.h"
#include "exec/device/deferred.h"
#include "exec/device/pool.h"
#include "exec/device/queue.h"
#include "exec/step/outgoing.h"

/* ---- locks ---- */

static bool is_free(const struct variable *variable, bool write)
{
    return write ? variable->readers == 0 : variable->readers >= 0;
}

static void lock_now(struct variable *variable, bool write)
{
    struct variable_snapshot *snapshot = variable->snapshot;
    if (write && snapshot) { /* copies the value before it changes */
        variable->snapshot = NULL;
        variable_get_value(variable, &snapshot->value, &snapshot->err);
    }
    variable->readers = write ? -1 : variable->readers + 1;
}

bool variable_lock(struct variable *variable, bool write, struct variable_waiter *waiter)
{
    pthread_mutex_lock(&variable->mutex);
    bool taken = !variable->first_waiter && is_free(variable, write);
    if (taken) {
        lock_now(variable, write);
    } else {
        waiter->write = write;
        waiter->next = NULL;
        if (variable->first_waiter)
            variable->last_waiter->next = waiter;
        else
            variable->first_waiter = waiter;
        variable->last_waiter = waiter;
    }
    pthread_mutex_unlock(&variable->mutex);
    return taken;
}

struct waiting_thread {
    struct variable_waiter waiter; /* first */
    pthread_cond_t admitted;
    bool is_admitted; /* guarded by the variable's mutex */
};

/* Unlike other waiters a thread is told with the mutex held: `waiter` is on its stack. */
static void wake_blocked(struct variable_waiter *waiter)
{
    struct waiting_thread *blocked = (struct waiting_thread *)waiter;
    blocked->is_admitted = true;
    pthread_cond_signal(&blocked->admitted);
}

/* Takes the lock for as many waiters as can have it now; returns those to resume as a list. */
static struct variable_waiter *admit(struct variable *variable)
{
    struct variable_waiter *first = NULL, **end = &first, *waiter;
    while ((waiter = variable->first_waiter) && is_free(variable, waiter->write)) {
        lock_now(variable, waiter->write);
        variable->first_waiter = waiter->next;
        if (waiter->resume == wake_blocked) {
            wake_blocked(waiter);
        } else {
            *end = waiter;
            end = &waiter->next;
        }
    }
    *end = NULL;
    return first;
}

static void resume_all(struct variable_waiter *admitted)
{
    while (admitted) { /* resuming a waiter may free it */
        struct variable_waiter *next = admitted->next;
        admitted->resume(admitted);
        admitted = next;
    }
}

void variable_unlock(struct variable *variable, bool write)
{
    if (write)
        tensor_release(&variable->left);
    pthread_mutex_lock(&variable->mutex);
    BUG_ON(write ? variable->readers != -1 : variable->readers <= 0);
    variable->readers = write ? 0 : variable->readers - 1;
    struct variable_waiter *admitted = admit(variable);
    pthread_mutex_unlock(&variable->mutex);
    resume_all(admitted);
}

/* Waits until the lock is given, or until `end` (NULL: for ever). */
static bool lock_blocking(struct variable *variable, bool write, const struct timespec *end)
{
    struct waiting_thread blocked = {.waiter.resume = wake_blocked};
    time_cond_init(&blocked.admitted);
    bool taken = variable_lock(variable, write, &blocked.waiter);
    if (!taken) {
        struct variable_waiter **at = &variable->first_waiter, *before = NULL, *behind = NULL;
        int failed = 0;
        deferred_catch_up(); /* the holder's work may be among it */
        pthread_mutex_lock(&variable->mutex);
        while (!blocked.is_admitted && !failed)
            failed = end ? pthread_cond_timedwait(&blocked.admitted, &variable->mutex, end)
                         : pthread_cond_wait(&blocked.admitted, &variable->mutex);
        taken = blocked.is_admitted;
        if (!taken) { /* it leaves the queue */
            for (; *at != &blocked.waiter; at = &before->next)
                before = *at;
            *at = blocked.waiter.next;
            if (variable->last_waiter == &blocked.waiter)
                variable->last_waiter = before;
            behind = admit(variable);
        }
        pthread_mutex_unlock(&variable->mutex);
        resume_all(behind);
    }
    pthread_cond_destroy(&blocked.admitted);
    return taken;
}

void variable_lock_wait(struct variable *variable, bool write)
{
    lock_blocking(variable, write, NULL);
}

bool variable_lock_until(struct variable *variable, bool write, double seconds)
{
    struct timespec end = time_after(seconds);
    return lock_blocking(variable, write, &end);
}

/* ---- values ---- */

bool variable_is_shared(const struct variable *variable)
{
    return !variable->device || variable->device->is_host;
}

/* NULL: the variable's values are not sent, or are copied. */
static struct outgoing_memory *outgoing_of(const struct variable *variable)
{
    bool is_sent = atomic_load_explicit(&variable->is_sent, memory_order_relaxed);
    return is_sent && variable->store && variable_is_shared(variable)
               ? variable_store_outgoing(variable->store)
               : NULL;
}

/* The memory stays until the lock is released, and then as long as others hold it. */
static void leave_memory(struct variable *variable)
{
    tensor_release(&variable->left);
    variable->left = variable->value;
    variable->value = (struct tensor){0};
}

/* Device memory for a moved value: memory that readers drop is used again. */
static struct buffer *take_from_pool(struct variable *variable, size_t bytes)
{
    if (!variable->pool)
        variable->pool = pool_new(variable->device, true);
    return pool_alloc(variable->pool, bytes);
}

bool variable_other_memory(struct variable *variable, struct tensor *other)
{
    *other = (struct tensor)TENSOR_INIT;
    variable_lock_wait(variable, true);
    size_t bytes = variable->value.data ? tensor_bytes(&variable->value) : 0;
    if (bytes && variable->device && variable->device->is_host && !outgoing_of(variable) &&
        !mem_is_limited() && (!variable->pool || !pool_has(variable->pool, bytes)))
        other->buffer = take_from_pool(variable, bytes);
    if (other->buffer) {
        other->type = variable->type;
        other->shape = variable->value.shape;
        other->data = other->buffer->data;
    }
    variable_unlock(variable, true);
    return other->buffer;
}

static int check_shape(const struct variable *variable, const struct shape *shape,
                       enum variable_write how, struct error *err)
{
    bool has_value = variable->value.data != NULL;
    const struct shape *own = has_value ? &variable->value.shape : &variable->shape;
    if (how == VARIABLE_RESHAPE ||
        (has_value ? shape_equal(own, shape) : shape_compatible(own, shape)))
        return 0;
    return error_set(err, ERR_DATA, "variable '%s' is %s, the new value %s", variable->name,
                     shape_text(own), shape_text(shape));
}

/* A value of equal shape stays where it is, unless others hold that memory or it is to be sent from
 * elsewhere. */
int variable_prepare_write(struct variable *variable, const struct shape *shape,
                           enum variable_write how, struct error *err)
{
    const struct tensor *before = &variable->value;
    if (check_shape(variable, shape, how, err))
        return err->code;
    bool is_move = before->data && shape_equal(&before->shape, shape);
    bool must = is_move ? variable_is_shared(variable) && !buffer_is_sole(before->buffer) : true;
    struct outgoing_memory *outgoing = outgoing_of(variable);
    if (!must && !outgoing_copies(outgoing, before))
        return 0;
    int64_t size = shape_bytes(shape, variable->type);
    size_t bytes = (size_t)size;
    struct buffer *buffer = size < 0 ? NULL : outgoing_alloc(outgoing, variable->type, bytes);
    if (!buffer && !must)
        return 0;
    if (!buffer && size >= 0)
        buffer = !variable->device ? buffer_new(bytes)
                 : is_move         ? take_from_pool(variable, bytes)
                                   : device_alloc(variable->device, bytes);
    if (!buffer)
        return error_set(err, ERR_OS, "no memory for variable '%s', %s%s", variable->name,
                         shape_text_typed(variable->type, shape), mem_limit_text());
    if (is_move && how == VARIABLE_UPDATE)
        memcpy(buffer->data, before->data, bytes);
    /* `shape` may be that of the value that goes */
    const struct tensor value = {variable->type, *shape, buffer->data, buffer, NULL};
    leave_memory(variable);
    variable->value = value;
    return 0;
}

bool variable_may_take_memory(const struct variable *variable, const struct tensor *value)
{
    return variable_is_shared(variable) && !outgoing_copies(outgoing_of(variable), value);
}

int variable_take_memory(struct variable *variable, const struct tensor *value,
                         enum variable_write how, struct error *err)
{
    if (check_shape(variable, &value->shape, how, err))
        return err->code;
    leave_memory(variable);
    variable->value = *value;
    return 0;
}

void variable_written(struct variable *variable)
{
    variable->initialized = true;
    variable->updates++;
    if (variable->is_withdrawn)
        variable->is_withdrawn = false;
}

int variable_get_value(const struct variable *variable, struct tensor *value, struct error *err)
{
    struct device *device = variable->device;
    if (!variable->initialized)
        return error_set(err, ERR_NOINPUT, "variable '%s' is not initialized", variable->name);
    if (variable_is_shared(variable)) {
        tensor_share(value, &variable->value);
        return 0;
    }
    int code = tensor_alloc(value, variable->type, &variable->value.shape, err);
    if (!code)
        code = device_read(device, value->data, variable->value.data, tensor_bytes(value), err);
    if (code)
        tensor_release(value);
    return code;
}

int variable_put_in(struct variable *variable, const struct tensor *value, struct error *err)
{
    struct device *device = variable->device;
    const struct buffer *buffer = value->buffer;
    struct tensor shared;
    /* A value that is all of its memory is shared: its other holders see no write, as the variable
     * moves away before one. */
    if (variable_may_take_memory(variable, value) && buffer && value->data == buffer->data &&
        buffer->bytes == tensor_bytes(value) && !buffer_is_read(buffer)) {
        tensor_share(&shared, value);
        if (variable_take_memory(variable, &shared, VARIABLE_OVERWRITE, err)) {
            tensor_release(&shared);
            return err->code;
        }
        variable_written(variable);
        return 0;
    }
    int code = variable_prepare_write(variable, &value->shape, VARIABLE_OVERWRITE, err);
    if (!code && variable_is_shared(variable))
        memcpy(variable->value.data, value->data, tensor_bytes(value));
    else if (!code)
        code = device_write(device, variable->value.data, value->data, tensor_bytes(value), err);
    if (!code)
        variable_written(variable);
    return code;
}

void variable_clear(struct variable *variable)
{
    tensor_release(&variable->value);
    pool_free(variable->pool);
    variable->pool = NULL;
    variable->initialized = false;
}

void variable_withdraw(struct variable *variable)
{
    variable_clear(variable);
    variable->is_withdrawn = true;
}

struct variable_slice variable_get_slice(struct variable *variable)
{
    pthread_mutex_lock(&variable->mutex);
    struct variable_slice slice = variable->slice;
    pthread_mutex_unlock(&variable->mutex);
    return slice;
}

/* ---- snapshots ---- */

void variable_snapshots_place(const variable_vec *variables, struct variable_snapshots *snapshots)
{
    *snapshots =
        (struct variable_snapshots){.items = mem_array(variables->n + 1, sizeof *snapshots->items)};
    for (size_t i = 0; i < variables->n; i++) {
        struct variable *v = variables->items[i];
        pthread_mutex_lock(&v->mutex);
        if (v->initialized) {
            struct variable_snapshot *snapshot = &snapshots->items[snapshots->n++];
            *snapshot =
                (struct variable_snapshot){.variable = v, .updates = v->updates, .slice = v->slice};
            BUG_ON(v->snapshot);
            if (variable_is_shared(v)) /* a writer leaves it unchanged */
                variable_get_value(v, &snapshot->value, &snapshot->err);
            else
                v->snapshot = snapshot;
        }
        pthread_mutex_unlock(&v->mutex);
    }
}

/* Removes the mark, and takes the lock for `readers`, 0 or 1: no writer has it, nor can have had it
 * since, or the mark would be gone. False: a writer was faster. */
static bool take_away(struct variable_snapshot *snapshot, int readers)
{
    struct variable *v = snapshot->variable;
    pthread_mutex_lock(&v->mutex);
    bool placed = v->snapshot == snapshot;
    if (placed) {
        v->snapshot = NULL;
        v->readers += readers;
    }
    pthread_mutex_unlock(&v->mutex);
    return placed;
}

/* This waits for no step, not even for one that hangs: a writer that waits for such a reader does
 * not have the lock yet. */
int variable_snapshots_collect(struct variable_snapshots *snapshots, struct error *err)
{
    vec_each(snapshot, snapshots) {
        struct variable *v = snapshot->variable;
        if (take_away(snapshot, 1)) {
            variable_get_value(v, &snapshot->value, &snapshot->err);
            variable_unlock(v, false);
        }
        if (snapshot->err.code) {
            *err = snapshot->err;
            return error_prefix(err, "'%s': ", v->name);
        }
    }
    return 0;
}

void variable_snapshots_release(struct variable_snapshots *snapshots)
{
    for (size_t i = 0; i < snapshots->n; i++) {
        take_away(&snapshots->items[i], 0);
        tensor_release(&snapshots->items[i].value);
    }
    mem_free(snapshots->items);
    *snapshots = (struct variable_snapshots){0};
}
