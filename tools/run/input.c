/* SPDX-License-Identifier: Apache-2.0
 *
 * Files into a network's inputs. Values arrive dense and linear, as FP32 or the binding's
 * own FP64, integers or BOOL8, and are reformatted into the binding's format.
 */
#include "tools/run/run.h"

#include <strata/sizes.h>

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/file.h"
#include "io/stand_in.h"

static const uint64_t max_input_bytes = UINT64_C(1) << 34;

/* The network's description of an input, and where its binding is. */
struct target {
    const strata_network *network; /* with the dims of the run */
    const struct network_input *input;
    strata_binding binding;
    strata_context *context; /* NULL: the file is looked at, and nothing is stored */
    int index;
    const char *path;
};

static int store_values(const struct target *t, const struct values *v, strata_error *err)
{
    void *data;
    if (!t->context)
        return STRATA_OK;
    data = zalloc(1, (size_t)t->binding.bytes, t->path, err);
    if (!data)
        return STRATA_ENOMEM;
    int status = values_write(v, &t->binding.desc, data, err);
    if (status == STRATA_OK)
        status = strata_copy_in(t->context, t->index, data, err);
    free(data);
    return status;
}

static int store(const struct target *t, const float *values, strata_error *err)
{
    const strata_desc *d = &t->binding.desc;
    struct values v = {.dtype = STRATA_FP32,
                       .rank = d->rank,
                       .count = strata_desc_count(d),
                       .data = (void *)values};
    memcpy(v.dims, d->dims, sizeof v.dims);
    return store_values(t, &v, err);
}

bool run_is_shape(const int64_t *dims, int rank, const struct weight_view *v)
{
    int i = 0, k = 0;
    while (i < rank && dims[i] == 1)
        i++;
    while (k < v->rank && v->dims[k] == 1)
        k++;
    for (; i < rank && k < v->rank; i++, k++)
        if (dims[i] != v->dims[k])
            return false;
    return i == rank && k == v->rank;
}

/* As images are kept in arrays. */
static bool has_channels_last(const strata_desc *d, const struct weight_view *v)
{
    struct weight_view turned = *v;
    if (v->rank < 3 || v->rank > d->rank)
        return false;
    const int channel = v->rank - d->rank + 1; /* where it should be */
    if (channel < 0)
        return false;
    turned.dims[channel] = v->dims[v->rank - 1];
    for (int i = channel + 1; i < v->rank; i++)
        turned.dims[i] = v->dims[i - 1];
    return run_is_shape(d->dims, d->rank, &turned);
}

/* Another batch, which a name with one size may have fixed. */
static bool is_other_batch(const struct target *t, const struct weight_view *v)
{
    const strata_desc *d = &t->binding.desc;
    bool same = v->rank == d->rank && v->rank > 0 && t->input->symbols[0] < 0;
    for (int i = 1; i < d->rank && same; i++)
        same = v->dims[i] == d->dims[i];
    return same;
}

/* How the network is given another one. */
static void tell_batch(const strata_network *net, const struct weight_view *v,
                       const char *input, strata_error *err)
{
    struct config_section *vars = config_find(net->config, "vars");
    char dims[128];
    int n;
    const char *name = run_first_name(net, input, &n);
    tool_dims(dims, sizeof dims, v->dims, v->rank);
    if (n > 0)
        error_append(err, "; --set profile.%.*s=%lld makes it that batch", n, name,
                     (long long)v->dims[0]);
    else if (vars && config_get(vars, "batch"))
        error_append(err, "; -D batch=%lld makes it that batch", (long long)v->dims[0]);
    else
        error_append(err, "; --set 'input %s.shape=%s' makes it that batch", input, dims);
}

static int wrong_shape(const struct target *t, const struct weight_view *v,
                       strata_error *err)
{
    char found[128], needed[128];
    const strata_desc *d = &t->binding.desc;
    tool_dims(found, sizeof found, v->dims, v->rank);
    tool_dims(needed, sizeof needed, d->dims, d->rank);
    error_set(err, STRATA_EINVAL,
              "%s: shape (%s), but input '%s' is (%s); only ones in front may be left "
              "out or added%s",
              t->path, found, t->binding.name, needed,
              has_channels_last(d, v) ? "; its channels are last: transpose it" : "");
    if (is_other_batch(t, v))
        tell_batch(t->network, v, t->binding.name, err);
    return STRATA_EINVAL;
}

