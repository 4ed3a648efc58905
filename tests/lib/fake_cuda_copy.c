/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's copies: between a card and the host, within a card, and from one to another.
 */
#include <string.h>

#include "lib/fake_cuda_driver.h"

static int enqueue_copy(struct cuda_stream *stream, const struct test_copying *copying)
{
    struct test_scheduler *s = stream->card->scheduler;
    struct error err = ERROR_INIT;
    if (!test_enqueue_copy(s, stream->line, copying, &err))
        return 0;
    return test_captured(s) ? fake_spoilt(&err) : fake_fail(stream->card, err.text);
}

int fake_copy(struct cuda_stream *stream, void *to, const void *from, size_t bytes,
              enum cuda_direction direction)
{
    struct test_copying copying = {direction != CUDA_TO_HOST, direction != CUDA_TO_DEVICE, to, from,
                                   bytes};
    int code = fake_enter(stream->card);
    if (!code && test_allocates_plain) { /* a kernel that measures in its run has plain memory */
        memcpy(to, from, bytes);
        return 0;
    }
    if (!code && direction != CUDA_WITHIN_DEVICE)
        code = fake_host_check(stream->card, direction == CUDA_TO_DEVICE ? from : to, bytes);
    if (!code && direction != CUDA_TO_HOST)
        code = fake_memory_check(stream->card, to);
    if (!code && direction != CUDA_TO_DEVICE)
        code = fake_memory_check(stream->card, from);
    return code ? code : enqueue_copy(stream, &copying);
}

/* ---- peers ---- */

int fake_peer_can(int device, int other, bool *can)
{
    *can = !fake_lacks("peers") && device != other;
    return device < FAKE_CARDS && other < FAKE_CARDS ? 0 : FAKE_INVALID;
}

int fake_peer_enable(int device, int other)
{
    struct fake_card *card = fake_current();
    int code = fake_enter(card);
    if (code)
        return code;
    if (fake_lacks("peers") || device == other || card != fake_card_at(device) ||
        card->asked[other])
        return fake_fail(card, "access to another card cannot be asked for, or was");
    card->asked[other] = true;
    return fake_lacks("access") ? FAKE_INVALID : 0;
}

int fake_copy_peer(struct cuda_stream *stream, const struct cuda_peer_copy *copy)
{
    struct test_copying copying = {true, true, copy->to, copy->from, copy->bytes};
    struct fake_card *card = stream->card, *other = fake_card_at(copy->to_device);
    int code = fake_enter(card);
    if (!code && (card != fake_card_at(copy->from_device) || !card->asked[copy->to_device]))
        code = fake_fail(card, "a copy to a card that access was not asked for");
    if (!code)
        code = fake_memory_check(card, copy->from);
    if (!code)
        code = fake_memory_check(other, copy->to);
    return code ? code : enqueue_copy(stream, &copying);
}
