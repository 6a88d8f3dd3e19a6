/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a layer cannot run: what the network asks of it, and what each impl says to that.
 */
#include "planner/planner.h"

#include <stdio.h>
#include <string.h>

void planner_list_formats(char *text, size_t size, uint64_t mask, int rank)
{
    size_t used = 0;
    text[0] = '\0';
    for (int f = 0; f < STRATA_FORMAT_COUNT && used < size; f++)
        if (mask & UINT64_C(1) << f)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
                                     format_mask_name(UINT64_C(1) << f, rank));
}

static void append_formats(strata_error *err, const char *what, uint64_t mask, int rank)
{
    char text[512];
    planner_list_formats(text, sizeof text, mask, rank);
    error_append(err, "; %s = %s", what, text);
}

/* What the user has a say in, in the words of the INI file. */
static void append_wishes(strata_error *err, const struct planner *planner,
                          const struct planner_node *n)
{
    static const char *const precisions[] = {"fp32", "fp16", "any", "bf16"};
    const struct build_options *b = &planner->network->build;
    const struct network_tensor *tensors = planner->network->tensors;
    error_append(err, "\n  asked for: precision = %s", precisions[b->precision]);
    if (b->formats)
        append_formats(err, "formats", b->formats, 4);
    if (n->n_out && tensors[n->out[0]].formats)
        append_formats(err, "format of the layer", tensors[n->out[0]].formats,
                       tensors[n->out[0]].rank);
    if (n->layer->impl)
        error_append(err, "; impl = %s", n->layer->impl);
    if (b->deterministic)
        error_append(err, "; deterministic = yes");
    if (b->workspace)
        error_append(err, "; workspace = %llu", (unsigned long long)b->workspace);
    for (int i = 0; i < n->n_in; i++)
        if (!dtype_is_free(tensors[n->in[i]].dtype))
            error_append(err, "; input %s is %s", tensors[n->in[i]].name,
                         strata_dtype_name(tensors[n->in[i]].dtype));
}

/* An impl of another device or name says nothing about this one. */
static bool is_beside(const struct planner *planner, const struct planner_candidate *c)
{
    const char *impl = planner->network->layers[c->node].impl;
    return c->impl->impl.device != planner->device.properties.kind ||
           (impl && strcmp(impl, c->impl->impl.name) != 0);
}

/* The impl that the network asks for is one of another device. */
static void append_other_device(strata_error *err, const struct planner *planner,
                                const struct planner_node *n)
{
    static const char *const devices[] = {[STRATA_HOST] = "host", [STRATA_CUDA] = "cuda"};
    const struct registry_layer *type = n->layer->type;
    const int here = planner->device.properties.kind;
    const char *other = NULL;
    for (size_t i = 0; n->layer->impl && i < type->n_impls; i++) {
        const strata_impl *impl = &type->impls[i].impl;
        if (strcmp(impl->name, n->layer->impl) != 0)
            continue;
        if ((int)impl->device == here)
            return;
        other = devices[impl->device];
    }
    if (other)
        error_append(
            err,
            "\n  impl %s is one for %s, and this is %s: run with --device=%s, or "
            "leave the impl out",
            n->layer->impl, other, devices[here], other);
}

static bool is_repeated(const struct planner_candidate *c,
                        const struct planner_candidate *before)
{
    return before && before->impl == c->impl && before->row == c->row &&
           strcmp(before->reason, c->reason) == 0;
}

/* Bytes of the message after which reasons are only counted: the remedy must fit. */
enum { REASONS_END = STRATA_MESSAGE_SIZE * 3 / 4 };

int planner_lacks_memory(const struct planner_node *n, const strata_impl *impl,
                         const strata_error *why, strata_error *err)
{
    return error_set(err, STRATA_ENOMEM, "layer '%s', impl %s: %s", n->layer->name,
                     impl->name,
                     why->message[0] ? why->message : strata_status_text(STRATA_ENOMEM));
}

int planner_refuse_node(const struct planner *planner, const struct planner_model *m,
                        int node, strata_error *err)
{
    const struct planner_node *n = &planner->nodes[node];
    const struct planner_candidate *before = NULL;
    size_t beside = 0, untold = 0;
    char place[256];
    config_describe(planner->network->config, n->layer->place, place, sizeof place);
    error_set(err, STRATA_EPLAN,
              "%s: error: layer '%s': no impl of %s can run here:", place, n->layer->name,
              n->layer->type->full_name);
    append_wishes(err, planner, n);
    append_other_device(err, planner, n);
    for (size_t i = m->first[node]; i < m->n_candidates; i++) {
        const struct planner_candidate *c = &m->candidates[i];
        if (!c->reason || !planner_runs(c) || is_repeated(c, before))
            continue;
        before = c;
        beside += is_beside(planner, c);
        if (!is_beside(planner, c) && err && err->length > REASONS_END) {
            untold++;
            continue;
        }
        if (!is_beside(planner, c) && c->row >= 0)
            error_append(err, "\n  impl %s, row %d: %s", c->impl->impl.name, c->row,
                         c->reason);
        else if (!is_beside(planner, c))
            error_append(err, "\n  impl %s: %s", c->impl->impl.name, c->reason);
    }
    if (untold)
        error_append(err, "\n  and %zu more reasons", untold);
    if (beside)
        error_append(err, "\n  and %zu impls for other devices, or not asked for",
                     beside);
    error_append(err,
                 "\n  remedy: allow more formats, another precision or impl, or load "
                 "a module that can");
    return STRATA_EPLAN;
}
