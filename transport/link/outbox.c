/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/link/outbox.h"

#include <stdint.h>
#include <string.h>

#include "base/memory.h"

#define FLAT_BYTES ((size_t)16 << 10)    /* smaller bodies are copied: cheaper than sharing */
#define GATHER_BYTES ((size_t)128 << 10) /* of small records in a packet */
#define SPARE_BYTES ((size_t)256 << 10)  /* packets that grew larger are not kept */

void outbox_init(struct outbox *out, bool sums)
{
    memset(out, 0, sizeof *out);
    pthread_mutex_init(&out->lock, NULL);
    out->sums = sums;
}

static void clear_packet(struct packet *packet)
{
    for (int i = 0; i < packet->n_tensors; i++)
        tensor_release(&packet->tensors[i].tensor);
    mem_free(packet->tensors);
    packet->tensors = NULL;
    packet->n_tensors = 0;
}

static void free_packets(struct packet *packet)
{
    while (packet) {
        struct packet *next = packet->next;
        clear_packet(packet);
        str_release(&packet->bytes);
        mem_free(packet);
        packet = next;
    }
}

void outbox_release(struct outbox *out)
{
    free_packets(out->head);
    free_packets(out->spare);
    free_packets(out->current);
    free_packets(out->written);
    encoder_release(&out->encoder);
    encoder_bodies_release(&out->bodies);
    encoder_bodies_release(&out->flat);
    for (int i = out->first; i < out->n; i++)
        free_packets(out->window[i].last_of);
    pthread_mutex_destroy(&out->lock);
}

static struct packet *new_packet(struct outbox *out)
{
    struct packet *packet = out->spare;
    if (packet)
        out->spare = packet->next;
    else
        packet = mem_alloc(sizeof *packet);
    packet->next = NULL;
    if (out->tail)
        out->tail->next = packet;
    else
        out->head = packet;
    out->tail = packet;
    return packet;
}

/* The last packet, if small records may follow in it. */
static struct packet *gathering(struct outbox *out, size_t bytes)
{
    struct packet *tail = out->tail;
    if (tail && !tail->n_tensors && tail->bytes.n + bytes <= GATHER_BYTES)
        return tail;
    return new_packet(out);
}

static void put_flat(struct outbox *out, const struct named_tensor *tensors, int n_tensors,
                     size_t body_bytes)
{
    const struct str *header = &out->encoder.header;
    struct packet *packet = gathering(out, header->n + body_bytes);
    struct encoder_piece piece;
    str_append_bytes(&packet->bytes, header->data, header->n);
    if (!n_tensors)
        return;
    encoder_bodies(&out->flat, tensors, n_tensors, out->sums);
    while (encoder_next(&out->flat, body_bytes, &piece))
        str_append_bytes(&packet->bytes, piece.bytes ? piece.bytes : piece.tag, piece.n);
}

static int keep(struct tensor *kept, const struct tensor *t, struct error *err)
{
    if (!t->buffer)
        return tensor_copy(kept, t, err);
    tensor_share(kept, t);
    return 0;
}

static int put_shared(struct outbox *out, const struct named_tensor *tensors, int n_tensors,
                      struct error *err)
{
    const struct str *header = &out->encoder.header;
    struct packet *packet = mem_alloc(sizeof *packet);
    packet->tensors = mem_array((size_t)n_tensors, sizeof *packet->tensors);
    for (int i = 0; i < n_tensors; i++) {
        if (keep(&packet->tensors[i].tensor, &tensors[i].tensor, err)) {
            free_packets(packet);
            return err->code;
        }
        packet->n_tensors++; /* its name is in the header */
    }
    str_append_bytes(&packet->bytes, header->data, header->n);
    if (out->tail)
        out->tail->next = packet;
    else
        out->head = packet;
    out->tail = packet;
    return 0;
}

int outbox_put(struct outbox *out, const struct named_tensor *tensors, int n_tensors,
               struct error *err)
{
    uint64_t bytes = encoder_body_bytes(tensors, n_tensors);
    if (bytes > FLAT_BYTES) {
        if (put_shared(out, tensors, n_tensors, err))
            return err->code;
    } else {
        put_flat(out, tensors, n_tensors, bytes);
    }
    out->put += out->encoder.header.n + bytes;
    return 0;
}

bool outbox_take(struct outbox *out)
{
    while (out->written) {
        struct packet *packet = out->written;
        out->written = packet->next;
        packet->next = out->spare;
        out->spare = packet;
    }
    out->current = out->head;
    out->head = out->tail = NULL;
    return out->current;
}

/* The next piece of the current packet; false when there is none left. */
static bool next_piece(struct outbox *out, struct packet *packet, size_t limit,
                       struct encoder_piece *piece)
{
    if (!out->started) {
        out->started = true;
        encoder_bodies(&out->bodies, packet->tensors, packet->n_tensors, out->sums);
        piece->bytes = packet->bytes.data;
        piece->n = packet->bytes.n;
        return true;
    }
    return encoder_next(&out->bodies, limit, piece);
}

/* Empty packets of an ordinary size are kept. */
static void packet_written(struct outbox *out, struct packet *packet)
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

/* The current packet has no more pieces: it goes with the last one, or now if that was written. */
static void end_packet(struct outbox *out)
{
    struct packet *packet = out->current;
    out->current = packet->next;
    packet->next = NULL; /* those behind it are not its own any more */
    out->started = false;
    if (out->n)
        out->window[out->n - 1].last_of = packet;
    else
        packet_written(out, packet);
}

static void fill(struct outbox *out, size_t limit)
{
    size_t bytes = 0;
    size_t block = out->sums && limit > CHECKSUM_BLOCK_BYTES ? CHECKSUM_BLOCK_BYTES : limit;
    out->first = out->n = 0;
    while (out->n < OUTBOX_WINDOW && bytes < limit && out->current) {
        struct outbox_piece *slot = &out->window[out->n];
        if (!next_piece(out, out->current, block, &slot->piece)) {
            end_packet(out);
            continue;
        }
        slot->last_of = NULL;
        bytes += slot->piece.n;
        out->n++;
    }
}

int outbox_offer(struct outbox *out, size_t limit, struct iovec *vectors)
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

void outbox_advance(struct outbox *out, size_t n)
{
    out->offset += n;
    while (out->first < out->n && out->offset >= out->window[out->first].piece.n) {
        struct outbox_piece *piece = &out->window[out->first++];
        out->offset -= piece->piece.n;
        if (piece->last_of)
            packet_written(out, piece->last_of);
    }
}