static void add_part(char *text, size_t size, int64_t n, const char *what)
{
    size_t at = strlen(text);
    if (n)
        snprintf(text + at, size - at, "%s %lld %s", at ? "," : "", (long long)n, what);
}

/* What is outside of a dtype. */
static const char *what_becomes(int dtype)
{
    if (dtype == STRATA_BOOL8)
        return "become 1";
    if (dtype_range(dtype) == 0 || dtype == STRATA_E4M3 || dtype == STRATA_E5M2)
        return "become the nearest of these";
    return "become infinite";
}

/* What does not fit is clamped: the likely cause is a network made for other values. */
static int warn_of_loss(const struct target *t, const struct weight_view *v,
                        strata_error *err)
{
    const int dtype = t->binding.desc.dtype;
    struct weight_loss l;
    double low, high;
    char parts[160] = "";
    int status = weights_loss(&l, dtype, v, err);
    if (status != STRATA_OK)
        return status;
    weights_range(dtype, &low, &high);
    add_part(parts, sizeof parts, l.beyond, what_becomes(dtype));
    add_part(parts, sizeof parts, l.rounded, "are rounded to whole numbers");
    add_part(parts, sizeof parts, l.nans, "are NaN and become 0");
    if (*parts)
        log_line(STRATA_LOG_WARNING,
                 "%s: %lld values from %g to %g; input '%s' is %s, %.10g to %.10g:%s",
                 t->path, (long long)strata_desc_count(&t->binding.desc), l.low, l.high,
                 t->binding.name, strata_dtype_name(dtype), low, high, parts);
    return STRATA_OK;
}

static int from_view(const struct target *t, const struct weight_view *v,
                     strata_error *err)
{
    struct values values;
    if (!run_is_shape(t->binding.desc.dims, t->binding.desc.rank, v))
        return wrong_shape(t, v, err);
    if (!t->context)
        return STRATA_OK;
    int status = values_open(&values, &t->binding.desc, t->path, err);
    if (status == STRATA_OK)
        status = weights_convert(values.data, values.dtype, v->data, v->dtype,
                                 values.count, err);
    if (status == STRATA_OK)
        status = warn_of_loss(t, v, err);
    if (status == STRATA_OK)
        status = store_values(t, &values, err);
    values_free(&values);
    return status;
}

static int from_npy(const struct target *t, strata_error *err)
{
    struct weights *w = NULL;
    int status = weights_open(&w, t->path, NULL, err);
    if (status == STRATA_OK && weights_count(w) != 1)
        status = error_set(err, STRATA_EINVAL,
                           "%s: %zu tensors; an input is one tensor (.npy)", t->path,
                           weights_count(w));
    if (status == STRATA_OK) {
        struct weight_view v = weights_at(w, 0);
        status = from_view(t, &v, err);
    }
    weights_close(w);
    return status;
}

/* One image fills every image of the batch. */
static int from_image(const struct target *t, const struct image *im, strata_error *err)
{
    const strata_desc *d = &t->binding.desc;
    static bool told; /* of a thousand grey samples the first one is enough */
    if (t->context && im->channels == 1 && d->rank == 4 && d->dims[1] == 3 && !told) {
        log_line(STRATA_LOG_WARNING, "%s: is grey; input '%s' gets it three times",
                 t->path, t->binding.name);
        told = true;
    }
    int64_t count = strata_desc_count(d), one = count / (d->dims[0] ? d->dims[0] : 1);
    float *values = zalloc((size_t)count, sizeof *values, t->path, err);
    if (!values)
        return STRATA_ENOMEM;
    int status = network_image(values, t->network, t->input, im, err);
    error_prefix(err, "%s", t->path);
    for (int64_t n = 1; n < d->dims[0] && status == STRATA_OK; n++)
        memcpy(values + n * one, values, (size_t)one * sizeof *values);
    if (status == STRATA_OK)
        status = store(t, values, err);
    free(values);
    return status;
}

