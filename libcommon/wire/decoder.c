/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/decoder.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "wire/body.h"
#include "wire/header.h"
#include "wire/internal.h"

#define BIG ((size_t)1 << 20) /* from here on, ask whether the bytes can come */

static void enter_stage(struct decoder *d, enum decoder_stage stage, void *out, size_t need)
{
    d->stage = stage;
    d->out = out;
    d->need = need;
    d->done = 0;
}

void decoder_start(struct decoder *d, struct record *record)
{
    record_release_tensors(record);
    record->offset = d->offset;
    d->record = record;
    d->list = NULL;
    d->total = 0;
    d->any = false;
    enter_stage(d, DECODER_PREFIX, d->small, HEADER_PREFIX_BYTES);
}

void decoder_want(const struct decoder *d, void **out, size_t *n)
{
    *out = d->out + d->done;
    *n = d->need - d->done;
}

bool decoder_done(const struct decoder *d)
{
    return d->stage == DECODER_DONE;
}

bool decoder_interrupted(const struct decoder *d)
{
    return d->stage == DECODER_INTERRUPTED;
}

/* At least 1, as 0 would mean no limit. */
static size_t left_of(size_t limit, size_t taken)
{
    return limit > taken ? limit - taken : 1;
}

void decoder_nest(struct decoder *inner, const struct decoder *outer, struct record *record)
{
    const struct decoder_options *all = &outer->options;
    size_t header_bytes = all->header_bytes ? all->header_bytes : LIMIT_HEADER_BYTES;
    inner->options = *all;
    inner->options.header_bytes = left_of(header_bytes, outer->record->bytes_capacity);
    if (all->tensor_bytes)
        inner->options.tensor_bytes = left_of(all->tensor_bytes, outer->total);
    inner->sums = outer->sums;
    inner->offset = outer->offset - 1;
    decoder_start(inner, record);
    inner->small[0] = RECORD_TAG;
    inner->done = 1;
    inner->offset++;
}

void decoder_resume(struct decoder *outer, const struct decoder *inner)
{
    outer->offset = inner->offset;
    enter_stage(outer, DECODER_BIN_TAG, outer->small, 1);
}

bool decoder_wants_data(const struct decoder *d)
{
    return d->stage == DECODER_DATA;
}

void decoder_release(struct decoder *d)
{
    if (d->sum)
        XXH3_freeState(d->sum);
    d->sum = NULL;
}

static bool may_have(const struct decoder *d, size_t n)
{
    return n < BIG || !d->options.may_have || d->options.may_have(d->options.context, n);
}

static int cut(struct error *err)
{
    return error_set(err, ERR_DATA, "truncated");
}

static int take_prefix(struct decoder *d, struct error *err)
{
    int64_t length = header_length(d->small);
    size_t limit = d->options.header_bytes ? d->options.header_bytes : LIMIT_HEADER_BYTES;
    if (length < 0)
        return error_set(err, ERR_DATA, "damaged: no record starts at byte %llu",
                         (unsigned long long)d->record->offset);
    if ((size_t)length > limit)
        return error_set(err, ERR_DATA, "a header of %lld bytes is beyond the limit of %zu",
                         (long long)length, limit);
    if ((size_t)length > d->record->bytes_capacity && !may_have(d, (size_t)length))
        return cut(err);
    if (header_reserve(d->record, (size_t)length, err))
        return err->code;
    enter_stage(d, DECODER_HEADER, d->record->bytes, (size_t)length);
    return length ? 0 : header_parse(d->record, 0, err);
}

/* Allocates the memory of the next tensor in the list. */
static int begin_tensor(struct decoder *d, struct error *err)
{
    struct record *record = d->record;
    struct body_entry entry;
    struct named_tensor *named = &record->tensors[record->n_tensors];
    memset(named, 0, sizeof *named);
    if (body_entry(&d->list->via.array.ptr[record->n_tensors], &entry, err))
        return err->code;
    if (d->options.tensor_bytes && entry.bytes > d->options.tensor_bytes - d->total)
        return error_set(err, ERR_DATA,
                         "tensor '%s': a record with more than %zu bytes is beyond the limit",
                         entry.name, d->options.tensor_bytes);
    if (!may_have(d, entry.bytes))
        return cut(err);
    if (d->options.alloc && entry.like.type != STRING
            ? d->options.alloc(d->options.context, &named->tensor, &entry.like, entry.bytes, err)
            : body_alloc(&named->tensor, &entry, err))
        return err->code;
    if (entry.like.type == STRING) /* no caller may see offsets that were not read */
        memset(named->tensor.data, 0, entry.bytes - entry.text_bytes);
    named->name = entry.name;
    record->n_tensors++;
    d->n_bins = entry.n_bins;
    d->bytes = entry.bytes;
    d->total += entry.bytes;
    d->bin = 0;
    d->got = 0;
    return 0;
}

