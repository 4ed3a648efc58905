/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/channel/link_refusal.h"

#include <string.h>

bool link_guess(const uint8_t *bytes, size_t n, struct error *err)
{
    static const char *const methods[] = {"GET ", "POST", "HEAD", "PUT ", "OPTI", "CONN", "PRI "};
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (n >= 4 && !memcmp(bytes, methods[i], 4)) {
            error_set(err, ERR_PROTOCOL, "an HTTP request, not a hello");
            return true;
        }
    if (n >= 2 && bytes[0] == 0x16 && bytes[1] == 0x03) {
        error_set(err, ERR_DENIED, "the peer wants TLS: it has a key, this side has none");
        return false;
    }
    return n && bytes[0] != 0xce && error_set(err, ERR_PROTOCOL, "no hello");
}
