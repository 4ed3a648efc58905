/* SPDX-License-Identifier: Apache-2.0
 *
 * The writing half of a link. A sender tries to write at once; if another thread is writing, it
 * leaves the record to that thread. The loop continues when the system had no room.
 */
#include <errno.h>
#include <sys/socket.h>

#include "base/failpoint.h"
#include "base/time.h"
#include "transport/link/link_private.h"

#define BODY_BYTES ((size_t)64 << 10) /* in one write, after which more is likely to follow */
#define LOOP_BYTES ((size_t)4 << 20)  /* written before the loop serves other links */
#define SMALL_BYTES ((size_t)4 << 10) /* below this, values wait for others of the round */

static void can_write_posted(void *argument)
{
    struct link *link = argument;
    if (link->state != LINK_CLOSED)
        link_can_write(link);
    link_release(link);
}

/* The peer may have sent its reason before it closed: read that first. */
static void write_failed_posted(void *argument)
{
    struct link *link = argument;
    if (link->state != LINK_CLOSED)
        link_can_read(link);
    if (link->state == LINK_DRAINING)
        link_ended(link);
    else if (link->state != LINK_CLOSED)
        link_fail(link, &link->write_error);
    link_release(link);
}

/* Stops being the writer. Returns false if there is something to write after all. */
static bool stop_writing(struct link *link, enum send_queue_state state)
{
    struct send_queue *out = &link->out;
    pthread_mutex_lock(&out->lock);
    bool stay = state == SEND_QUEUE_IDLE ? send_queue_take(out) : out->again;
    bool drained = !stay && state == SEND_QUEUE_IDLE && link->closing;
    out->again = false;
    if (!stay)
        out->state = state;
    pthread_mutex_unlock(&out->lock);
    if (drained && !loop_is_current(link->loop)) { /* the loop waits for this to end the link */
        link_retain(link);
        loop_post(link->loop, can_write_posted, link);
    }
    return !stay;
}

/* Lets the loop serve others and come back; called with the lock held, and releases it. */
static void write_later(struct link *link)
{
    link->out.state = SEND_QUEUE_FULL; /* any other thread may continue */
    link->out.again = false;
    pthread_mutex_unlock(&link->out.lock);
    link_retain(link);
    loop_post(link->loop, can_write_posted, link);
}

/* Writes records, as the writer; `some`: only as much as may delay others. */
static void write_records(struct link *link, bool some)
{
    struct iovec vectors[SEND_QUEUE_WINDOW];
    size_t total = 0;
    for (;;) {
        int n = send_queue_offer(&link->out, link->channel->write_bytes, vectors);
        if (!n && stop_writing(link, SEND_QUEUE_IDLE))
            return;
        if (!n)
            continue;
        ssize_t written = link->channel->type->write(link->channel, vectors, n);
        if (written >= 0) {
            send_queue_advance(&link->out, (size_t)written);
            atomic_fetch_add_explicit(&link->bytes_out, (uint64_t)written, memory_order_relaxed);
            total += (size_t)written;
            if ((size_t)written >= BODY_BYTES && FAILPOINT("link.body"))
                shutdown(link->fd, SHUT_RDWR);
            if (!some || total < LOOP_BYTES)
                continue;
            pthread_mutex_lock(&link->out.lock);
            write_later(link);
            return;
        }
        if (errno == EINTR || (errno == EAGAIN && !stop_writing(link, SEND_QUEUE_FULL)))
            continue;
        if (errno != EAGAIN) {
            /* No thread writes any more. */
            int number = errno;
            error_set(&link->write_error, ERR_UNAVAILABLE, "%s",
                      channel_error_text(link->channel, number));
            link_retain(link);
            loop_post(link->loop, write_failed_posted, link);
        }
        return;
    }
}

static void go_on_writing(struct link *link)
{
    struct send_queue *out = &link->out;
    pthread_mutex_lock(&out->lock);
    bool mine = out->state == SEND_QUEUE_FULL;
    out->again = out->state == SEND_QUEUE_WRITING;
    if (mine)
        out->state = SEND_QUEUE_WRITING;
    pthread_mutex_unlock(&out->lock);
    if (mine)
        write_records(link, true);
}

void link_can_write(struct link *link)
{
    go_on_writing(link);
    if (link->state == LINK_DRAINING && link_has_written(link))
        shutdown(link->fd, SHUT_WR);
}

