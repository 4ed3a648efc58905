/* SPDX-License-Identifier: Apache-2.0
 *
 * The current place in the user's script. The user's chunks are named "@file", those of the prelude
 * "=[prelude] nn.lua", so that a place is always in what the user wrote.
 */
#include <stdarg.h>
#include <stdio.h>

#include "ops/script/internal.h"

bool place_find(lua_State *L, const char **file, int *line)
{
    lua_Debug frame;
    for (int level = 0; lua_getstack(L, level, &frame); level++) {
        lua_getinfo(L, "Sl", &frame);
        if (frame.source[0] != '@' || frame.currentline < 0)
            continue;
        *file = frame.source + 1;
        *line = frame.currentline;
        return true;
    }
    return false;
}

void place_error(lua_State *L, const char *format, ...)
{
    char text[ERROR_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char *file;
    int line;
    if (place_find(L, &file, &line))
        lua_pushfstring(L, "%s:%d: %s", file, line, text);
    else
        lua_pushstring(L, text);
    lua_error(L);
    __builtin_unreachable();
}

const char *place_hint(const char *nearest)
{
    static _Thread_local char text[128];
    if (!nearest)
        return "";
    snprintf(text, sizeof text, "; did you mean '%s'?", nearest);
    return text;
}
