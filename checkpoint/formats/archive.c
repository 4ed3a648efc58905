/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/formats/archive.h"

#include <sys/stat.h>

#include "checkpoint/formats/bundle.h"
#include "wire/npz.h"

enum export_form export_form_of(const char *path)
{
    return str_ends(path, ".npz")           ? EXPORT_NPZ
           : str_ends(path, ".safetensors") ? EXPORT_SAFETENSORS
           : str_ends(path, ".index")       ? EXPORT_BUNDLE
           : str_ends(path, ".ckpt")        ? EXPORT_RECORDS
                                            : EXPORT_NONE;
}

bool is_archive(const char *path)
{
    enum export_form form = export_form_of(path);
    return form != EXPORT_NONE && form != EXPORT_RECORDS;
}

int export_form_find(const char *path, enum export_form *form, struct error *err)
{
    *form = export_form_of(path);
    return *form != EXPORT_NONE ? 0
                                : error_set(err, ERR_USAGE,
                                            "%s: its name ends in none of .npz, .safetensors, "
                                            ".index and .ckpt",
                                            path);
}

void archive_release(struct archive *archive)
{
    for (size_t i = 0; i < archive->tensors.n; i++)
        tensor_release(&archive->tensors.items[i].tensor);
    vec_release(&archive->tensors);
    arena_release(&archive->arena);
    *archive = (struct archive){0};
}

int archive_read(const char *path, struct archive *archive, struct error *err)
{
    struct stat status;
    *archive = (struct archive){0};
    if (export_form_of(path) != EXPORT_NONE && !stat(path, &status) && S_ISDIR(status.st_mode))
        return error_set(err, ERR_DATA, "%s: is a directory", path);
    switch (export_form_of(path)) {
    case EXPORT_NPZ: {
        struct npz npz;
        if (npz_open(path, &npz, err))
            return err->code;
        for (int i = 0; i < npz.n && !err->code; i++) {
            struct named_tensor t = {.name = arena_strdup(&archive->arena, npz_name(&npz, i))};
            if (!npz_read(&npz, i, &t.tensor, err))
                vec_push(&archive->tensors, t);
        }
        npz_close(&npz);
        if (err->code)
            archive_release(archive);
        return err->code;
    }
    case EXPORT_SAFETENSORS:
        return safetensors_read(path, archive, err);
    case EXPORT_BUNDLE:
        return bundle_read(path, archive, err);
    default:
        return error_set(err, ERR_INTERNAL, "%s: no archive", path);
    }
}