bool link_has_written(struct link *link)
{
    pthread_mutex_lock(&link->out.lock);
    bool idle = link->out.state == SEND_QUEUE_IDLE;
    pthread_mutex_unlock(&link->out.lock);
    return idle;
}

uint64_t link_waiting(const struct link *link)
{
    struct send_queue *out = (struct send_queue *)(uintptr_t)&link->out;
    pthread_mutex_lock(&out->lock);
    uint64_t put = out->put;
    pthread_mutex_unlock(&out->lock);
    uint64_t written = atomic_load_explicit(&link->bytes_out, memory_order_relaxed);
    return put > written ? put - written : 0;
}

void link_count_tensors(atomic_uint_least64_t *counter, const struct named_tensor *tensors, int n)
{
    uint64_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += tensor_bytes(&tensors[i].tensor);
    if (bytes)
        atomic_fetch_add_explicit(counter, bytes, memory_order_relaxed);
}

/* Sends the record that was begun; called with the lock held, and releases it. Small values from a
 * round of the loop are sent at its end: each alone would cost a system call and wake the peer. */
static int put(struct link *link, int32_t priority, const struct named_tensor *tensors,
               int n_tensors, struct error *err)
{
    struct send_queue *out = &link->out;
    uint64_t before = out->put;
    bool mine = false, waits = out->encoder.kind == RECORD_VALUE && loop_is_current(link->loop);
    int status = encoder_finish(&out->encoder, tensors, n_tensors, err);
    if (!status)
        status = send_queue_put(out, priority, tensors, n_tensors, err);
    if (!status) {
        atomic_fetch_add_explicit(&link->records_out, 1, memory_order_relaxed);
        link_count_tensors(&link->tensors_out, tensors, n_tensors);
        if (out->state == SEND_QUEUE_IDLE && waits && out->put - before <= SMALL_BYTES) {
            write_later(link);
            return 0;
        }
        mine = out->state == SEND_QUEUE_IDLE && send_queue_take(out);
        if (mine)
            out->state = SEND_QUEUE_WRITING;
    }
    pthread_mutex_unlock(&out->lock);
    if (mine)
        write_records(link, loop_is_current(link->loop));
    return status;
}

msgpack_packer *link_begin(struct link *link, enum record_kind kind, int n_fields)
{
    pthread_mutex_lock(&link->out.lock);
    return encoder_begin(&link->out.encoder, kind, n_fields);
}

void link_send_own(struct link *link)
{
    struct error ignored = ERROR_INIT; /* small, without tensors */
    bool last = link->out.encoder.kind == RECORD_END;
    put(link, last ? LINK_LAST : LINK_FIRST, NULL, 0, &ignored);
}

int link_send(struct link *link, const struct named_tensor *tensors, int n_tensors,
              struct error *err)
{
    return link_send_value(link, LINK_FIRST, tensors, n_tensors, err);
}

int link_send_value(struct link *link, int32_t priority, const struct named_tensor *tensors,
                    int n_tensors, struct error *err)
{
    if (FAILPOINT("link.send"))
        shutdown(link->fd, SHUT_RDWR);
    if (!link->closing)
        return put(link, priority, tensors, n_tensors, err);
    *err = link->why;
    if (!err->code)
        err->code = ERR_UNAVAILABLE;
    pthread_mutex_unlock(&link->out.lock);
    return err->code;
}

#define STILL_SECONDS 0.1 /* shorter stalls are not told to the peer */

/* When the system had no room, the loop continues writing; if the loop is stalled, this does. */
void link_keep_alive(void *context)
{
    struct link *link = context;
    uint64_t bytes = atomic_load_explicit(&link->bytes_out, memory_order_relaxed);
    double now = time_now();
    if (bytes != link->kept_out) {
        link->kept_out = bytes;
        link->kept_at = now;
    }
    if (now - link->kept_at < link->ping_seconds)
        return;
    link->kept_at = now;
    if (loop_stillness(link->loop) >= link->ping_seconds)
        go_on_writing(link);
    double still = loop_stillness(link->loop);
    msgpack_packer *packer = link_begin(link, RECORD_PING, still >= STILL_SECONDS);
    if (still >= STILL_SECONDS) {
        pack_key_float(packer, "still", still);
    }
    if (link->closing || link->out.state != SEND_QUEUE_IDLE)
        pthread_mutex_unlock(&link->out.lock); /* waiting bytes serve as a ping */
    else
        link_send_own(link);
}
