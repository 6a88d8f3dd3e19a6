/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights: files and seeds of [weights] sections, what each layer's keys bind, values.
 */
#include "network/attributes.h"
#include "network/private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/checked.h"

/* ---- [weights NAME] ---- */

/* The weights that came with the network's text. */
static int take_source(struct loader *l, const struct config_pair *p,
                       struct source *source)
{
    strata_network *net = l->net;
    const struct network_memory *m = l->memory;
    strata_error why = {0};
    int status =
        grow(&net->files, &l->files_capacity, net->n_files, sizeof *net->files, l->err);
    if (status != STRATA_OK || p->invalid)
        return status;
    if (!m->weights || strcmp(p->value, NETWORK_MEMORY_WEIGHTS) != 0) {
        config_error(l->c, p->value_place, "a network in memory names no files");
        return STRATA_OK;
    }
    status = weights_parse(&source->file, m->weights, m->weights_size,
                           NETWORK_MEMORY_WEIGHTS, NULL, &why);
    if (status == STRATA_OK)
        net->files[net->n_files++] = source->file;
    else if (status == STRATA_ENOMEM)
        return error_no_memory(l->err, 0, "weights");
    else
        config_failed(l->c, p->value_place, &why);
    return STRATA_OK;
}

static int open_source(struct loader *l, const struct config_pair *p, bool anywhere,
                       struct source *source)
{
    strata_network *net = l->net;
    strata_error why = {0};
    char *path = network_path(l, p, anywhere ? PATH_FILE_ANYWHERE : PATH_WEIGHTS);
    int status =
        grow(&net->files, &l->files_capacity, net->n_files, sizeof *net->files, l->err);
    if (status == STRATA_OK && path &&
        weights_open(&source->file, path, NULL, &why) != STRATA_OK) {
        source->file = NULL;
        config_failed(l->c, p->value_place, &why);
    }
    if (source->file)
        net->files[net->n_files++] = source->file;
    if (network_keep_path(l, path) != STRATA_OK)
        return STRATA_ENOMEM;
    if (why.status == STRATA_ENOMEM)
        return error_no_memory(l->err, 0, "weights");
    return status;
}

static int read_source(struct loader *l, struct config_section *s)
{
    static const char *const keys[] = {"file", "random", "anywhere", "strict"};
    struct source source = {.name = s->name, .place = s->place};
    const struct config_pair *file = config_get(s, "file");
    const struct config_pair *seed = config_get(s, "random");
    const struct config_pair *anywhere = config_get(s, "anywhere");
    const struct config_pair *strict = config_get(s, "strict");
    size_t before = config_errors(l->c);
    bool outside = false;
    int64_t number = 0;
    int status = STRATA_OK;
    if (strcmp(s->name, "zeros") == 0 || strcmp(s->name, "none") == 0)
        config_error(l->c, s->place, "'%s' is a word of its own where weights are named",
                     s->name);
    if (anywhere)
        config_bool(l->c, anywhere, &outside);
    if (strict)
        config_bool(l->c, strict, &source.strict);
    if (file && seed)
        config_error(l->c, seed->key_place,
                     "[weights %s] has 'file =' as well; one of the "
                     "two",
                     s->name);
    else if (file)
        status = l->memory ? take_source(l, file, &source)
                           : open_source(l, file, outside, &source);
    else if (seed)
        config_int(l->c, seed, 0, INT64_MAX, &number);
    else if (!s->broken)
        config_error(l->c, s->place, "[weights %s] lacks 'file =' or 'random ='",
                     s->name);
    config_unknown(l->c, s, keys, ARRAY_LENGTH(keys));
    source.seed = (uint64_t)number;
    source.broken = config_errors(l->c) != before || s->broken;
    if (status != STRATA_OK || grow(&l->sources, &l->sources_capacity, l->n_sources,
                                    sizeof source, l->err) != STRATA_OK)
        return STRATA_ENOMEM;
    l->sources[l->n_sources] = source;
    return names_put(&l->source_index, s->name, (int)l->n_sources++, l->err);
}

int network_read_sources(struct loader *l)
{
    return network_each(l, "weights", read_source);
}

/* ---- keys of layers ---- */

/* The source that "w" or "w:NAME" starts with, *rest what follows the ':' or NULL; NULL
 * after recording an error. */
