/* SPDX-License-Identifier: Apache-2.0
 *
 * From a model to files, at a place of the user's or in the cache.
 */
#include "tools/import/model.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/installed.h"
#include "io/engine_file.h"
#include "io/file.h"
#include "io/stream.h"

/* Values of weights of this size stay in the model's file, aligned or not: they are only
 * copied to another file. */
#define LOOSE_BYTES (64 << 10)

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* PATH without its last ".suffix", and with another; malloc'ed. */
static char *with_suffix(const char *path, const char *suffix)
{
    const char *dot = strrchr(base_name(path), '.');
    return text_print("%.*s%s", dot ? (int)(dot - path) : (int)strlen(path), path,
                      suffix);
}

/* The weights first: an INI file that is there has them beside it. */
static int write_files(const struct import *im, const char *ini, strata_error *err)
{
    char *weights = with_suffix(ini, ".safetensors"), *text = NULL;
    size_t size = 0;
    int status = weights ? import_text(im, base_name(weights), &text, &size, err)
                         : error_no_memory(err, 0, "a path");
    if (status == STRATA_OK)
        status = import_save_weights(im, weights, err);
    if (status == STRATA_OK)
        status = file_write(ini, text, size, err);
    free(text);
    free(weights);
    return status;
}

/* Whether the model is, or reads, that file. */
static bool is_read(const struct onnx_model *model, const char *path)
{
    const char *name;
    struct stat state;
    char *folder = file_folder(model->path, NULL);
    bool is = file_same(model->path, path);
    for (size_t i = 0; folder && !is && (name = onnx_file_beside(model, i, &state));
         i++) {
        char *full = text_print("%s/%s", folder, name);
        is = full && file_same(full, path);
        free(full);
    }
    free(folder);
    return is;
}

/* Whether two names are, or will be, of one file. */
static bool is_same(const char *a, const char *b)
{
    return a && b && (strcmp(a, b) == 0 || file_same(a, b));
}

/* Of a file that is written, or NULL: it must not be what is read. */
static int check_file(const struct onnx_model *model, const char *path, const char *what,
                      strata_error *err)
{
    if (!path)
        return STRATA_OK;
    return is_read(model, path)
               ? error_set(err, STRATA_EINVAL,
                           "%s: would be replaced, but the model is read from it; name "
                           "another file for the %s",
                           path, what)
               : file_writable(path, err);
}

/* Before the model is imported. */
static int check_files(const struct onnx_model *model, const char *ini,
                       const char *report, strata_error *err)
{
    char *weights = ini ? with_suffix(ini, ".safetensors") : NULL;
    const bool told = report && strcmp(report, "-") != 0;
    int status = STRATA_OK;
    if (ini && !weights)
        status = error_no_memory(err, 0, "a path");
    else if (is_same(ini, weights))
        status = error_set(err, STRATA_EINVAL,
                           "%s: the weights are written there, beside the network; name "
                           "another file, as net.ini",
                           ini);
    else if (told && (is_same(report, ini) || is_same(report, weights)))
        status = error_set(err, STRATA_EINVAL,
                           "%s: the network is written there; name another file for the "
                           "report",
                           report);
    if (status == STRATA_OK)
        status = check_file(model, ini, "network", err);
    if (status == STRATA_OK)
        status = check_file(model, weights, "network", err);
    if (status == STRATA_OK && told)
        status = check_file(model, report, "report", err);
    free(weights);
    return status;
}

bool model_is_onnx(const char *path)
{
    enum { IR_VERSION = 1 << 3 }; /* the tag of ModelProto's first field */
    const char *dot = strrchr(path, '.');
    unsigned char first = 0;
    if (engine_file_at(path))
        return false;
    return (dot && strcasecmp(dot, ".onnx") == 0) ||
           (file_head(&first, 1, path) == 1 && first == IR_VERSION);
}

int model_import(const char *path, const char *ini, const struct model_options *o,
                 strata_registry *registry, const struct onnx_model **model,
                 struct import **out, strata_error *err)
{
    struct import_options options = model_import_options(o);
    struct import *im = NULL;
    struct onnx_limits limits = onnx_default_limits;
    char *name = with_suffix(base_name(path), "");
    limits.loose_bytes = LOOSE_BYTES;
    options.name = name;
    int status =
        name ? onnx_open(model, path, &limits, err) : error_no_memory(err, 0, "a name");
    if (status == STRATA_OK)
        status = check_files(*model, ini, o->report, err);
    if (status == STRATA_OK) {
        status = import_make(&im, *model, registry, &options, err);
        if ((status = tool_file_status(status, err)) != STRATA_OK)
            error_prefix(err, "%s", path);
    }
    if (status == STRATA_OK && ini)
        status = write_files(im, ini, err);
    free(name);
    if (out)
        *out = im;
    else
        import_free(im);
    return status;
}

/* ---- the cache -----------------------------------------------------------------------
 */

/* What tells one state of a file from another. */
static uint64_t hash_file(const struct stat *s, const char *path)
{
    const uint64_t parts[] = {(uint64_t)s->st_size, (uint64_t)s->st_mtim.tv_sec,
                              (uint64_t)s->st_mtim.tv_nsec, (uint64_t)s->st_ino,
                              (uint64_t)strata_version_number()};
    uint64_t h = 14695981039346656037u;
    for (; *path; path++)
        h = (h ^ (unsigned char)*path) * 1099511628211u;
    for (size_t i = 0; i < sizeof parts; i++)
        h = (h ^ ((const unsigned char *)parts)[i]) * 1099511628211u;
    return h;
}

