/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS 1.3 with a pre-shared key over a socket: both sides prove that they have the key, and each
 * connection has keys of its own. OpenSSL costs milliseconds and a megabyte; it is loaded for the
 * first connection that needs it, and so never for a job on one host.
 */
#ifndef TF_TRANSPORT_TLS_H
#define TF_TRANSPORT_TLS_H

#include <stdbool.h>

#include "transport/channel/channel.h"

struct tls;

/* Reads the key: 64 hexadecimal digits. ERR_NOINPUT, ERR_DENIED (others may read the file),
 * ERR_CONFIG (no key). */
struct tls *tls_new(const char *key_file, struct error *err);
void tls_free(struct tls *tls);

/* Loads OpenSSL unless it is loaded; called before listening or dialing, to report early if it is
 * missing. ERR_CONFIG. */
int tls_load(struct tls *tls, struct error *err);

/* Makes a channel over the connected, non-blocking socket, with OpenSSL. tls must outlive it. */
struct channel *tls_channel_new(struct tls *tls, int fd, bool server, struct error *err);

#endif
