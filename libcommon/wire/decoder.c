/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/decoder.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
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
    size_t length = wire_uint(d->small + 1, HEADER_PREFIX_BYTES - 1);
    size_t limit = d->options.header_bytes ? d->options.header_bytes : LIMIT_HEADER_BYTES;
    if (d->small[0] != RECORD_TAG)
        return error_set(err, ERR_DATA, "damaged: no record starts at byte %llu",
                         (unsigned long long)d->record->offset);
    if (length > limit)
        return error_set(err, ERR_DATA, "a header of %zu bytes is beyond the limit of %zu", length,
                         limit);
    if (length > d->record->bytes_capacity && !may_have(d, length))
        return cut(err);
    if (header_reserve(d->record, length, err))
        return err->code;
    enter_stage(d, DECODER_HEADER, d->record->bytes, length);
    return length ? 0 : header_parse(d->record, 0, err);
}

/* Checks the next entry of the list of tensors, and allocates the tensor's memory. */
static int begin_tensor(struct decoder *d, struct error *err)
{
    struct record *record = d->record;
    const msgpack_object *object = &d->list->via.array.ptr[record->n_tensors];
    const char *name = record_text(object, "name"), *type_name = record_text(object, "type");
    struct tensor like = TENSOR_INIT;
    int64_t bytes;
    struct named_tensor *named = &record->tensors[record->n_tensors];
    memset(named, 0, sizeof *named);
    if (!name || !type_name || !record_read_shape(record_field(object, "shape"), 0, &like.shape) ||
        !record_get_int(object, "bins", &d->n_bins) || !record_get_int(object, "bytes", &bytes) ||
        d->n_bins < 0)
        return error_set(err, ERR_DATA, "malformed list of tensors");
    if (!record_name_fits(name))
        return error_set(err, ERR_DATA, "a tensor's name is not fit to print: '%.40s'", name);
    if (!dtype_parse(type_name, &like.type) || !record_carries(like.type))
        return error_set(err, ERR_DATA, "tensor '%s': type '%s' is not carried by streams", name,
                         type_name);
    if (bytes < 0 || (uint64_t)bytes > LIMIT_TENSOR_BYTES)
        return error_set(err, ERR_DATA, "tensor '%s': %lld bytes are beyond the limit of %zu", name,
                         (long long)bytes, LIMIT_TENSOR_BYTES);
    bool is_text = like.type == STRING;
    int64_t count = shape_count(&like.shape), least = shape_bytes(&like.shape, like.type);
    if (is_text) /* its offsets */
        least = count >= 0 && count < bytes / 8 ? (count + 1) * 8 : -1;
    if (least < 0 || (is_text ? bytes < least : bytes != least))
        return error_set(err, ERR_DATA, "tensor '%s': %lld bytes are not a %s", name,
                         (long long)bytes, shape_text_typed(like.type, &like.shape));
    d->bytes = (size_t)bytes;
    if (d->options.tensor_bytes && d->bytes > d->options.tensor_bytes - d->total)
        return error_set(err, ERR_DATA,
                         "tensor '%s': a record with more than %zu bytes is beyond the limit", name,
                         d->options.tensor_bytes);
    if (!may_have(d, d->bytes))
        return cut(err);
    struct tensor *t = &named->tensor;
    if (is_text            ? tensor_alloc_strings(t, &like.shape, (size_t)(bytes - least), err)
        : d->options.alloc ? d->options.alloc(d->options.context, t, &like, d->bytes, err)
                           : tensor_alloc(t, like.type, &like.shape, err))
        return err->code;
    if (is_text) /* no caller may see offsets that were not read */
        memset(t->data, 0, (size_t)least);
    named->name = name;
    record->n_tensors++;
    d->total += d->bytes;
    d->bin = 0;
    d->got = 0;
    return 0;
}

static struct named_tensor *current_tensor(const struct decoder *d)
{
    return &d->record->tensors[d->record->n_tensors - 1];
}

static bool booleans_are_valid(const struct tensor *t)
{
    const uint8_t *values = t->data;
    int64_t count = tensor_count(t);
    uint8_t all = 0;
    for (int64_t i = 0; i < count; i++)
        all |= values[i];
    return all <= 1;
}

/* Checks a tensor whose last bin was read. */
static int end_tensor(const struct decoder *d, struct error *err)
{
    const struct named_tensor *named = current_tensor(d);
    const struct tensor *t = &named->tensor;
    if (d->got != d->bytes)
        return error_set(err, ERR_DATA, "tensor '%s' has less data than its list says",
                         named->name);
    bool is_valid = t->type == STRING ? tensor_strings_fit(t, d->bytes)
                                      : t->type != BOOL || booleans_are_valid(t);
    return is_valid ? 0
                    : error_set(err, ERR_DATA, "tensor '%s': data that is no %s", named->name,
                                dtype_name(t->type));
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
        if (d->record->n_tensors && end_tensor(d, err))
            return err->code;
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
    d->list = record_field(&record->header, "tensors");
    uint32_t n = d->list && d->list->type == MSGPACK_OBJECT_ARRAY ? d->list->via.array.size : 0;
    if (d->list && d->list->type != MSGPACK_OBJECT_ARRAY)
        return error_set(err, ERR_DATA, "malformed list of tensors");
    if (n > LIMIT_RECORD_TENSORS)
        return error_set(err, ERR_DATA, "%u tensors in a record are beyond the limit of %zu", n,
                         LIMIT_RECORD_TENSORS);
    if (n > (uint32_t)record->tensors_capacity) {
        mem_free(record->tensors);
        record->tensors = mem_array(n, sizeof *record->tensors);
        record->tensors_capacity = (int)n;
    }
    if (n && d->sums) {
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
    size_t length = wire_uint(d->small, d->need);
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
    uint64_t sum = wire_uint(d->small + 1, 8);
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
