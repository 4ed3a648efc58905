/* SPDX-License-Identifier: Apache-2.0
 *
 * What a reader accepts. Anything larger is refused with a message that names the limit.
 */
#ifndef TF_WIRE_LIMITS_H
#define TF_WIRE_LIMITS_H

#define STREAM_MAJOR 1
#define STREAM_MINOR 0

#define LIMIT_HEADER_BYTES ((size_t)512 << 20) /* a graph of some millions of nodes */
#define LIMIT_HEADER_DEPTH 24                  /* nested containers; msgpack-c stops at 32 */
#define LIMIT_HEADER_OBJECTS ((size_t)64 << 20)
#define LIMIT_RECORD_TENSORS ((size_t)4 << 20)
#define LIMIT_BIN_BYTES ((size_t)64 << 20) /* larger tensors are split into several bins */
#define LIMIT_NESTED 256                   /* records of a link inserted between another's bins */
#define LIMIT_NAME_BYTES ((size_t)4096)    /* of a tensor's name */
#define LIMIT_TENSOR_BYTES ((size_t)1 << 40)
#define CHECKSUM_BLOCK_BYTES                                                                       \
    ((size_t)256 << 10) /* the body is hashed while it passes the cache                            \
                         */

#endif
