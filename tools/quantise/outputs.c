/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that `strata quantise` writes: which they are, and that none of them is one that
 * it reads, before anything takes long.
 */
#include "tools/quantise/outputs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "io/file.h"

/* FOLDER/NAME.ini with another ending. */
static char *beside(const char *ini, const char *ending)
{
    const char *slash = strrchr(ini, '/'), *dot = strrchr(ini, '.');
    const bool has = dot && (!slash || dot > slash + 1) && dot != ini;
    return text_print("%.*s%s", has ? (int)(dot - ini) : (int)strlen(ini), ini, ending);
}

static bool same_folder(const char *a, const char *b)
{
    char *x = file_folder(a, NULL), *y = file_folder(b, NULL);
    const bool same = x && y && file_same(x, y);
    free(x);
    free(y);
    return same;
}

/* In another folder names of files mean other files: labels go with the network. */
static int check_folder(const struct quantise_options *o, const strata_network *net,
                        bool same, strata_error *err)
{
    const struct config_section *plugins = config_find(net->config, "plugins");
    if (same || (!plugins && net->build.costs.file == NULL))
        return STRATA_OK;
    return error_set(err, STRATA_EINVAL,
                     "%s: the network names files of its folder, of [plugins] or costs; "
                     "write the quantised one to that folder, too",
                     o->output);
}

/* The file, or one of the folder. */
static bool is_sample(const char *data, const char *path)
{
    char *folder = file_folder(path, NULL);
    const bool is = file_same(data, path) ||
                    (folder && file_same(data, folder) && access(path, F_OK) == 0);
    free(folder);
    return is;
}

static int refuse_read(const struct quantise_options *o, const strata_network *net,
                       const char *path, strata_error *err)
{
    const char *is = o->labels && file_same(o->labels, path)   ? "--labels"
                     : o->ranges && file_same(o->ranges, path) ? "--ranges"
                                                               : NULL;
    for (size_t i = 0; i < o->n_data; i++)
        if (is_sample(tool_file_of(net, o->data[i]), path))
            is = "--data";
    return is ? error_set(err, STRATA_EINVAL,
                          "%s: would be replaced, but %s reads it; name another file for "
                          "what is written",
                          path, is)
              : STRATA_OK;
}

static int refuse_twice(const struct quantise_options *o, const char *path,
                        const char *what, strata_error *err)
{
    const char *const others[] = {o->output, o->save_ranges, o->collected};
    for (size_t i = 0; i < ARRAY_LENGTH(others); i++)
        if (others[i] && (strcmp(others[i], path) == 0 || file_same(others[i], path)))
            return error_set(err, STRATA_EINVAL,
                             "%s: the quantised network's %s are written there, beside "
                             "it; name another file",
                             others[i], what);
    return STRATA_OK;
}

/* Of a file that nobody named. */
static int check_beside(const struct quantise_options *o, const struct tool_session *s,
                        const char *path, const char *what, strata_error *err)
{
    int status = tool_refuse_source(&o->common, s, path, err);
    if (status == STRATA_OK)
        status = refuse_twice(o, path, what, err);
    if (status == STRATA_OK)
        status = refuse_read(o, s->network, path, err);
    return status == STRATA_OK ? file_writable(path, err) : status;
}

int outputs_find(struct outputs *out, const struct quantise_options *o,
                 const struct tool_session *s, strata_error *err)
{
    const strata_network *net = s->network;
    const char *const named[] = {o->output, o->save_ranges, o->collected};
    const bool same = same_folder(net->path, o->output);
    out->weights = beside(o->output, ".safetensors");
    out->labels = beside(o->output, ".labels");
    if (!out->weights || !out->labels)
        return error_no_memory(err, 0, "a path");
    out->has_labels = !same && net->n_labels;
    int status = check_folder(o, net, same, err);
    if (status == STRATA_OK)
        status = check_beside(o, s, out->weights, "weights", err);
    if (status == STRATA_OK && out->has_labels)
        status = check_beside(o, s, out->labels, "labels", err);
    for (size_t i = 0; i < ARRAY_LENGTH(named) && status == STRATA_OK; i++)
        if (named[i])
            status = refuse_read(o, net, named[i], err);
    return status;
}

void outputs_free(struct outputs *out)
{
    free(out->weights);
    free(out->labels);
}