static int no_cache(const char *path, const char *folder, strata_error *err)
{
    if (errno) {
        error_errno(err, STRATA_EIO, "%s: is imported to %s, which cannot be made", path,
                    folder);
        error_append(err,
                     "; set XDG_CACHE_HOME to a folder that can be written, or write "
                     "a network with `strata import`");
        return STRATA_EIO;
    }
    return error_set(err, STRATA_EIO,
                     "%s: there is no folder to import to, of this user's and to be "
                     "written: $XDG_CACHE_HOME/strata or $HOME/.cache/strata; set "
                     "XDG_CACHE_HOME or HOME, or write a network with `strata import`",
                     path);
}

/* Where the model would lie as a network. */
static char *cache_path(const char *path, const struct stat *s, strata_error *err)
{
    char folder[PATH_MAX];
    char *full = realpath(path, NULL), *stem = with_suffix(base_name(path), "");
    char *out = NULL;
    if (!full)
        error_errno(err, STRATA_EIO, "%s", path);
    else if (!stem)
        error_no_memory(err, 0, "a path");
    else if (!installed_cache(folder, "import"))
        no_cache(path, folder, err);
    else if (!(out = text_print("%s/%.64s-%016" PRIx64 ".ini", folder, stem,
                                hash_file(s, full))))
        error_no_memory(err, 0, "a path");
    free(full);
    free(stem);
    return out;
}

/* ---- files beside a model ----
 * NET.files has a line for each that an import has read: its state, and its name. Written
 * last, so that what it stands beside is whole. */

/* False: it is not there, or no longer what it was; NULL: that does not matter. */
static bool hash_beside(uint64_t *hash, const struct stat *was, const char *path,
                        const char *name)
{
    struct stat s;
    char *folder = file_folder(path, NULL);
    char *typed = folder ? text_print("%s/%s", folder, name) : NULL;
    char *full = typed ? realpath(typed, NULL) : NULL; /* however the model is called */
    const bool is = full && stat(full, &s) == 0;
    *hash = is ? hash_file(&s, full) : 0;
    const bool same = is && (!was || hash_file(was, full) == *hash);
    free(full);
    free(typed);
    free(folder);
    return same;
}

/* Without the list the model is imported again the next time, as where data were replaced
 * while they were read. */
static int write_beside(const struct onnx_model *model, const char *path,
                        const char *list, strata_error *err)
{
    char *text = NULL;
    size_t size = 0;
    const char *name;
    struct stat was;
    uint64_t hash;
    int status = STRATA_OK;
    FILE *f = text_stream(&text, &size);
    for (size_t i = 0; f && (name = onnx_file_beside(model, i, &was)); i++)
        if (hash_beside(&hash, &was, path, name))
            fprintf(f, "%016" PRIx64 " %s\n", hash, name);
        else
            status = error_set(err, STRATA_EIO, "'%s' beside it has changed", name);
    if (!f || !text_finish(f, &text))
        status = error_no_memory(err, 0, "files beside a model");
    else if (status == STRATA_OK)
        status = file_write(list, text, size, err);
    free(text);
    return status;
}

static bool line_holds(char *line, const char *path)
{
    uint64_t hash;
    char *end;
    const uint64_t was = strtoull(line, &end, 16);
    return *end == ' ' && hash_beside(&hash, NULL, path, end + 1) && hash == was;
}

/* Whether an import that lies in the cache is of the files that there are now. */
static bool is_current(const char *ini, const char *path)
{
    enum { MOST = 1 << 20 };
    char *list = with_suffix(ini, ".files");
    struct file_bytes f = {0};
    bool is =
        list && access(ini, R_OK) == 0 && file_read(&f, list, MOST, NULL) == STRATA_OK;
    char *at = f.data, *end;
    while (is && at && (end = strchr(at, '\n'))) {
        *end = '\0';
        is = line_holds(at, path);
        at = end + 1;
    }
    file_free(&f);
    free(list);
    return is;
}

/* Import to the cache, without a list of an earlier import meanwhile. */
static int import_anew(const char *path, const char *ini, strata_registry *registry,
                       strata_error *err)
{
    const struct model_options none = {0};
    const struct onnx_model *model = NULL;
    strata_error why = {0};
    char *list = with_suffix(ini, ".files");
    if (!list)
        return error_no_memory(err, 0, "a path");
    unlink(list);
    int status = model_import(path, ini, &none, registry, &model, NULL, err);
    if (status == STRATA_OK && write_beside(model, path, list, &why) != STRATA_OK)
        log_line(STRATA_LOG_WARNING, "%s: will be imported anew the next time, too: %s",
                 path, why.message);
    onnx_close(model);
    free(list);
    return status;
}

int model_cached(char **ini, const char *path, strata_registry *registry,
                 strata_error *err)
{
    struct stat s;
    *ini = NULL;
    if (stat(path, &s) != 0)
        return error_set(err, STRATA_ENOTFOUND, "%s: there is no such file", path);
    if (!(*ini = cache_path(path, &s, err)))
        return err->status;
    return is_current(*ini, path) ? STRATA_OK : import_anew(path, *ini, registry, err);
}