static const struct source *find_source(struct loader *l, const struct config_pair *p,
                                        const char **rest)
{
    const char *colon = strchr(p->value, ':');
    char name[CONFIG_MAX_NAME + 1] = "";
    size_t n = colon ? (size_t)(colon - p->value) : strlen(p->value);
    if (n < sizeof name)
        memcpy(name, p->value, n);
    int index = names_get(&l->source_index, name);
    *rest = colon ? colon + 1 : NULL;
    if (index >= 0)
        return &l->sources[index];
    const char *names[256];
    size_t count = 0;
    for (; !config_full(l->c) && count < l->n_sources && count < 256; count++)
        names[count] = l->sources[count].name;
    const char *near = suggest(name, names, count);
    config_error(l->c, config_value_place(l->c, p, 0, n),
                 "no section [weights %.*s]%s%s%s", (int)n, p->value,
                 near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return NULL;
}

/* The core's dtype for a weight: the file's own where the layer takes it, else FP32 or
 * the first the layer takes. */
static int weight_dtype(const strata_weight *declared, const struct weight_view *view)
{
    uint64_t allowed = declared->dtypes ? declared->dtypes : 1u << STRATA_FP32;
    int same = view ? weight_dtype_core(view->dtype) : -1;
    if (same >= 0 && allowed >> same & 1)
        return same;
    return allowed >> STRATA_FP32 & 1 ? STRATA_FP32 : __builtin_ctzll(allowed);
}

static void take_view(struct network_weight *w, const strata_weight *declared,
                      const struct weight_view *view)
{
    w->source = WEIGHT_FILE;
    w->view = *view;
    w->dtype = weight_dtype(declared, view);
    w->rank = view->rank;
    memcpy(w->dims, view->dims, sizeof w->dims);
}

static void take_random(struct network_weight *w, const strata_weight *declared,
                        uint64_t seed)
{
    w->source = WEIGHT_RANDOM;
    w->seed = seed;
    w->dtype = weight_dtype(declared, NULL);
}

/* `weight = w:name`, `bias = zeros`, `bias = none`. */
static void bind_key(struct loader *l, const struct config_pair *p,
                     const strata_weight *declared, struct network_weight *w)
{
    strata_error why = {0};
    struct weight_view view;
    const char *name;
    if (p->invalid)
        return;
    if (strcmp(p->value, "none") == 0) {
        w->source = WEIGHT_ABSENT;
        if (declared->flags & STRATA_REQUIRED)
            config_error(l->c, p->value_place, "weight '%s' is required", declared->name);
        return;
    }
    if (strcmp(p->value, "zeros") == 0) {
        w->source = WEIGHT_ZEROS;
        w->dtype = weight_dtype(declared, NULL);
        return;
    }
    const struct source *source = find_source(l, p, &name);
    if (!source || source->broken)
        return;
    if (!source->file)
        take_random(w, declared, source->seed);
    else if (weights_find(source->file, name ? name : "", &view,
                          config_full(l->c) ? NULL : &why) == STRATA_OK)
        take_view(w, declared, &view);
    else
        config_failed(l->c, p->value_place, &why);
}

/* One weight of `weights = w:PREFIX`; true if the file has it. */
static bool bind_prefixed(struct loader *l, const struct config_pair *p,
                          const struct source *source, const char *prefix,
                          const strata_weight *declared, struct network_weight *w)
{
    char name[CONFIG_MAX_LINE + 300];
    strata_error why;
    struct weight_view view;
    bool required = declared->flags & STRATA_REQUIRED;
    if (!source->file) {
        if (required)
            take_random(w, declared, source->seed);
        return true;
    }
    snprintf(name, sizeof name, "%s%s%.250s", prefix ? prefix : "", prefix ? "." : "",
             declared->name);
    error_clear(&why);
    bool told = required && !config_full(l->c); /* a hint takes time */
    bool found = weights_find(source->file, name, &view, told ? &why : NULL) == STRATA_OK;
    if (found)
        take_view(w, declared, &view);
    else if (required)
        config_failed(l->c, p->value_place, &why);
    return found;
}

static void bind_all(struct loader *l, const struct config_pair *p, struct draft *d)
{
    const struct registry_layer *type = d->layer.type;
    const char *prefix;
    size_t found = 0, asked = 0, required = 0;
    if (!type->n_weights) {
        config_error(l->c, p->key_place, "%s has no weights", type->full_name);
        return;
    }
    const struct source *source = p->invalid ? NULL : find_source(l, p, &prefix);
    if (!source || source->broken)
        return;
    for (size_t i = 0; i < type->n_weights; i++) {
        const strata_weight *declared = &type->weights[i];
        if (attributes_pair(l->c, d->section, type, declared->name, true))
            continue;
        d->weight_places[i] = p->value_place;
        required += (declared->flags & STRATA_REQUIRED) != 0;
        asked++;
        found += bind_prefixed(l, p, source, prefix, declared, &d->layer.weights[i]);
    }
    if (asked && !found && !required)
        config_error(l->c, p->value_place,
                     "'%s' names no weight of %s: the file has no '%s%s%s'%s", p->value,
                     type->full_name, prefix ? prefix : "", prefix ? "." : "",
                     type->weights[0].name,
                     type->n_weights > 1 ? ", nor its other weights" : "");
}

/* A maximum of an impl may take a number rather than the NaN: the network would answer as
 * if all were well. An engine file is not looked through again. */
static void warn_of_nan(const struct loader *l, const struct network_weight *w)
{
    int64_t at =
        w->source == WEIGHT_FILE && !l->memory ? weights_first_nan(&w->view) : -1;
    if (at >= 0)
        log_line(STRATA_LOG_WARNING,
                 "%s: weight '%s': element %" PRId64 " of its tensor '%s' is NaN",
                 l->net->path, w->name, at, w->view.name);
}

int network_bind_weights(struct loader *l, struct draft *d)
{
    const struct registry_layer *type = d->layer.type;
    const struct config_pair *all = config_get(d->section, "weights");
    size_t n = type->n_weights;
    d->layer.weights = zalloc(n, sizeof *d->layer.weights, "weights", l->err);
    d->weight_places = zalloc(n, sizeof *d->weight_places, "weights", l->err);
    if (!d->layer.weights || !d->weight_places)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        char name[CONFIG_MAX_NAME + 300];
        snprintf(name, sizeof name, "%s.%.250s", d->section->name, type->weights[i].name);
        d->weight_places[i] = d->section->place;
        d->layer.weights[i].name = duplicate(name, l->err);
        if (!d->layer.weights[i].name)
            return STRATA_ENOMEM;
    }
    if (all)
        bind_all(l, all, d);
    for (size_t i = 0; i < n; i++) {
        const strata_weight *declared = &type->weights[i];
        const struct config_pair *p =
            attributes_pair(l->c, d->section, type, declared->name, true);
        if (p) {
            d->weight_places[i] = p->value_place;
            bind_key(l, p, declared, &d->layer.weights[i]);
        } else if (!all && declared->flags & STRATA_REQUIRED && !d->section->broken) {
            config_error(l->c, d->section->place,
                         "%s needs weight '%s': write 'weights = W:PREFIX' or '%s = "
                         "W:NAME' with a [weights W]",
                         type->full_name, declared->name, declared->name);
        }
        warn_of_nan(l, &d->layer.weights[i]);
    }
    return STRATA_OK;
}