static int from_item(const struct target *t, const struct idx *x, int64_t item,
                     strata_error *err)
{
    if (x->rank != 3 || item < 0 || item >= x->dims[0])
        return error_set(err, STRATA_EINVAL,
                         "%s: no image %lld; the file holds %lld (choose with --item)",
                         t->path, (long long)item,
                         (long long)(x->rank == 3 ? x->dims[0] : 0));
    const struct image im = {.width = (int)x->dims[2],
                             .height = (int)x->dims[1],
                             .channels = 1,
                             .pixels = x->data + item * x->dims[1] * x->dims[2]};
    return from_image(t, &im, err);
}

static int from_idx(const struct target *t, int64_t item, strata_error *err)
{
    struct idx x = {0};
    int status = idx_read(&x, t->path, err);
    if (status == STRATA_OK)
        status = from_item(t, &x, item, err);
    idx_free(&x);
    return status;
}

static int from_raw(const struct target *t, const struct file_bytes *f, strata_error *err)
{
    if ((int64_t)f->size != t->binding.bytes) {
        error_set(err, STRATA_EINVAL,
                  "%s: neither .npy nor an image (%s), and %zu bytes where the raw "
                  "elements of input '%s' as %s take %lld",
                  t->path, image_formats(), f->size, t->binding.name, t->binding.format,
                  (long long)t->binding.bytes);
        stand_in_tell(f->data, f->size, err);
        return STRATA_EINVAL;
    }
    return t->context ? strata_copy_in(t->context, t->index, f->data, err) : STRATA_OK;
}

static int from_random(const struct target *t, const char *seed, strata_error *err)
{
    char *end;
    errno = 0;
    uint64_t state = strtoull(seed, &end, 10);
    if (errno == ERANGE)
        return error_set(err, STRATA_EINVAL, "%s: the seed is above %" PRIu64, t->path,
                         UINT64_MAX);
    if (!isdigit((unsigned char)seed[0]) || *end)
        return error_set(
            err, STRATA_EINVAL,
            "%s: the seed is no whole number; write random:SEED, as random:1", t->path);
    if (!t->context)
        return STRATA_OK;
    int64_t count = strata_desc_count(&t->binding.desc);
    float *values = zalloc((size_t)count, sizeof *values, "random input", err);
    if (!values)
        return STRATA_ENOMEM;
    for (int64_t i = 0; i < count; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        values[i] = (float)(state >> 40) / 16777216.0f;
        if (t->binding.desc.dtype == STRATA_BOOL8) /* else nearly all would be true */
            values[i] = values[i] >= 0.5f;
    }
    int status = store(t, values, err);
    free(values);
    return status;
}

/* First bytes of the kinds that are not raw. */
static bool starts(const struct file_bytes *f, const char *magic, size_t n)
{
    return f->size >= n && memcmp(f->data, magic, n) == 0;
}

static int from_file(const struct target *t, int64_t item, strata_error *err)
{
    struct file_bytes f = {0};
    struct image im = {0};
    int status = file_read(&f, t->path, max_input_bytes, err);
    if (status != STRATA_OK)
        return status;
    if (starts(&f, "\x93NUMPY", 6))
        status = from_npy(t, err);
    else if (starts(&f, "\0\0\x08\x03", 4))
        status = from_idx(t, item, err);
    else if (starts(&f, "\x89PNG", 4) || starts(&f, "\xFF\xD8", 2) ||
             (f.size > 2 && ((char *)f.data)[0] == 'P' &&
              strchr("2356", ((char *)f.data)[1]) &&
              (int64_t)f.size != t->binding.bytes)) {
        status = image_parse(&im, f.data, f.size, t->path, NULL, err);
        if (status == STRATA_OK)
            status = from_image(t, &im, err);
    } else {
        status = from_raw(t, &f, err);
    }
    status = tool_file_status(status, err);
    image_free(&im);
    file_free(&f);
    return status;
}

static int find_target(struct target *t, strata_context *c, const strata_engine *e,
                       int index, const char *path, strata_error *err)
{
    *t = (struct target){.context = c,
                         .index = index,
                         .path = path,
                         .binding.struct_size = sizeof t->binding};
    int status = strata_context_binding(c, index, &t->binding, err);
    if (status == STRATA_OK) {
        t->network = c->active->engine->network;
        t->input = network_find_input(e->network, t->binding.name);
    }
    return status;
}

