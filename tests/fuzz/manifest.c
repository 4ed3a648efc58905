/* SPDX-License-Identifier: Apache-2.0
 *
 * The manifest of a checkpoint: either refused, or one that comes back the same once it is written.
 * The magic number and the digest are put before the input.
 */
#include <stdlib.h>
#include <string.h>

#include "checkpoint/store/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void compare(const struct ckpt_manifest *a, const struct ckpt_manifest *b)
{
    must(a->step == b->step && a->sequence == b->sequence && a->time == b->time);
    must(a->n_tensors == b->n_tensors && a->bytes == b->bytes && a->new_bytes == b->new_bytes);
    must(a->tensors.n == b->tensors.n && a->scalars.n == b->scalars.n);
    must(a->blobs.n == b->blobs.n && a->shards.n == b->shards.n);
    for (size_t i = 0; i < a->tensors.n; i++) {
        const struct manifest_tensor *x = &a->tensors.items[i], *y = &b->tensors.items[i];
        must(!strcmp(x->name, y->name) && !strcmp(x->container, y->container));
        must(x->type == y->type && shape_equal(&x->shape, &y->shape));
        must(x->bytes == y->bytes && x->updates == y->updates);
        must(!memcmp(x->chunks, y->chunks, chunk_count(x->bytes) * sizeof *x->chunks));
    }
    for (size_t i = 0; i < a->blobs.n; i++)
        must(a->blobs.items[i].n == b->blobs.items[i].n &&
             !memcmp(a->blobs.items[i].data, b->blobs.items[i].data, a->blobs.items[i].n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = ERROR_INIT;
    struct str value = STR_INIT, again = STR_INIT;
    struct ckpt_manifest manifest, back;
    struct digest digest = digest_of(data, size);
    str_append(&value, "TFCKPT\r\n");
    str_append_bytes(&value, &digest, sizeof digest);
    str_append_bytes(&value, data, size);
    if (!ckpt_manifest_decode(value.data, value.n, &manifest, &err)) {
        ckpt_manifest_encode(&manifest, &again);
        must(!ckpt_manifest_decode(again.data, again.n, &back, &err));
        compare(&manifest, &back);
        ckpt_manifest_release(&back);
        ckpt_manifest_release(&manifest);
    }
    str_release(&again);
    str_release(&value);
    return 0;
}