static struct named_tensor *current_tensor(const struct decoder *d)
{
    return &d->record->tensors[d->record->n_tensors - 1];
}

/* Begins the next bin, of this tensor or of the next one that has any; or ends the record. */
static int next_bin(struct decoder *d, struct error *err)
{
    uint32_t n = d->list ? d->list->via.array.size : 0;
    for (;;) {
        if (d->record->n_tensors && d->bin < d->n_bins) {
            enter_stage(d, DECODER_BIN_TAG, d->small, 1);
            return 0;
        }
        if (d->record->n_tensors) {
            /* A tensor's last bin was read: check the tensor. */
            if (d->got != d->bytes)
                return error_set(err, ERR_DATA, "tensor '%s' has less data than its list says",
                                 current_tensor(d)->name);
            if (body_check(current_tensor(d), d->bytes, err))
                return err->code;
        }
        if ((uint32_t)d->record->n_tensors == n)
            break;
        if (begin_tensor(d, err))
            return err->code;
    }
    if (d->any)
        enter_stage(d, DECODER_SUM, d->small, SUM_BYTES);
    else
        enter_stage(d, DECODER_DONE, NULL, 0);
    return 0;
}

static int take_header(struct decoder *d, struct error *err)
{
    struct record *record = d->record;
    if (header_parse(record, d->need, err))
        return err->code;
    if (d->options.header && d->options.header(d->options.context, record, err))
        return err->code;
    if (body_list(record, &d->list, err))
        return err->code;
    if (d->list && d->list->via.array.size && d->sums) {
        if (!d->sum && !(d->sum = XXH3_createState()))
            mem_exhausted(sizeof(XXH3_state_t));
        XXH3_64bits_reset(d->sum);
    }
    return next_bin(d, err);
}

static int take_tag(struct decoder *d, struct error *err)
{
    uint8_t tag = d->small[0];
    if (tag == RECORD_TAG && d->options.nests) {
        enter_stage(d, DECODER_INTERRUPTED, NULL, 0);
        return 0;
    }
    if (tag < 0xc4 || tag > 0xc6)
        return error_set(err, ERR_DATA, "damaged: no tensor data at byte %llu",
                         (unsigned long long)d->offset - 1);
    d->any = true;
    enter_stage(d, DECODER_BIN_LENGTH, d->small, (size_t)1 << (tag - 0xc4));
    return 0;
}

static int take_length(struct decoder *d, struct error *err)
{
    size_t length = 0;
    for (size_t i = 0; i < d->need; i++)
        length = length << 8 | d->small[i];
    if (length > d->bytes - d->got || length > LIMIT_BIN_BYTES)
        return error_set(err, ERR_DATA, "tensor '%s' has more data than its list says",
                         current_tensor(d)->name);
    d->bin++;
    if (!length)
        return next_bin(d, err);
    enter_stage(d, DECODER_DATA, (uint8_t *)current_tensor(d)->tensor.data + d->got, length);
    return 0;
}

static int take_sum(struct decoder *d, struct error *err)
{
    uint64_t sum = wire_uint64(d->small + 1);
    if (d->small[0] != 0xcf || (d->sums && XXH3_64bits_digest(d->sum) != sum))
        return error_set(err, ERR_DATA,
                         "damaged: the checksum of the tensor data that ends at byte %llu is wrong",
                         (unsigned long long)d->offset - SUM_BYTES);
    enter_stage(d, DECODER_DONE, NULL, 0);
    return 0;
}

int decoder_took(struct decoder *d, size_t n, struct error *err)
{
    BUG_ON(n > d->need - d->done);
    if (d->stage == DECODER_DATA) {
        if (d->sums)
            XXH3_64bits_update(d->sum, d->out + d->done, n);
        d->got += n;
    }
    d->offset += n;
    d->done += n;
    if (d->done < d->need)
        return 0;
    static int (*const take[])(struct decoder *, struct error *) = {
        [DECODER_PREFIX] = take_prefix, [DECODER_HEADER] = take_header,
        [DECODER_BIN_TAG] = take_tag,   [DECODER_BIN_LENGTH] = take_length,
        [DECODER_DATA] = next_bin,      [DECODER_SUM] = take_sum,
        [DECODER_INTERRUPTED] = NULL,
    };
    return take[d->stage] ? take[d->stage](d, err) : 0;
}
