/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads each struct up to the smaller of the two sides' sizes; the rest is zero, which
 * the ABI defines as absent.
 */
#include "registry/descriptor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "registry/name.h"

/* What ABI 1.0 has; a smaller struct was never valid. */
#define END_OF(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))
#define MODULE_1_0 END_OF(strata_module, extends)
#define LAYER_1_0 END_OF(strata_layer, extension)
#define EXTENDS_1_0 END_OF(strata_extends, impls)
#define IMPL_1_0 END_OF(strata_impl, run)
#define ROW_1_0 END_OF(strata_row, out)

#define MAX_LAYERS 1024
#define MAX_ATTRS 256
#define MAX_WEIGHTS 64
#define MAX_IMPLS 256
#define MAX_ROWS 4096
#define MAX_INPUTS 65536
#define MAX_PARAMS ((size_t)1 << 20) /* bytes */

#define refuse(err, ...) error_set(err, STRATA_EMODULE, __VA_ARGS__)

int descriptor_array(void *out, const strata_array *from, size_t size, size_t minimum,
                     uint32_t most, const char *what, strata_error *err)
{
    if (from->n > 0 && !from->ptr)
        return refuse(err, "%s.ptr is NULL for %u elements", what, from->n);
    if (from->n > most)
        return refuse(err, "%s.n %u > %u", what, from->n, most);
    if (from->n > 0 && from->stride < minimum)
        return refuse(err, "%s.stride %u < %zu", what, from->stride, minimum);
    char *copy = zalloc(from->n, size, what, err);
    if (!copy)
        return STRATA_ENOMEM;
    for (uint32_t i = 0; i < from->n; i++)
        memcpy(copy + i * size, (const char *)from->ptr + (size_t)i * from->stride,
               from->stride < size ? from->stride : size);
    memcpy(out, &copy, sizeof copy);
    return STRATA_OK;
}

/* Copy a struct that starts with struct_size. */
static int copy_struct(void *out, size_t size, const void *from, size_t minimum,
                       const char *type, strata_error *err)
{
    uint32_t theirs;
    memcpy(&theirs, from, sizeof theirs);
    if (theirs < minimum)
        return refuse(err, "struct_size %u of %s < %zu", theirs, type, minimum);
    memset(out, 0, size);
    memcpy(out, from, theirs < size ? theirs : size);
    return STRATA_OK;
}

static void free_impls(struct registry_impl *impls, size_t n)
{
    for (size_t i = 0; impls && i < n; i++)
        free((void *)impls[i].rows);
    free(impls);
}

static struct registry_row join_ports(const strata_row *row)
{
    struct registry_row joined;
    memcpy(joined.in, row->in, sizeof row->in);
    memcpy(joined.in + STRATA_MAX_PORTS, row->in_more, sizeof row->in_more);
    memcpy(joined.out, row->out, sizeof row->out);
    memcpy(joined.out + STRATA_MAX_PORTS, row->out_more, sizeof row->out_more);
    return joined;
}

static int copy_rows(struct registry_impl *x, const strata_array *from, strata_error *err)
{
    strata_row *copies = NULL;
    int status =
        descriptor_array(&copies, from, sizeof *copies, ROW_1_0, MAX_ROWS, "rows", err);
    struct registry_row *rows =
        status == STRATA_OK ? zalloc(from->n, sizeof *rows, "rows", err) : NULL;
    if (status == STRATA_OK && !rows)
        status = STRATA_ENOMEM;
    for (uint32_t r = 0; r < from->n && status == STRATA_OK; r++)
        rows[r] = join_ports(&copies[r]);
    x->rows = rows;
    x->impl.rows = (strata_array){.n = from->n};
    free(copies);
    return status;
}

