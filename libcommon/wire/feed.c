/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/record.h"

int stream_write_feed(struct stream_writer *writer, enum record_kind kind, int64_t step,
                      const struct feed_position *position, const struct named_tensor *tensors,
                      int n_tensors, struct error *err)
{
    msgpack_packer *packer = stream_begin(writer, kind, position ? 5 : 1);
    pack_key(packer, "step");
    msgpack_pack_int64(packer, step);
    if (position) {
        pack_key(packer, "source");
        pack_text(packer, position->source);
        pack_key(packer, "epoch");
        msgpack_pack_int64(packer, position->epoch);
        pack_key(packer, "offset");
        msgpack_pack_int64(packer, position->offset);
        pack_key(packer, "seed");
        msgpack_pack_uint64(packer, position->seed);
    }
    return stream_write(writer, tensors, n_tensors, err);
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