/* ---- values ---- */

static int load_random(const struct network_weight *w, void *dst, int64_t count,
                       strata_error *err)
{
    /* One value an output: dim 0. Vectors (biases) count as one output. */
    int64_t fan_in = w->rank > 1 && w->dims[0] > 0 ? count / w->dims[0] : count;
    size_t bytes;
    if (w->dtype == STRATA_FP32) {
        weights_random(dst, count, fan_in, w->seed, w->name);
        return STRATA_OK;
    }
    if (!checked_size_mul((size_t)count, sizeof(float), &bytes))
        return error_set(err, STRATA_EOVERFLOW, "%s: too large", w->name);
    float *values = malloc(bytes);
    if (!values)
        return error_no_memory(err, bytes, w->name);
    weights_random(values, count, fan_in, w->seed, w->name);
    int status = weights_convert(dst, w->dtype, values, WEIGHT_F32, count, err);
    free(values);
    return status;
}

const void *network_weight_in_place(const struct network_weight *w)
{
    bool same = w->source == WEIGHT_FILE && weight_dtype_core(w->view.dtype) == w->dtype;
    same = same && !w->factors;
    same =
        same && w->dtype != STRATA_BOOL8; /* whose bytes a file may have other than 1 */
    return same && (uintptr_t)w->view.data % TENSOR_ALIGNMENT == 0 ? w->view.data : NULL;
}

