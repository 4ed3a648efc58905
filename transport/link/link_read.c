/* SPDX-License-Identifier: Apache-2.0
 *
 * The reading half of a link: bytes to records, in the loop's thread. Other records may come
 * between the bins of a record: they form a stack, of which the innermost is being read.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/failpoint.h"
#include "base/memory.h"
#include "transport/channel/link_refusal.h"
#include "transport/link/buffer_pool.h"
#include "transport/link/link_private.h"

#define BUFFER_BYTES ((size_t)64 << 10)
#define HELLO_BYTES ((size_t)4096)
#define DIRECT_BYTES ((size_t)8 << 10) /* tensors of this size and more are read in place */
#define LOOP_BYTES ((size_t)4 << 20)   /* read before the loop serves other links */
#define AHEAD_BYTES ((size_t)4 << 10)  /* read after a bin, where another one probably comes */

static int check_header(void *context, const struct record *record, struct error *err)
{
    struct link *link = context;
    if (link->state != LINK_HELLO && link->state != LINK_WELCOME) { /* it is open */
        if (record->kind == RECORD_HELLO)
            return error_set(err, ERR_PROTOCOL, "a second hello");
        if (record->kind == RECORD_END && link->depth)
            return error_set(err, ERR_PROTOCOL, "an end within another record");
        return 0;
    }
    if (record->kind != RECORD_ERROR &&
        record->kind != (link->state == LINK_HELLO ? RECORD_HELLO : RECORD_PING))
        return error_set(err, ERR_PROTOCOL, "record '%s' before the hellos",
                         record_kind_name(record->kind));
    if (record_field(&record->header, "tensors"))
        return error_set(err, ERR_PROTOCOL, "a hello with tensors");
    return 0;
}

/* The value of a `reduce` record is read directly to where others use it once it is complete: no
 * other record may come between its bins, as it could claim completion. */
static int check_nesting(const struct link *link, struct error *err)
{
    if (link->depth == LIMIT_NESTED)
        return error_set(err, ERR_PROTOCOL, "more than %d records within each other", LIMIT_NESTED);
    if (link->reading->record.kind == RECORD_REDUCE)
        return error_set(err, ERR_PROTOCOL, "a record within a '%s' record",
                         record_kind_name(RECORD_REDUCE));
    return 0;
}

static int take_memory(void *context, struct tensor *t, const struct tensor *like, size_t bytes,
                       struct error *err)
{
    struct link *link = context;
    const struct link_config *config = link->config;
    if (config->place && config->place(config->user, link, &link->reading->record, like, t))
        return 0;
    return buffer_pool_alloc(link->config->buffer_pool, t, like, bytes, err);
}

void link_start_reading(struct link *link)
{
    struct link_reader *outer = link->reading = &link->outer;
    outer->decoder.options = (struct decoder_options){.header_bytes = HELLO_BYTES,
                                                      .tensor_bytes = link->config->record_bytes,
                                                      .nests = true,
                                                      .context = link,
                                                      .header = check_header,
                                                      .alloc = take_memory};
    decoder_start(&outer->decoder, &outer->record);
}

static void release_reading(struct link_reader *reading)
{
    decoder_release(&reading->decoder);
    record_release(&reading->record);
}

static void free_reading(struct link_reader *reading)
{
    if (reading)
        release_reading(reading);
    mem_free(reading);
}

void link_stop_reading(struct link *link)
{
    while (link->reading != &link->outer) {
        struct link_reader *inner = link->reading;
        link->reading = inner->below;
        free_reading(inner);
    }
    release_reading(&link->outer);
    free_reading(link->spare);
}

static void take_record(struct link *link)
{
    struct record *record = &link->reading->record;
    atomic_fetch_add_explicit(&link->records_in, 1, memory_order_relaxed);
    link_count_tensors(&link->tensors_in, record->tensors, record->n_tensors);
    switch (record->kind) {
    case RECORD_HELLO: {
        struct error err = ERROR_INIT;
        if (link_take_hello(link, &link->outer.record, &err)) {
            link_refuse(link, &err);
        } else {
            link->state = LINK_WELCOME;
            link_welcome(link);
        }
    } break;
    case RECORD_ERROR: {
        /* The peer states why it ends the link. */
        struct error err = ERROR_INIT;
        const char *text = record_text(&link->reading->record.header, "text");
        int64_t code;
        if (!text || !str_is_printable(text, strlen(text)))
            text = "closed for an unknown reason";
        if (!record_get_int(&link->reading->record.header, "code", &code) || code < 1 || code > 255)
            code = ERR_UNAVAILABLE;
        error_set(&err, (int)code, "%s", text);
        link_fail(link, &err);
    } break;
    case RECORD_END:
        link_ended(link);
        break;
    case RECORD_PING:
        if (link->state == LINK_WELCOME) {
            /* Both hellos were accepted. */
            link->outer.decoder.options.header_bytes = 0;
            link_take_welcome(link, &link->outer.record);
        } else {
            const msgpack_object *header = &link->reading->record.header;
            if (!record_get_float(header, "still", &link->peer_still) || !(link->peer_still > 0))
                link->peer_still = 0;
        }
        break;
    default:
        if (FAILPOINT("link.record"))
            shutdown(link->fd, SHUT_RDWR);
        if (link->state == LINK_OPEN)
            link->config->record(link->config->user, link, record);
    }
}

