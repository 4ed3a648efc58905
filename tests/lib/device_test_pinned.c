/* SPDX-License-Identifier: Apache-2.0
 *
 * Host memory that is pinned for the TEST device, which checks that pins and unpins match.
 */
#include "lib/device_test_internal.h"

/* Finds the first range that has some of these bytes. */
static size_t find(const struct test_context *context, const void *data, size_t bytes)
{
    uintptr_t begin = (uintptr_t)data, end = begin + bytes;
    size_t i = 0;
    for (; i < context->pinned.n; i++) {
        uintptr_t from = (uintptr_t)context->pinned.items[i].data;
        if (from < end && begin < from + context->pinned.items[i].bytes)
            break;
    }
    return i;
}

int test_pin(struct device *device, const void *data, size_t bytes, struct error *err)
{
    struct test_context *context = test_context(device);
    pthread_mutex_lock(&context->lock);
    bool is_new = find(context, data, bytes) == context->pinned.n;
    if (is_new) {
        struct test_access pinned = {data, bytes, true};
        vec_push(&context->pinned, pinned);
        context->pins++;
    }
    pthread_mutex_unlock(&context->lock);
    if (is_new)
        return 0;
    test_fail(context->scheduler, "the TEST device: %zu bytes are pinned that are", bytes);
    return error_set(err, ERR_INTERNAL, "memory is pinned twice");
}

void test_unpin(struct device *device, const void *data)
{
    struct test_context *context = test_context(device);
    pthread_mutex_lock(&context->lock);
    size_t at = find(context, data, 1);
    bool is_there = at < context->pinned.n && context->pinned.items[at].data == data;
    if (is_there) {
        context->pinned.items[at] = vec_pop(&context->pinned);
        context->unpins++;
    }
    pthread_mutex_unlock(&context->lock);
    if (!is_there)
        test_fail(context->scheduler, "the TEST device: memory is unpinned that is not");
}
