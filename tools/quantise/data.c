/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples: files of a folder in the order of their names, images of an IDX file, or rows
 * of an .npy file. What has been read once is kept, up to KEPT_BYTES.
 */
#include "tools/quantise/quantise.h"

#include <strata/sizes.h>

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "formats/format.h"
#include "io/file.h"
#include "tools/run/run.h"

#define KEPT_BYTES (UINT64_C(1) << 30)

/* ---- files ---------------------------------------------------------------------------
 */

static int add_path(struct data_source *s, size_t *capacity, char *path,
                    strata_error *err)
{
    int status = path ? grow(&s->paths, capacity, s->n_paths, sizeof *s->paths, err)
                      : error_no_memory(err, 0, "a path");
    if (status == STRATA_OK)
        s->paths[s->n_paths++] = path;
    else
        free(path);
    return status;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* The files of a folder, but for hidden ones; folders in it are left alone. */
static int read_folder(struct data_source *s, const char *folder, strata_error *err)
{
    size_t capacity = 0;
    int status = STRATA_OK;
    DIR *dir = opendir(folder);
    if (!dir)
        return error_set(err, STRATA_EIO, "%s: %s", folder, strerror(errno));
    for (const struct dirent *e; status == STRATA_OK && (e = readdir(dir));) {
        char *path = e->d_name[0] == '.' ? NULL : text_print("%s/%s", folder, e->d_name);
        if (path && is_folder(path))
            free(path);
        else if (e->d_name[0] != '.')
            status = add_path(s, &capacity, path, err);
    }
    closedir(dir);
    if (status == STRATA_OK && s->n_paths == 0)
        status = error_set(err, STRATA_EINVAL,
                           "%s: no file is in the folder; put images (%s) or .npy files "
                           "there, one a sample",
                           folder, image_formats());
    if (status == STRATA_OK)
        qsort(s->paths, s->n_paths, sizeof *s->paths, compare_paths);
    return status;
}

/* An array whose rows along the first dim are what the input takes; else it is one. */
static int read_rows(struct data_source *s, const char *path,
                     const struct network_tensor *input, strata_error *err)
{
    int status = weights_open(&s->rows, path, NULL, err);
    if (status != STRATA_OK)
        return status;
    struct weight_view v = weights_at(s->rows, 0), row = v;
    row.dims[0] = 1;
    if (v.rank > 1 && v.dims[0] > 1 && !run_is_shape(input->dims, input->rank, &v) &&
        run_is_shape(input->dims, input->rank, &row))
        return STRATA_OK;
    weights_close(s->rows);
    s->rows = NULL;
    return STRATA_OK;
}

static int read_file(struct data_source *s, const char *path,
                     const struct network_tensor *input, strata_error *err)
{
    unsigned char head[4];
    size_t capacity = 0;
    const bool is = file_head(head, sizeof head, path) == sizeof head;
    int status = add_path(s, &capacity, text_print("%s", path), err);
    if (status == STRATA_OK && is && memcmp(head, "\0\0\x08\x03", sizeof head) == 0)
        status = idx_read(&s->images, path, err);
    else if (status == STRATA_OK && is && memcmp(head, "\x93NUM", sizeof head) == 0)
        status = read_rows(s, path, input, err);
    return status;
}

static size_t samples_of(const struct data_source *s)
{
    return s->images.data ? (size_t)s->images.dims[0]
           : s->rows      ? (size_t)weights_at(s->rows, 0).dims[0]
                          : s->n_paths;
}

/* ---- sources of inputs ---------------------------------------------------------------
 */

static int find_input(size_t *input, const strata_network *net, const char *text,
                      const char **path, strata_error *err)
{
    const size_t n = strcspn(text, "=");
    const size_t n_inputs = net->n_inputs - net->n_states;
    *path = tool_file_of(net, text);
    *input = 0;
    if (*path == text && n_inputs == 1)
        return STRATA_OK;
    for (size_t i = 0; i < n_inputs && *path != text; i++)
        if (strlen(net->inputs[i].name) == n &&
            memcmp(net->inputs[i].name, text, n) == 0) {
            *input = i;
            return STRATA_OK;
        }
    error_set(err, STRATA_EINVAL,
              "--data '%s': write --data NAME=PATH, where NAME is one of:", text);
    for (size_t i = 0; i < n_inputs; i++)
        error_append(err, " %s", net->inputs[i].name);
    return STRATA_EINVAL;
}

static int open_source(struct data *d, const strata_network *net, const char *text,
                       strata_error *err)
{
    size_t input;
    const char *path;
    int status = find_input(&input, net, text, &path, err);
    if (status != STRATA_OK)
        return status;
    struct data_source *s = &d->inputs[input];
    if (s->paths)
        return error_set(err, STRATA_EINVAL, "--data %s: input '%s' has data already",
                         text, net->inputs[input].name);
    return is_folder(path)
               ? read_folder(s, path, err)
               : read_file(s, path, &net->tensors[net->inputs[input].tensor], err);
}

/* Of all inputs as many. */
static int check_sources(struct data *d, const strata_network *net, strata_error *err)
{
    for (size_t i = 0; i < d->n_inputs; i++) {
        struct data_source *s = &d->inputs[i];
        const size_t n = samples_of(s);
        if (!s->paths)
            return error_set(err, STRATA_EINVAL,
                             "input '%s' has no data; add --data %s=FOLDER",
                             net->inputs[i].name, net->inputs[i].name);
        if (n == 0)
            return error_set(err, STRATA_EINVAL, "%s: no image is in it", s->paths[0]);
        if (i && n != d->n)
            return error_set(err, STRATA_EINVAL,
                             "input '%s' has %zu samples, '%s' %zu; as many are needed",
                             net->inputs[0].name, d->n, net->inputs[i].name, n);
        d->n = n;
        s->kept = zalloc(n, sizeof *s->kept, "data", err);
        if (!s->kept)
            return STRATA_ENOMEM;
    }
    return STRATA_OK;
}

/* The first file of each input; the others are told of as they are read. */
static int look(const struct data *d, const strata_network *net, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < d->n_inputs && status == STRATA_OK; i++)
        if (!d->inputs[i].rows) /* whose shape was looked at */
            status = run_look_at_input(net, (int)i, d->inputs[i].paths[0], 0, err);
    return status;
}

