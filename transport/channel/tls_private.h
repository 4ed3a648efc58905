/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface of the OpenSSL module: a symbol tls_module, a struct tls_module.
 */
#ifndef TF_TRANSPORT_TLS_PRIVATE_H
#define TF_TRANSPORT_TLS_PRIVATE_H

#include "transport/channel/tls.h"

#define TLS_KEY_BYTES 32

struct tls_module {
    /* Borrows the key. `name` is the key's, for messages. NULL: OpenSSL refused; the error is set.
     */
    void *(*context_new)(const unsigned char key[TLS_KEY_BYTES], const char *name,
                         struct error *err);
    void (*context_free)(void *context);
    struct channel *(*channel_new)(void *context, int fd, bool server, struct error *err);
};

extern const struct tls_module tls_module;

/* Tells a peer that speaks plain records that a key is required here. */
void tls_tell_plain(int fd);

#endif