static int copy_impls(struct registry_impl **out, size_t *n, const strata_array *from,
                      const struct module *owner, strata_error *err)
{
    strata_impl *copies = NULL;
    int status = descriptor_array(&copies, from, sizeof *copies, IMPL_1_0, MAX_IMPLS,
                                  "impls", err);
    if (status != STRATA_OK)
        return status;
    *n = from->n;
    *out = zalloc(*n, sizeof **out, "impls", err);
    if (!*out)
        status = STRATA_ENOMEM;
    for (size_t i = 0; status == STRATA_OK && i < *n; i++) {
        struct registry_impl *x = &(*out)[i];
        x->impl = copies[i];
        x->module = owner;
        status = copy_rows(x, &copies[i].rows, err);
        if (status != STRATA_OK) {
            error_prefix(err, "impls[%zu]", i);
            break;
        }
        status = implementation_check(*out, i, err);
    }
    free(copies);
    return status;
}

static int check_layer(const strata_layer *l, strata_error *err)
{
    if (l->version == 0)
        return refuse(err, "version is 0, need 1 or more");
    if (l->min_in < 0 || (l->max_in != -1 && l->max_in < l->min_in) || l->max_in < -1 ||
        l->max_in > MAX_INPUTS)
        return refuse(err, "min_in %d and max_in %d are no range", l->min_in, l->max_in);
    if (l->n_out == 0 || l->n_out < -1 || l->n_out > MAX_INPUTS)
        return refuse(err, "n_out %d, need 1 or more, or -1", l->n_out);
    if (l->n_out == -1 && !l->outputs)
        return refuse(err, "n_out is -1 and outputs is NULL");
    if (l->min_in == 0 && !l->shape)
        return refuse(err, "shape is NULL and there may be no input to take it from");
    if (l->optional_in != 0 && l->max_in >= 0 && l->max_in < 64 &&
        l->optional_in >> l->max_in)
        return refuse(err, "optional_in 0x%llx names inputs from max_in %d on",
                      (unsigned long long)l->optional_in, l->max_in);
    if (l->flags != 0)
        return refuse(err, "flags 0x%x has unknown bits", (unsigned)l->flags);
    if (l->params_size > MAX_PARAMS)
        return refuse(err, "params_size %zu > %zu", l->params_size, MAX_PARAMS);
    return STRATA_OK;
}

static int copy_attrs(struct registry_layer *out, strata_error *err)
{
    strata_layer *l = &out->layer;
    strata_attr *attrs = NULL;
    int status = descriptor_array(&attrs, &l->attrs, sizeof *attrs, sizeof *attrs,
                                  MAX_ATTRS, "attrs", err);
    if (status != STRATA_OK)
        return status;
    out->attrs = attrs;
    out->n_attrs = l->attrs.n;
    l->attrs = (strata_array){attrs, l->attrs.n, sizeof *attrs};
    for (size_t i = 0; status == STRATA_OK && i < out->n_attrs; i++) {
        status = attribute_check(attrs, i, l->params_size, err);
        attrs[i].doc = attrs[i].doc ? attrs[i].doc : "";
    }
    return status;
}

static int copy_weights(struct registry_layer *out, strata_error *err)
{
    strata_layer *l = &out->layer;
    strata_weight *weights = NULL;
    int status = descriptor_array(&weights, &l->weights, sizeof *weights, sizeof *weights,
                                  MAX_WEIGHTS, "weights", err);
    if (status != STRATA_OK)
        return status;
    out->weights = weights;
    out->n_weights = l->weights.n;
    l->weights = (strata_array){weights, l->weights.n, sizeof *weights};
    for (size_t i = 0; status == STRATA_OK && i < out->n_weights; i++) {
        status = weight_check(weights, i, err);
        weights[i].doc = weights[i].doc ? weights[i].doc : "";
        if (weights[i].dtypes == 0)
            weights[i].dtypes = UINT64_C(1) << STRATA_FP32;
    }
    return status;
}

