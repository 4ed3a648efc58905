/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/record.h"

int stream_write_feed(struct stream_writer *writer, enum record_kind kind, int64_t step,
                      const struct feed_position *position, const struct named_tensor *tensors,
                      int n_tensors, struct error *err)
{
    msgpack_packer *packer = stream_begin(writer, kind, position ? 5 : 1);
    pack_key_int(packer, "step", step);
    if (position) {
        pack_key_text(packer, "source", position->source);
        pack_key_int(packer, "epoch", position->epoch);
        pack_key_int(packer, "offset", position->offset);
        pack_key_uint(packer, "seed", position->seed);
    }
    return stream_write(writer, tensors, n_tensors, err);
}

int stream_write_fetches(struct stream_writer *writer, int64_t step, const int64_t *versions,
                         const struct named_tensor *tensors, int n_tensors, struct error *err)
{
    uint32_t n_versions = 0;
    for (int i = 0; i < n_tensors; i++)
        n_versions += versions[i] >= 0;
    msgpack_packer *packer = stream_begin(writer, RECORD_FETCH, n_versions ? 2 : 1);
    pack_key_int(packer, "step", step);
    if (n_versions)
        pack_key_map(packer, "versions", n_versions);
    for (int i = 0; i < n_tensors; i++)
        if (versions[i] >= 0) {
            pack_text(packer, tensors[i].name);
            msgpack_pack_int64(packer, versions[i]);
        }
    return stream_write(writer, tensors, n_tensors, err);
}

int64_t record_version(const struct record *record, const char *name)
{
    const msgpack_object *versions = record_field(&record->header, "versions");
    int64_t version;
    bool is_known = versions && versions->type == MSGPACK_OBJECT_MAP &&
                    record_get_int(versions, name, &version) && version >= 0;
    return is_known ? version : -1;
}

bool record_get_position(const struct record *record, struct arena *arena,
                         struct feed_position *position)
{
    const msgpack_object *header = &record->header, *seed = record_field(header, "seed");
    if (!seed || seed->type != MSGPACK_OBJECT_POSITIVE_INTEGER)
        return false;
    position->seed = seed->via.u64;
    return record_get_int(header, "epoch", &position->epoch) &&
           record_get_int(header, "offset", &position->offset) &&
           record_get_text(header, "source", arena, &position->source);
}
