/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/link/send_queue.h"

#include <stdint.h>
#include <string.h>

#include "base/memory.h"

#define FLAT_BYTES ((size_t)16 << 10)    /* smaller bodies are copied: cheaper than sharing */
#define GATHER_BYTES ((size_t)128 << 10) /* of small records per packet */
#define SPARE_BYTES ((size_t)256 << 10)  /* larger packets are not reused */

void send_queue_init(struct send_queue *out, bool sums, size_t bin_bytes)
{
    memset(out, 0, sizeof *out);
    pthread_mutex_init(&out->lock, NULL);
    out->sums = sums;
    out->encoder.bin_bytes = bin_bytes;
    atomic_init(&out->priority, SEND_QUEUE_NOTHING);
}

static void free_packets(struct packet *packet)
{
    while (packet) {
        struct packet *next = packet->next;
        for (int i = 0; i < packet->n_tensors; i++)
            tensor_release(&packet->tensors[i].tensor);
        mem_free(packet->tensors);
        encoder_bodies_release(&packet->bodies);
        str_release(&packet->bytes);
        mem_free(packet);
        packet = next;
    }
}

void send_queue_release(struct send_queue *out)
{
    for (size_t i = 0; i < out->waiting.n; i++)
        free_packets(out->waiting.items[i]);
    vec_release(&out->waiting);
    free_packets(out->spare);
    free_packets(out->current);
    free_packets(out->written);
    encoder_release(&out->encoder);
    encoder_bodies_release(&out->flat);
    for (int i = out->first; i < out->n; i++)
        free_packets(out->window[i].last_of);
    pthread_mutex_destroy(&out->lock);
}

/* ---- waiting packets: a heap; with the lock held ---- */

static bool goes_before(const struct packet *a, const struct packet *b)
{
    return a->priority != b->priority ? a->priority < b->priority : a->number < b->number;
}

static void note_priority(struct send_queue *out)
{
    int64_t priority = out->waiting.n ? out->waiting.items[0]->priority : SEND_QUEUE_NOTHING;
    atomic_store_explicit(&out->priority, priority, memory_order_relaxed);
}