/* Handles n bytes that were read to where the decoder wanted them. */
static void took(struct link *link, size_t n)
{
    struct error err = ERROR_INIT;
    struct link_reader *reading = link->reading;
    if (decoder_took(&reading->decoder, n, &err) ||
        (decoder_interrupted(&reading->decoder) && check_nesting(link, &err))) {
        /* The bytes are damaged, or are not from our protocol. */
        link->is_refused |= link->state == LINK_HELLO;
        if (link->state == LINK_HELLO && !link->outer.record.offset &&
            link_guess(link->buffer, link->end, &err))
            link_fail(link, &err);
        else
            link_refuse(link, &err);
    } else if (decoder_interrupted(&reading->decoder)) {
        /* A record begins between the bins of the current one. */
        struct link_reader *inner = link->spare ? link->spare : mem_alloc(sizeof *inner);
        link->spare = NULL;
        decoder_nest(&inner->decoder, &link->reading->decoder, &inner->record);
        inner->below = link->reading;
        link->reading = inner;
        link->depth++;
        atomic_fetch_add_explicit(&link->nested_in, 1, memory_order_relaxed);
    } else if (decoder_done(&reading->decoder)) {
        take_record(link);
        if (link->state == LINK_CLOSED)
            return;
        if (reading->below) {
            /* The inner record is complete and was handled. */
            struct link_reader *inner = link->reading;
            link->reading = inner->below;
            link->depth--;
            decoder_resume(&link->reading->decoder, &inner->decoder);
            decoder_start(&inner->decoder, &inner->record); /* releases its tensors */
            free_reading(link->spare);
            link->spare = inner;
        } else {
            decoder_start(&reading->decoder, &reading->record);
        }
    }
}

/* Reads to where the decoder wants the bytes, and what follows into the buffer. */
static ssize_t read_more(struct link *link, size_t *direct, size_t *asked)
{
    struct iovec vectors[2];
    int n = 0;
    void *out;
    const struct decoder *decoder = &link->reading->decoder;
    decoder_want(decoder, &out, direct);
    if (!decoder_wants_data(decoder) || *direct < DIRECT_BYTES)
        *direct = 0;
    size_t ahead = *direct && decoder->bin < decoder->n_bins ? AHEAD_BYTES : BUFFER_BYTES;
    if (*direct > link->channel->read_bytes)
        *direct = link->channel->read_bytes;
    if (*direct)
        vectors[n++] = (struct iovec){out, *direct};
    *asked = *direct;
    if (*direct < link->channel->read_bytes) {
        *asked += ahead;
        vectors[n++] = (struct iovec){link->buffer, ahead};
    }
    return link->channel->type->read(link->channel, vectors, n);
}

static void can_read_posted(void *argument)
{
    struct link *link = argument;
    if (link->state != LINK_CLOSED)
        link_can_read(link);
    link_release(link);
}

void link_can_read(struct link *link)
{
    size_t total = 0, direct, asked;
    while (link->state != LINK_CLOSED && total < LOOP_BYTES) {
        ssize_t n = read_more(link, &direct, &asked);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            struct error err = ERROR_INIT;
            if (link->state == LINK_DRAINING) {
                link_ended(link);
            } else {
                link->is_refused |= link->state == LINK_HELLO;
                error_set(&err, ERR_UNAVAILABLE, "%s",
                          n ? channel_error_text(link->channel, errno) : "connection closed");
                link_fail(link, &err);
            }
            return;
        }
        total += (size_t)n;
        atomic_fetch_add_explicit(&link->bytes_in, (size_t)n, memory_order_relaxed);
        direct = direct < (size_t)n ? direct : (size_t)n;
        link->start = 0;
        link->end = (size_t)n - direct;
        if (direct)
            took(link, direct);
        while (link->start < link->end && link->state != LINK_CLOSED) {
            void *out;
            size_t wanted, ready = link->end - link->start;
            decoder_want(&link->reading->decoder, &out, &wanted);
            wanted = wanted < ready ? wanted : ready;
            memcpy(out, link->buffer + link->start, wanted);
            link->start += wanted;
            took(link, wanted);
        }
        if ((size_t)n < asked && link->channel->drains && !link->ending)
            return; /* readiness for more will be reported */
    }
    if (link->state == LINK_CLOSED)
        return;
    link_retain(link); /* serve others first */
    loop_post(link->loop, can_read_posted, link);
}