static int name_layer(struct registry_layer *out, const char *ns, strata_error *err)
{
    size_t size = strlen(ns) + strlen(out->layer.name) + sizeof "::@4294967295";
    out->full_name = zalloc(size, 1, "a layer's name", err);
    if (!out->full_name)
        return STRATA_ENOMEM;
    snprintf(out->full_name, size, "%s::%s@%u", ns, out->layer.name, out->layer.version);
    return STRATA_OK;
}

static int fill_layer(struct module_layer *out, const char *ns,
                      const struct module *owner, strata_error *err)
{
    struct registry_layer *r = &out->layer;
    int status = check_layer(&r->layer, err);
    if (status == STRATA_OK)
        status = copy_attrs(r, err);
    if (status == STRATA_OK)
        status = copy_weights(r, err);
    if (status == STRATA_OK)
        status = copy_impls(&out->own, &out->n_own, &r->layer.impls, owner, err);
    if (status == STRATA_OK)
        status = implementation_ports(out->own, out->n_own, &r->layer, err);
    if (status == STRATA_OK)
        status = name_layer(r, ns, err);
    r->layer.doc = r->layer.doc ? r->layer.doc : "";
    r->impls = out->own;
    r->n_impls = out->n_own;
    r->module = owner;
    return status;
}

static int copy_layer(struct module_layer *out, const strata_layer *from, size_t i,
                      const char *ns, const struct module *owner, strata_error *err)
{
    strata_layer *l = &out->layer.layer;
    int status = from ? copy_struct(l, sizeof *l, from, LAYER_1_0, "strata_layer", err)
                      : refuse(err, "it is NULL");
    if (status == STRATA_OK && !l->name)
        status = refuse(err, "name is NULL");
    if (status == STRATA_OK && !name_is_layer(l->name, strlen(l->name)))
        status = refuse(err, "name '%s' is not [A-Z][A-Za-z0-9]*", l->name);
    if (status != STRATA_OK) {
        error_prefix(err, "layers[%zu]", i);
        return status;
    }
    status = fill_layer(out, ns, owner, err);
    if (status == STRATA_EMODULE)
        error_prefix(err, "layer '%s'", l->name);
    return status;
}

static int copy_extension(struct module_extension *out, const strata_extends *from,
                          size_t i, const struct module *owner, strata_error *err)
{
    strata_extends e = {0};
    int status = from
                     ? copy_struct(&e, sizeof e, from, EXTENDS_1_0, "strata_extends", err)
                     : refuse(err, "it is NULL");
    if (status == STRATA_OK && !e.layer)
        status = refuse(err, "layer is NULL");
    if (status == STRATA_OK && !name_is_qualified(e.layer, strlen(e.layer)))
        status = refuse(err, "layer '%s' is not like \"core::Convolution\"", e.layer);
    if (status != STRATA_OK) {
        error_prefix(err, "extends[%zu]", i);
        return status;
    }
    *out = (struct module_extension){
        .layer = e.layer, .version = e.version, .params_size = e.params_size};
    if (e.version == 0)
        status = refuse(err, "version is 0, need 1 or more");
    if (status == STRATA_OK && e.impls.n == 0)
        status = refuse(err, "it has no impls");
    if (status == STRATA_OK)
        status = copy_impls(&out->impls, &out->n_impls, &e.impls, owner, err);
    if (status == STRATA_EMODULE)
        error_prefix(err, "extends '%s'", e.layer);
    return status;
}