static void add_waiting(struct send_queue *out, struct packet *packet)
{
    packet->number = out->n_packets++;
    vec_push(&out->waiting, packet);
    struct packet **heap = out->waiting.items;
    size_t i = out->waiting.n - 1;
    for (; i && goes_before(packet, heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = packet;
    note_priority(out);
}

static struct packet *take_waiting(struct send_queue *out)
{
    struct packet **heap = out->waiting.items, *first = heap[0], *last = vec_pop(&out->waiting);
    size_t n = out->waiting.n, i = 0;
    for (size_t child = 1; child < n; child = 2 * i + 1) {
        child += child + 1 < n && goes_before(heap[child + 1], heap[child]);
        if (!goes_before(heap[child], last))
            break;
        heap[i] = heap[child];
        i = child;
    }
    if (n)
        heap[i] = last;
    if (out->gathering == first)
        out->gathering = NULL;
    note_priority(out);
    return first;
}

/* ---- adding records ---- */

/* Returns the packet for a small record: an earlier one of equal priority goes first. */
static struct packet *gathering(struct send_queue *out, int32_t priority, size_t bytes)
{
    struct packet *packet = out->gathering;
    if (packet && packet->priority == priority && packet->bytes.n + bytes <= GATHER_BYTES)
        return packet;
    if ((packet = out->spare))
        out->spare = packet->next;
    else
        packet = mem_alloc(sizeof *packet);
    packet->next = NULL;
    packet->started = packet->is_whole = false;
    packet->priority = priority;
    out->gathering = packet;
    add_waiting(out, packet);
    return packet;
}

int send_queue_put(struct send_queue *out, int32_t priority, const struct named_tensor *tensors,
                   int n_tensors, struct error *err)
{
    uint64_t bytes = encoder_body_bytes(tensors, n_tensors, out->encoder.bin_bytes);
    const struct str *header = &out->encoder.header;
    if (bytes > FLAT_BYTES) {
        struct packet *packet = mem_alloc(sizeof *packet);
        packet->priority = priority;
        packet->is_whole = out->encoder.kind == RECORD_REDUCE;
        packet->bodies.bin_bytes = out->encoder.bin_bytes;
        packet->tensors = mem_array((size_t)n_tensors, sizeof *packet->tensors);
        for (int i = 0; i < n_tensors; i++) {
            const struct tensor *t = &tensors[i].tensor;
            if (t->buffer) {
                tensor_share(&packet->tensors[i].tensor, t);
            } else if (tensor_copy(&packet->tensors[i].tensor, t, err)) {
                free_packets(packet);
                return err->code;
            }
            packet->n_tensors++; /* its name is in the header */
        }
        str_append_bytes(&packet->bytes, header->data, header->n);
        if (out->gathering && out->gathering->priority == priority)
            out->gathering = NULL; /* later records come after this one */
        add_waiting(out, packet);
    } else {
        struct packet *packet = gathering(out, priority, header->n + bytes);
        struct encoder_piece piece;
        str_append_bytes(&packet->bytes, header->data, header->n);
        if (n_tensors) {
            encoder_bodies(&out->flat, tensors, n_tensors, out->sums);
            while (encoder_next(&out->flat, bytes, &piece))
                str_append_bytes(&packet->bytes, piece.bytes ? piece.bytes : piece.tag, piece.n);
        }
    }
    out->put += out->encoder.header.n + bytes;
    return 0;
}

/* ---- the stack ---- */

/* Begins the next packet. Call it with the lock held. */
static void begin_next(struct send_queue *out)
{
    while (out->written) {
        struct packet *packet = out->written;
        out->written = packet->next;
        packet->next = out->spare;
        out->spare = packet;
    }
    if (!out->waiting.n)
        return;
    struct packet *packet = take_waiting(out);
    out->overtaking += out->current != NULL;
    packet->next = out->current;
    out->current = packet;
    out->depth++;
}

bool send_queue_take(struct send_queue *out)
{
    begin_next(out);
    return out->current;
}

/* Returns whether the next waiting packet comes now. The last place on the stack is for the most
 * urgent records. */
static bool is_turn(const struct send_queue *out)
{
    const struct packet *packet = out->current;
    int64_t priority = atomic_load_explicit(&out->priority, memory_order_relaxed);
    if (!packet)
        return priority != SEND_QUEUE_NOTHING;
    return priority < packet->priority && packet->started && !packet->is_whole &&
           encoder_at_bin(&packet->bodies) && out->depth <= LIMIT_NESTED - (priority != LINK_FIRST);
}

/* Gets the next piece of the current packet; false: none is left. */
static bool next_piece(struct send_queue *out, struct packet *packet, size_t limit,
                       struct encoder_piece *piece)
{
    if (!packet->started) {
        packet->started = true;
        encoder_bodies(&packet->bodies, packet->tensors, packet->n_tensors, out->sums);
        piece->bytes = packet->bytes.data;
        piece->n = packet->bytes.n;
        return true;
    }
    return encoder_next(&packet->bodies, limit, piece);
}

/* Empty packets of ordinary size are kept for reuse. */
static void packet_written(struct send_queue *out, struct packet *packet)
{
    if (packet->n_tensors || packet->bytes.capacity > SPARE_BYTES) {
        packet->next = NULL;
        free_packets(packet);
        return;
    }
    str_clear(&packet->bytes);
    packet->next = out->written;
    out->written = packet;
}

static void fill(struct send_queue *out, size_t limit)
{
    size_t bytes = 0;
    out->first = out->n = 0;
    while (out->n < SEND_QUEUE_WINDOW && bytes < limit) {
        struct send_queue_piece *slot = &out->window[out->n];
        if (is_turn(out)) {
            pthread_mutex_lock(&out->lock);
            begin_next(out);
            pthread_mutex_unlock(&out->lock);
        }
        if (!out->current)
            return;
        if (!next_piece(out, out->current, limit, &slot->piece)) {
            /* The current packet has no more pieces: it is finished with its last piece, or now if
             * that was written. */
            struct packet *packet = out->current;
            out->current = packet->next;
            out->depth--;
            packet->next = NULL; /* the packets below are no longer linked from it */
            if (out->n)
                out->window[out->n - 1].last_of = packet;
            else
                packet_written(out, packet);
            continue;
        }
        slot->last_of = NULL;
        bytes += slot->piece.n;
        out->n++;
    }
}

int send_queue_offer(struct send_queue *out, size_t limit, struct iovec *vectors)
{
    if (out->first == out->n)
        fill(out, limit);
    for (int i = out->first; i < out->n; i++) {
        const struct encoder_piece *piece = &out->window[i].piece;
        const char *bytes = piece->bytes ? piece->bytes : (const char *)piece->tag;
        size_t offset = i == out->first ? out->offset : 0;
        vectors[i - out->first] =
            (struct iovec){(void *)(uintptr_t)(bytes + offset), piece->n - offset};
    }
    return out->n - out->first;
}

void send_queue_advance(struct send_queue *out, size_t n)
{
    out->offset += n;
    while (out->first < out->n && out->offset >= out->window[out->first].piece.n) {
        struct send_queue_piece *piece = &out->window[out->first++];
        out->offset -= piece->piece.n;
        if (piece->last_of)
            packet_written(out, piece->last_of);
    }
}
