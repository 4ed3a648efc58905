/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/store/salvage.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "checkpoint/store/pages_private.h"
#include "checkpoint/store/store_private.h"

struct salvage_place { /* where a chunk may be; old and new pages may both claim it */
    struct digest digest;
    uint64_t offset, n;
};

struct salvage {
    int fd;
    char *name;
    uint32_t page_bytes;
    uint64_t pages;
    VEC(struct salvage_place) places; /* sorted by digest */
    manifest_vec manifests;
};

static void take_manifest(struct salvage *s, uint64_t offset, uint64_t n)
{
    struct ckpt_manifest m;
    struct error ignored = ERROR_INIT;
    void *bytes = n < s->pages * s->page_bytes ? mem_try(n) : NULL;
    if (bytes && !pages_read(s->fd, bytes, n, offset, &ignored) &&
        !ckpt_manifest_decode(bytes, n, &m, &ignored)) {
        bool known = false;
        for (size_t i = 0; i < s->manifests.n && !known; i++)
            known = digest_equal(&s->manifests.items[i].digest, &m.digest);
        if (known)
            ckpt_manifest_release(&m);
        else
            vec_push(&s->manifests, m);
    }
    mem_free(bytes);
}

static void take_page(struct salvage *s, uint64_t page, const uint8_t *bytes)
{
    struct pages_node node;
    if (!page_header_fits(bytes, s->page_bytes, page, FLAG_LEAF))
        return;
    for (int i = 0; i < page_node_count(bytes); i++)
        if (pages_leaf_node(bytes, s->page_bytes, i, &node)) {
            uint64_t offset = node.value ? page * s->page_bytes + (uint64_t)(node.value - bytes)
                                         : node.overflow_page * s->page_bytes + PAGES_HEADER_BYTES;
            if (node.value || node.overflow_page < s->pages) {
                if (node.key_bytes == CHUNK_KEY_BYTES && *node.key == 'c') {
                    struct salvage_place place = {.offset = offset, .n = node.value_bytes};
                    memcpy(&place.digest, node.key + 1, DIGEST_BYTES);
                    vec_push(&s->places, place);
                } else if ((node.key_bytes == STEP_KEY_BYTES && *node.key == 'm') ||
                           (node.key_bytes == CHUNK_KEY_BYTES && *node.key == 'o')) {
                    take_manifest(s, offset, node.value_bytes);
                }
            }
        }
}

static int by_digest(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct digest)); /* the digest is a place's first member */
}

int salvage_open(const char *folder, struct salvage **salvage, struct error *err)
{
    struct str file = STR_INIT;
    struct stat status;
    error_clear(err);
    str_printf(&file, "%s/data.mdb", folder);
    int fd = open(file.data, O_RDONLY | O_CLOEXEC);
    str_release(&file);
    if (fd < 0)
        return error_set_errno(err, errno == EACCES ? ERR_DENIED : ERR_NOINPUT, "%s", folder);
    if (fstat(fd, &status)) {
        close(fd);
        return error_set_errno(err, ERR_IO, "%s", folder);
    }
    struct salvage *s = mem_alloc(sizeof *s);
    s->fd = fd;
    s->name = mem_strdup(folder);
    s->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
    s->pages = (uint64_t)status.st_size / s->page_bytes;
    uint8_t *bytes = mem_alloc(s->page_bytes);
    for (uint64_t page = 0; page < s->pages; page++) {
        struct error ignored = ERROR_INIT;
        if (!pages_read(s->fd, bytes, s->page_bytes, page * s->page_bytes, &ignored))
            take_page(s, page, bytes);
    }
    mem_free(bytes);
    if (s->places.n)
        qsort(s->places.items, s->places.n, sizeof *s->places.items, by_digest);
    if (s->manifests.n)
        qsort(s->manifests.items, s->manifests.n, sizeof *s->manifests.items,
              ckpt_manifest_by_sequence);
    *salvage = s;
    return 0;
}

void salvage_close(struct salvage *s)
{
    if (!s)
        return;
    manifests_release(&s->manifests);
    vec_release(&s->places);
    close(s->fd);
    mem_free(s->name);
    mem_free(s);
}

const manifest_vec *salvage_manifests(const struct salvage *s)
{
    return &s->manifests;
}

/* Tries every place that claims to hold the chunk. */
static bool read_chunk(struct salvage *s, const struct digest *digest, void *data, size_t n)
{
    size_t low = 0, high = s->places.n;
    while (low < high) { /* finds the first that is not below */
        size_t middle = low + (high - low) / 2;
        if (memcmp(&s->places.items[middle].digest, digest, sizeof *digest) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < s->places.n && digest_equal(&s->places.items[low].digest, digest); low++) {
        struct error ignored = ERROR_INIT;
        if (s->places.items[low].n != n ||
            pages_read(s->fd, data, n, s->places.items[low].offset, &ignored))
            continue;
        struct digest found = digest_of(data, n);
        if (digest_equal(&found, digest))
            return true;
    }
    return false;
}

int salvage_read(struct salvage *s, const struct manifest_tensor *t, struct tensor *value,
                 struct error *err)
{
    struct tensor result;
    error_clear(err);
    if (manifest_tensor_alloc(t, &result, err))
        return error_prefix(err, "'%s': ", t->name);
    for (uint64_t k = 0; k < chunk_count(t->bytes) && !err->code; k++)
        if (!read_chunk(s, &t->chunks[k], (char *)result.data + k * CHUNK_BYTES,
                        chunk_size(t->bytes, k)))
            error_set(err, ERR_DATA, "chunk %" PRIu64 " of %" PRIu64 " is lost", k + 1,
                      chunk_count(t->bytes));
    if (!err->code)
        manifest_tensor_check(t, &result, err);
    if (err->code) {
        manifest_tensor_discard(&result);
        return error_prefix(err, "'%s': ", t->name);
    }
    *value = result;
    return 0;
}