static int check_module(const strata_module *m, strata_error *err)
{
    if (!m->ns || !name_is_namespace(m->ns, strlen(m->ns)))
        return refuse(err, "module.ns '%s' is not [a-z][a-z0-9_.-]*",
                      m->ns ? m->ns : "(NULL)");
    if (!m->version || !name_is_tag(m->version, strlen(m->version)))
        return refuse(err, "module.version '%s' is not like \"1.0.0\"",
                      m->version ? m->version : "(NULL)");
    if (m->n_layers > MAX_LAYERS || m->n_extends > MAX_LAYERS)
        return refuse(err, "module has %u layers and %u extends, the limit is %d",
                      m->n_layers, m->n_extends, MAX_LAYERS);
    if ((m->n_layers > 0 && !m->layers) || (m->n_extends > 0 && !m->extends))
        return refuse(err, "module.%s is NULL", m->layers ? "extends" : "layers");
    if (m->n_layers == 0 && m->n_extends == 0)
        return refuse(err, "module has no layers and extends none");
    return STRATA_OK;
}

static int check_twins(const struct descriptor *d, strata_error *err)
{
    for (size_t i = 0; i < d->n_layers; i++)
        for (size_t j = 0; j < i; j++)
            if (!strcmp(d->layers[i].layer.full_name, d->layers[j].layer.full_name))
                return refuse(err, "layers[%zu] and layers[%zu] are both %s", j, i,
                              d->layers[i].layer.full_name);
    for (size_t i = 0; i < d->n_extends; i++)
        for (size_t j = 0; j < i; j++)
            if (!strcmp(d->extends[i].layer, d->extends[j].layer) &&
                d->extends[i].version == d->extends[j].version)
                return refuse(err, "extends[%zu] and extends[%zu] are both %s@%u", j, i,
                              d->extends[i].layer, d->extends[i].version);
    return STRATA_OK;
}

static int copy_tables(struct descriptor *out, const struct module *owner,
                       strata_error *err)
{
    const strata_module *m = &out->module;
    int status = STRATA_OK;
    out->layers = zalloc(m->n_layers, sizeof *out->layers, "layers", err);
    out->extends = zalloc(m->n_extends, sizeof *out->extends, "extensions", err);
    if (!out->layers || !out->extends)
        return STRATA_ENOMEM;
    out->n_layers = m->n_layers;
    out->n_extends = m->n_extends;
    for (size_t i = 0; status == STRATA_OK && i < m->n_layers; i++)
        status = copy_layer(&out->layers[i], m->layers[i], i, m->ns, owner, err);
    for (size_t i = 0; status == STRATA_OK && i < m->n_extends; i++)
        status = copy_extension(&out->extends[i], m->extends[i], i, owner, err);
    return status == STRATA_OK ? check_twins(out, err) : status;
}

int descriptor_copy(struct descriptor *out, const strata_module *module,
                    const struct module *owner, strata_error *err)
{
    *out = (struct descriptor){0};
    int status = copy_struct(&out->module, sizeof out->module, module, MODULE_1_0,
                             "strata_module", err);
    if (status == STRATA_OK)
        status = check_module(&out->module, err);
    if (status == STRATA_OK)
        status = copy_tables(out, owner, err);
    if (status != STRATA_OK)
        descriptor_free(out);
    return status;
}

void descriptor_free(struct descriptor *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->n_layers; i++) {
        struct module_layer *l = &d->layers[i];
        free((void *)l->layer.attrs);
        free((void *)l->layer.weights);
        free(l->layer.full_name);
        free_impls(l->own, l->n_own);
        free(l->all);
    }
    for (size_t i = 0; i < d->n_extends; i++)
        free_impls(d->extends[i].impls, d->extends[i].n_impls);
    free(d->layers);
    free(d->extends);
    *d = (struct descriptor){0};
}

int descriptor_fits(const struct module_extension *e, const struct registry_layer *layer,
                    strata_error *err)
{
    int status = STRATA_OK;
    if (e->params_size > layer->layer.params_size)
        status = refuse(err, "params_size %zu > %zu of %s: built with a newer layers.h",
                        e->params_size, layer->layer.params_size, layer->full_name);
    if (status == STRATA_OK)
        status = implementation_ports(e->impls, e->n_impls, &layer->layer, err);
    if (status != STRATA_OK)
        error_prefix(err, "extends '%s'", e->layer);
    return status;
}
