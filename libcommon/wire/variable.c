/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/slice.h"

int stream_write_variable(struct stream_writer *writer, const struct variable_record *variable,
                          struct error *err)
{
    struct named_tensor named = {variable->name, variable->value};
    msgpack_packer *packer =
        stream_begin(writer, RECORD_TENSOR, 3 + (int)slice_fields(&variable->slice));
    pack_key_text(packer, "container", variable->container);
    pack_key_int(packer, "step", variable->step);
    pack_key_uint(packer, "updates", variable->updates);
    pack_slice(packer, &variable->slice);
    return stream_write(writer, &named, 1, err);
}

static int get_variable(const struct record *record, struct arena *arena,
                        struct variable_record *variable, struct error *err)
{
    int64_t updates = 0;
    if (record->kind != RECORD_TENSOR || record->n_tensors != 1)
        return error_set(err, ERR_DATA, "a %s record among the variables",
                         record_kind_name(record->kind));
    *variable = (struct variable_record){.container = DEFAULT_CONTAINER,
                                         .name = arena_strdup(arena, record->tensors[0].name),
                                         .value = record->tensors[0].tensor};
    record_get_text(&record->header, "container", arena, &variable->container);
    record_get_int(&record->header, "step", &variable->step);
    record_get_int(&record->header, "updates", &updates);
    variable->updates = (uint64_t)updates;
    if (!record_get_slice(&record->header, arena, &variable->value.shape, &variable->slice))
        return error_set(err, ERR_DATA, "'%s' cannot be the part of a variable that it says it is",
                         variable->name);
    return 0;
}

int stream_read_variables(struct stream_reader *reader, struct arena *arena,
                          variable_records *variables, struct error *err)
{
    struct record record = {0};
    struct variable_record variable;
    bool more = true;
    int code = 0;
    while (!code && more) {
        code = stream_read(reader, &record, &more, err);
        if (code == ERR_DATA && !stream_reader_stopped_by(reader) && variables->n)
            error_append(err, "; behind variable '%s'", variables->items[variables->n - 1].name);
        if (code || !more)
            break;
        if (get_variable(&record, arena, &variable, err)) {
            code = error_prefix(err, "%s: ", stream_reader_name(reader));
        } else {
            tensor_share(&variable.value, &record.tensors[0].tensor);
            vec_push(variables, variable);
        }
    }
    record_release(&record);
    return code;
}