/* The same before there is an engine, of a network with the dims of the run. */
static int foresee_target(struct target *t, const strata_network *net, int index,
                          const char *path, strata_error *err)
{
    const struct network_input *in = &net->inputs[index];
    const struct network_tensor *tensor = &net->tensors[in->tensor];
    strata_binding *b = &t->binding;
    *t = (struct target){.network = net, .input = in, .index = index, .path = path};
    b->name = in->name;
    b->format = format_mask_name(format_mask(in->format), tensor->rank);
    int status = format_desc(&b->desc, in->format, tensor->dims, tensor->rank, err);
    if (status == STRATA_OK)
        b->bytes = strata_desc_bytes(&b->desc);
    return status;
}

int run_read_item(strata_context *c, const strata_engine *e, int index, const char *path,
                  const struct idx *images, int64_t item, strata_error *err)
{
    struct target t;
    int status = find_target(&t, c, e, index, path, err);
    return status == STRATA_OK ? from_item(&t, images, item, err) : status;
}

int run_read_row(strata_context *c, const strata_engine *e, int index, const char *path,
                 const struct weight_view *all, int64_t row, strata_error *err)
{
    struct target t;
    struct weight_view v = *all;
    int status = find_target(&t, c, e, index, path, err);
    v.dims[0] = 1;
    v.bytes = all->bytes / (size_t)all->dims[0];
    v.data = (const char *)all->data + (size_t)row * v.bytes;
    return status == STRATA_OK ? from_view(&t, &v, err) : status;
}

static int from_path(const struct target *t, int64_t item, strata_error *err)
{
    return strncmp(t->path, "random:", 7) == 0 ? from_random(t, t->path + 7, err)
                                               : from_file(t, item, err);
}

int run_read_input(strata_context *c, const strata_engine *e, int index, const char *path,
                   int64_t item, strata_error *err)
{
    struct target t;
    int status = find_target(&t, c, e, index, path, err);
    return status == STRATA_OK ? from_path(&t, item, err) : status;
}

int run_look_at_input(const strata_network *net, int index, const char *path,
                      int64_t item, strata_error *err)
{
    struct target t;
    int status = foresee_target(&t, net, index, path, err);
    return status == STRATA_OK ? from_path(&t, item, err) : status;
}

int run_read_given(strata_context *c, const strata_engine *e,
                   const struct tool_options *o, bool *given, strata_error *err)
{
    for (size_t i = 0; i < o->n_inputs; i++) {
        int index;
        const char *file;
        int status = run_find_binding(e->network, o->inputs[i], true, &index, &file, err);
        if (status == STRATA_OK && given[index])
            status = error_set(err, STRATA_EINVAL, "%s: input '%s' is given twice", file,
                               e->execution->bindings[index].name);
        if (status == STRATA_OK)
            status = run_read_input(c, e, index, file, o->item, err);
        if (status != STRATA_OK)
            return status;
        given[index] = true;
    }
    return STRATA_OK;
}

/* Inputs with the same values would hide what cancels: their difference is 0. Those of
 * two networks have the same, whatever their order: the seed is the name's rank. */
static int random_seed(const strata_engine *e, int input)
{
    const struct execution *x = e->execution;
    int seed = 1;
    for (size_t i = 0; i < x->n_inputs; i++)
        seed += strcmp(x->bindings[i].name, x->bindings[input].name) < 0;
    return seed;
}

int run_read_inputs(strata_context *c, const strata_engine *e,
                    const struct tool_options *o, strata_error *err)
{
    const struct execution *x = e->execution;
    bool *given = zalloc(x->n_bindings, sizeof *given, "inputs", err);
    int status = given ? run_read_given(c, e, o, given, err) : STRATA_ENOMEM;
    for (int i = 0; i < (int)x->n_inputs && status == STRATA_OK; i++) {
        char text[32];
        snprintf(text, sizeof text, "random:%d", random_seed(e, i));
        if (!given[i])
            status = run_read_input(c, e, i, text, 0, err);
    }
    free(given);
    return status;
}