int data_open(struct data *d, const strata_network *net, const char *const *texts,
              size_t n, strata_error *err)
{
    *d = (struct data){.n_inputs = net->n_inputs - net->n_states};
    d->inputs = zalloc(d->n_inputs, sizeof *d->inputs, "data", err);
    int status = d->inputs ? STRATA_OK : STRATA_ENOMEM;
    for (size_t i = 0; i < n && status == STRATA_OK; i++)
        status = open_source(d, net, texts[i], err);
    if (status == STRATA_OK)
        status = check_sources(d, net, err);
    return status == STRATA_OK ? look(d, net, err) : status;
}

void data_close(struct data *d)
{
    for (size_t i = 0; d->inputs && i < d->n_inputs; i++) {
        struct data_source *s = &d->inputs[i];
        for (size_t k = 0; s->kept && k < d->n; k++)
            free(s->kept[k]);
        for (size_t k = 0; k < s->n_paths; k++)
            free(s->paths[k]);
        free(s->kept);
        free(s->paths);
        idx_free(&s->images);
        weights_close(s->rows);
    }
    free(d->inputs);
    *d = (struct data){.n = 0};
}

/* ---- samples -------------------------------------------------------------------------
 */

static int read_sample(const struct data_source *s, strata_context *c, int input,
                       size_t i, strata_error *err)
{
    if (s->images.data)
        return run_read_item(c, c->engine, input, s->paths[0], &s->images, (int64_t)i,
                             err);
    if (!s->rows)
        return run_read_input(c, c->engine, input, s->paths[i], 0, err);
    const struct weight_view all = weights_at(s->rows, 0);
    return run_read_row(c, c->engine, input, s->paths[0], &all, (int64_t)i, err);
}