/* Entries of each part along the axis lie together, and so do those of the whole. */
static int load_joined(const struct network_weight *w, char *dst, strata_error *err)
{
    const struct network_join *j = w->join;
    const size_t size = strata_dtype_size(w->dtype);
    size_t inner = size, outer = 1, at = 0;
    for (int d = 0; d < w->rank; d++) /* bounded: the whole was checked */
        *(d < j->axis ? &outer : &inner) *= d == j->axis ? 1 : (size_t)w->dims[d];
    const size_t pitch = inner * (size_t)w->dims[j->axis];
    int status = STRATA_OK;
    for (int i = 0; i < j->n && status == STRATA_OK; i++) {
        const size_t row = inner * (size_t)j->counts[i];
        char *part = zalloc(outer, row, w->name, err);
        if (!part)
            return STRATA_ENOMEM;
        const struct network_weight own =
            w->stored ? network_weight_stored(j->parts[i]) : *j->parts[i];
        if (own.source != WEIGHT_ABSENT)
            status = network_weight_load(&own, part, err);
        for (size_t k = 0; k < outer && status == STRATA_OK; k++)
            memcpy(dst + k * pitch + at, part + k * row, row);
        free(part);
        at += row;
    }
    return status;
}

/* The n entries of an operand. */
static int load_operand(float *out, int64_t n, const struct network_operand *o,
                        strata_error *err)
{
    const int64_t own =
        o->weight ? network_elements(o->weight->dims, o->weight->rank) : 0;
    int status = own > 0 ? network_weight_load(o->weight, out, err) : STRATA_OK;
    const float all = own == 1 ? out[0] : (float)o->absent;
    for (int64_t k = 0; k < n && own <= 1; k++)
        out[k] = all;
    return status;
}

static int load_affine(const struct network_weight *w, float *dst, int64_t n,
                       strata_error *err)
{
    const struct network_affine *a = w->affine;
    float *scale = zalloc((size_t)n, 2 * sizeof *scale, w->name, err);
    float *shift = scale ? scale + n : NULL;
    int status = scale ? load_operand(dst, n, &a->of, err) : STRATA_ENOMEM;
    if (status == STRATA_OK)
        status = load_operand(scale, n, &a->scale, err);
    if (status == STRATA_OK)
        status = load_operand(shift, n, &a->shift, err);
    for (int64_t k = 0; k < n && status == STRATA_OK; k++)
        dst[k] = (float)((double)dst[k] * (double)scale[k] + (double)shift[k]);
    free(scale);
    return status;
}

/* Before factors. */
static int load(const struct network_weight *w, void *dst, strata_error *err)
{
    int64_t count = network_elements(w->dims, w->rank);
    int status = STRATA_OK;
    if (w->source == WEIGHT_ABSENT || count < 0)
        return error_set(err, STRATA_EINVAL, "%s: the weight is absent", w->name);
    switch (w->source) {
    case WEIGHT_FILE:
        status = network_weight_unpack(w, dst, count, err);
        break;
    case WEIGHT_RANDOM:
        status = load_random(w, dst, count, err);
        break;
    case WEIGHT_JOINED:
        return load_joined(w, dst, err); /* whose parts have names */
    case WEIGHT_AFFINE:
        return load_affine(w, dst, count, err);
    default:
        memset(dst, 0, (size_t)count * strata_dtype_size(w->dtype));
    }
    if (status != STRATA_OK)
        error_prefix(err, "%s", w->name);
    return status;
}

int network_weight_load(const struct network_weight *w, void *dst, strata_error *err)
{
    int status = load(w, dst, err);
    if (status != STRATA_OK || !w->factors || w->source == WEIGHT_JOINED)
        return status; /* parts are multiplied by theirs */
    const int64_t n = network_elements(w->factors->dims, w->factors->rank);
    float *factors = zalloc((size_t)n, sizeof *factors, "factors of a weight", err);
    status = factors ? load(w->factors, factors, err) : STRATA_ENOMEM;
    if (status == STRATA_OK)
        network_weight_multiply(w, dst, network_elements(w->dims, w->rank), factors);
    free(factors);
    return status;
}