static void name_sample(char *text, size_t size, const struct data_source *s, size_t i)
{
    if (s->images.data || s->rows)
        snprintf(text, size, "%s, %s %zu", s->paths[0], s->images.data ? "image" : "row",
                 i);
    else
        snprintf(text, size, "%s", s->paths[i]);
}

/* Images hold none, but .npy files do. Layers may make numbers of NaN, a maximum the
 * least there is, which would be the range of all tensors behind it. */
static int refuse_nan(const struct data_source *s, strata_context *c, int input, size_t i,
                      strata_error *err)
{
    strata_binding b = {.struct_size = sizeof b};
    strata_desc dense;
    char name[PATH_MAX];
    void *raw = NULL;
    float *values = NULL;
    int status = strata_context_binding(c, input, &b, err);
    if (status != STRATA_OK || !dtype_is_free(b.desc.dtype))
        return status;
    const int64_t n = strata_desc_count(&b.desc);
    raw = zalloc(1, (size_t)b.bytes, "a sample", err);
    values = raw ? zalloc((size_t)n, sizeof *values, "a sample", err) : NULL;
    status = values ? strata_copy_out(c, input, raw, err) : STRATA_ENOMEM;
    if (status == STRATA_OK)
        status = format_desc(&dense, (struct format){STRATA_FP32, ORDER_LINEAR, 1},
                             b.desc.dims, b.desc.rank, err);
    if (status == STRATA_OK)
        status = strata_reformat(&dense, values, &b.desc, raw, err);
    for (int64_t k = 0; k < n && status == STRATA_OK; k++)
        if (isnan(values[k])) {
            name_sample(name, sizeof name, s, i);
            status =
                error_set(err, STRATA_EINVAL,
                          "%s: element %lld is NaN; leave the sample out, or mend it",
                          name, (long long)k);
        }
    free(values);
    free(raw);
    return status;
}

/* The input's bytes, for the next time. */
static int keep_sample(struct data *d, struct data_source *s, strata_context *c,
                       int input, size_t i, strata_error *err)
{
    strata_binding b = {.struct_size = sizeof b};
    int status = strata_context_binding(c, input, &b, err);
    if (status != STRATA_OK || d->kept_bytes + (uint64_t)b.bytes > KEPT_BYTES)
        return status;
    s->kept[i] = zalloc(1, (size_t)b.bytes, "a sample", err);
    d->kept_bytes += (uint64_t)b.bytes;
    return s->kept[i] ? strata_copy_out(c, input, s->kept[i], err) : STRATA_ENOMEM;
}

int data_load(void *data, strata_context *c, size_t i, strata_error *err)
{
    struct data *d = data;
    int status = STRATA_OK;
    for (size_t k = 0; k < d->n_inputs && status == STRATA_OK; k++) {
        struct data_source *s = &d->inputs[k];
        if (s->kept[i]) {
            status = strata_copy_in(c, (int)k, s->kept[i], err);
            continue;
        }
        status = read_sample(s, c, (int)k, i, err);
        if (status == STRATA_OK && !s->images.data)
            status = refuse_nan(s, c, (int)k, i, err);
        if (status == STRATA_OK)
            status = keep_sample(d, s, c, (int)k, i, err);
    }
    return status;
}

int data_judge(const struct data *d, const struct answers *a, strata_error *err)
{
    char name[PATH_MAX];
    if (a->odd == 0)
        return STRATA_OK;
    name_sample(name, sizeof name, &d->inputs[0], a->first_odd);
    if (a->odd == a->samples)
        return error_set(err, STRATA_EINVAL,
                         "%s: in floats the network makes NaN of it, and of every other "
                         "sample; see with `strata run` what the data hold",
                         name);
    log_line(STRATA_LOG_WARNING,
             "%s: in floats the network makes NaN of %s%zu of %zu samples; leave such "
             "samples out, they say nothing of what 8 bits cost",
             name, a->odd == 1 ? "it, " : "it and others, ", a->odd, a->samples);
    return STRATA_OK;
}
