/* SPDX-License-Identifier: Apache-2.0
 *
 * The ways to run a node. Every impl and row is expanded into candidates, one for each
 * combination of formats its masks allow; the ones that the device, the user's
 * constraints or the impl itself refuse are kept with the reason.
 */
#include "planner/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/record.h"

/* Row expansion: explicit ports of both sides, then their formats. */
struct expansion {
    struct planner *planner;
    struct planner_model *m;
    int node;
    const struct record_decision *only; /* what a file decided; NULL: all there is */
    const struct registry_impl *impl;
    uint64_t wish; /* formats of its float tensors */
    int row;
    size_t fused;             /* layers of the node's tail */
    enum candidate_kind kind; /* which of the node and its groups is looked at */
    int n_in, n_out;          /* explicit ports, at most REGISTRY_PORTS a side */
    int formats[2 * REGISTRY_PORTS];
};

static const struct planner_node *expanded(const struct expansion *x)
{
    const struct planner_node *n = &x->planner->nodes[x->node];
    const struct planner_group *group = planner_group_of(n, x->kind);
    return group ? &group->node : n;
}

static int candidate_format(const struct expansion *x, bool output, int port)
{
    int explicit_ports = output ? x->n_out : x->n_in;
    int index = port < explicit_ports ? port : explicit_ports - 1;
    return x->formats[output ? x->n_in + index : index];
}

static int fill_tensor(strata_tensor *out, const struct expansion *x, int tensor,
                       int format, int pad, strata_error *err)
{
    strata_desc d;
    int status = planner_desc(&d, x->planner->network, tensor, format, err);
    if (status == STRATA_OK)
        tensor_view(out, &d, UINT64_C(1) << format, pad, NULL);
    return status;
}

/* The impl's own word: accept, then the workspace it needs. */
static int ask_impl(const struct expansion *x, struct planner_candidate *c,
                    strata_tensor *weights, strata_error *err)
{
    const struct planner_node *n = expanded(x);
    const strata_impl *impl = &x->impl->impl;
    struct node_view v = {.weight = weights};
    int status = planner_weights(x->planner, n, impl, x->fused, weights, err);
    v.in = zalloc((size_t)n->n_ports, sizeof *v.in, "a candidate", err);
    v.out = zalloc((size_t)n->n_out, sizeof *v.out, "a candidate", err);
    if (!v.in || !v.out)
        status = STRATA_ENOMEM;
    for (int i = 0; i < n->n_in && status == STRATA_OK; i++)
        status = fill_tensor(&v.in[planner_port(n, i)], x, n->in[i],
                             candidate_format(x, false, i), STRATA_PAD_ZERO, err);
    for (int i = 0; i < n->n_out && status == STRATA_OK; i++)
        status = fill_tensor(&v.out[i], x, planner_output(x->planner, n, x->fused, i),
                             candidate_format(x, true, i), STRATA_PAD_ZERO, err);
    if (status != STRATA_OK)
        goto done;
    if (n->n_out > 0)
        v.residual = v.out[0];
    planner_view(&v, x->planner, n, x->fused, x->row, err);
    if (impl->accept && (status = impl->accept(&v.node)) != STRATA_OK) {
        error_set(err, status, "%s", strata_status_text(status));
        goto done;
    }
    c->workspace = impl->workspace ? impl->workspace(&v.node) : 0;
    uint64_t limit = x->planner->network->build.workspace;
    if (c->workspace >= SIZE_MAX / 4)
        status = error_set(err, STRATA_EOVERFLOW, "its workspace overflows");
    else if (limit && c->workspace > limit)
        status = error_set(err, STRATA_EUNSUPPORTED,
                           "its workspace of %zu bytes is over [build] workspace = %llu",
                           c->workspace, (unsigned long long)limit);
    else
        c->cost = cost_of_run(&v.node, &x->impl->impl, &x->impl->rows[x->row],
                              &n->layer->type->layer, &x->planner->device.properties);
done:
    free(v.in);
    free(v.out);
    return status;
}

static struct planner_candidate begin_candidate(const struct expansion *x)
{
    return (struct planner_candidate){.kind = x->kind,
                                      .node = x->node,
                                      .impl = x->impl,
                                      .row = x->row,
                                      .fused = x->fused};
}

static int add_candidate(const struct expansion *x, strata_error *err)
{
    struct planner_candidate c = begin_candidate(x);
    bool homed = false;
    strata_error why;
    error_clear(&why);
    for (int i = 0; i < PLAN_MAX_PORTS; i++) {
        c.in_formats[i] = x->n_in ? candidate_format(x, false, i) : 0;
        c.out_formats[i] = x->n_out ? candidate_format(x, true, i) : 0;
    }
    size_t n_weights = expanded(x)->layer->type->n_weights;
    strata_tensor *weights = zalloc(n_weights, sizeof *weights, "a candidate", err);
    if (!weights)
        return STRATA_ENOMEM;
    int status = ask_impl(x, &c, weights, &why);
    free(weights);
    if (status == STRATA_ENOMEM)
        return planner_lacks_memory(expanded(x), &x->impl->impl, &why, err);
    if (status != STRATA_OK)
        return planner_keep_candidate(x->m, &c, why.message, err);
    /* A record decides for one of the two. */
    const bool both = !x->planner->record || !x->only;
    status = planner_look_inside(x->planner, x->m, &c, &homed, err);
    if (status == STRATA_OK && (both || !x->only->homed))
        status = planner_keep_candidate(x->m, &c, NULL, err);
    if (status != STRATA_OK || !homed || (!both && !x->only->homed))
        return status;
    c.homed = true;
    return planner_keep_candidate(x->m, &c, NULL, err);
}

/* A whole impl or row that cannot be used, with one reason. */
static int add_refusal(const struct expansion *x, const char *reason, strata_error *err)
{
    struct planner_candidate c = begin_candidate(x);
    return planner_keep_candidate(x->m, &c, reason, err);
}

/* The row's mask of an explicit port; inputs come first. */
static uint64_t row_mask(const struct expansion *x, int index)
{
    const struct registry_row *row = &x->impl->rows[x->row];
    const struct planner_node *n = expanded(x);
    return index < x->n_in ? row->in[planner_port(n, index)] : row->out[index - x->n_in];
}

/* Formats a port may take: the row's mask within what the user allows its tensors.
 * Ports past the explicit ones repeat the last, so they count too. */
static uint64_t port_mask(const struct expansion *x, int index, uint64_t precision)
{
    const struct planner_node *n = expanded(x);
    bool output = index >= x->n_in;
    int port = output ? index - x->n_in : index;
    uint64_t mask = row_mask(x, index);
    if (mask == STRATA_SAME)
        mask = x->n_in ? UINT64_C(1) << x->formats[0] : 0;
    int explicit_ports = output ? x->n_out : x->n_in, ports = output ? n->n_out : n->n_in;
    int last = port == explicit_ports - 1 ? ports : port + 1;
    for (int i = port; i < last; i++)
        mask &= planner_allowed(
            x->planner, n, output ? planner_output(x->planner, n, x->fused, i) : n->in[i],
            output, x->wish, precision);
    return mask;
}

/* Formats of a port that are looked at: all, or the one of a decision. */
static uint64_t asked_formats(const struct expansion *x, int index)
{
    const struct record_decision *d = x->only;
    if (!d)
        return ~UINT64_C(0);
    return UINT64_C(1) << (index < x->n_in ? d->in_formats[index]
                                           : d->out_formats[index - x->n_in]);
}

static int expand(struct expansion *x, int index, uint64_t precision, size_t *found,
                  strata_error *err)
{
    if (index == x->n_in + x->n_out) {
        ++*found;
        return add_candidate(x, err);
    }
    uint64_t mask = port_mask(x, index, precision) & asked_formats(x, index);
    for (int f = 0; f < STRATA_FORMAT_COUNT; f++) {
        if (!(mask & UINT64_C(1) << f))
            continue;
        x->formats[index] = f;
        int status = expand(x, index + 1, precision, found, err);
        if (status != STRATA_OK)
            return status;
    }
    return STRATA_OK;
}

/* Number of ports a row names: up to the first that is 0. */
static int explicit_ports(const uint64_t masks[REGISTRY_PORTS], int ports)
{
    int n = 0;
    while (n < ports && n < REGISTRY_PORTS && masks[n])
        n++;
    return n;
}

static const char *refuse_impl(const struct planner *planner,
                               const struct planner_node *n, const strata_impl *impl,
                               char *buffer, size_t size)
{
    const struct device_properties *d = &planner->device.properties;
    if (impl->device != d->kind)
        return "it is for another device";
    if (planner->network->build.nan && impl->flags & STRATA_NAN_DROPPED)
        return "it may drop a NaN, and the network asks for nan = propagate";
    if (planner->network->build.nan && impl->flags & STRATA_OVERFLOW_DROPPED)
        return "it may drop an overflow, and the network asks for nan = propagate";
    if ((impl->min_sm && d->sm < impl->min_sm) || (impl->max_sm && d->sm > impl->max_sm))
        return "it is for other compute capabilities";
    if (planner->network->build.deterministic && impl->flags & STRATA_NONDETERMINISTIC)
        return "its runs may differ, and the network asks for deterministic = yes";
    if (impl->flags & STRATA_WEIGHT_STORED && !network_has_factors(n->layer))
        return "it computes with a weight of few bits beside its factors";
    if (n->layer->impl && strcmp(n->layer->impl, impl->name) != 0) {
        snprintf(buffer, size, "the network asks for impl = %s", n->layer->impl);
        return buffer;
    }
    return NULL;
}

static bool has_epilogue(const strata_impl *impl, strata_epilogue epilogue)
{
    return !(epilogue.flags & ~impl->epilogues) &&
           (!(epilogue.flags & STRATA_EPILOGUE_ACTIVATION) ||
            impl->activations & UINT64_C(1) << epilogue.activation);
}

/* Formats of ports that do not follow the first multiply. */
enum { MAX_COMBINATIONS = 4096 };

static bool has_too_many(struct expansion *x, uint64_t precision)
{
    int64_t product = 1;
    for (int i = 0; i < x->n_in + x->n_out && product <= MAX_COMBINATIONS; i++)
        if (row_mask(x, i) != STRATA_SAME)
            product *= __builtin_popcountll(port_mask(x, i, precision));
    return product > MAX_COMBINATIONS;
}

/* Formats that a port may take with any of the first one's. */
static uint64_t fitting_formats(struct expansion *x, int index, uint64_t precision)
{
    uint64_t first = x->n_in ? port_mask(x, 0, precision) : 1, fitting = 0;
    for (int f = 0; f < STRATA_FORMAT_COUNT; f++)
        if (first >> f & 1) {
            x->formats[0] = f;
            fitting |= port_mask(x, index, precision);
        }
    return fitting;
}

/* Names the first port that nothing fits. */
static int refuse_row(struct expansion *x, uint64_t precision, strata_error *err)
{
    const struct planner_node *n = expanded(x);
    const struct registry_row *row = &x->impl->rows[x->row];
    char text[900], formats[512];
    int i = 0;
    while (i < x->n_in + x->n_out - 1 && fitting_formats(x, i, precision))
        i++;
    bool output = i >= x->n_in;
    uint64_t mask = row_mask(x, i);
    int tensor = output ? planner_output(x->planner, n, x->fused, i - x->n_in) : n->in[i];
    const struct network_tensor *t = &x->planner->network->tensors[tensor];
    mask = mask == STRATA_SAME ? row->in[0] : mask;
    for (int f = 0; f < STRATA_FORMAT_COUNT; f++) {
        strata_desc d;
        if (planner_desc(&d, x->planner->network, tensor, f, NULL) != STRATA_OK)
            mask &= ~(UINT64_C(1) << f); /* no tensor of the rank has it */
    }
    planner_list_formats(formats, sizeof formats, mask, t->rank);
    snprintf(text, sizeof text, "it %s '%.200s' as {%s}, none of which is allowed here",
             output ? "writes" : "reads", t->name, formats);
    return add_refusal(x, text, err);
}

static int expand_rows(struct expansion *x, uint64_t precision, strata_error *err)
{
    const struct planner_node *n = expanded(x);
    for (uint32_t r = 0; r < x->impl->impl.rows.n; r++) {
        size_t found = 0;
        if (x->only && !x->only->any_impl && x->only->row != (int)r)
            continue;
        x->row = (int)r;
        const int named = explicit_ports(x->impl->rows[r].in, n->n_ports);
        for (x->n_in = 0; x->n_in < n->n_in && planner_port(n, x->n_in) < named;)
            x->n_in++;
        x->n_out = explicit_ports(x->impl->rows[r].out, n->n_out);
        bool many = has_too_many(x, precision);
        int status = many ? add_refusal(x,
                                        "its ports allow over 4096 combinations of "
                                        "formats; set build.formats, or split the row "
                                        "into several with STRATA_SAME",
                                        err)
                          : expand(x, 0, precision, &found, err);
        if (status == STRATA_OK && found == 0 && !many)
            status = refuse_row(x, precision, err);
        if (status != STRATA_OK)
            return status;
    }
    return STRATA_OK;
}

/* Each impl alone, and with as much of the node's tail as its epilogue allows. */
static int expand_impl(struct expansion *x, uint64_t precision, strata_error *err)
{
    char buffer[256];
    const struct planner_node *n = expanded(x);
    const char *refused =
        refuse_impl(x->planner, n, &x->impl->impl, buffer, sizeof buffer);
    x->row = -1;
    if (refused)
        return add_refusal(x, refused, err);
    for (x->fused = 0; x->fused <= n->n_tail; x->fused++) {
        if (x->only && x->only->fused != x->fused)
            continue;
        strata_epilogue epilogue = planner_epilogue(x->planner, n, x->fused);
        int status = STRATA_OK;
        if (has_epilogue(&x->impl->impl, epilogue)) {
            status = expand_rows(x, precision, err);
        } else {
            snprintf(buffer, sizeof buffer, "it cannot compute %s in its epilogue",
                     x->planner->network->layers[n->tail[x->fused - 1]].name);
            x->row = -1;
            status = add_refusal(x, buffer, err);
        }
        if (status != STRATA_OK)
            return status;
    }
    return STRATA_OK;
}

/* Whether an impl is to be looked at. */
static bool is_asked(const struct record_decision *d, enum candidate_kind kind,
                     const struct registry_impl *impl)
{
    return !d ||
           (d->kind == kind && (d->any_impl || (d->module == impl->module &&
                                                strcmp(d->impl, impl->impl.name) == 0)));
}

/* A decision that was right where the record was made. */
static int decision_refused(const struct planner_model *m, const struct planner_node *n,
                            const struct record_decision *d, size_t first,
                            strata_error *err)
{
    const char *reason = "no module here brings that impl, row or fusion";
    for (size_t i = first; i < m->n_candidates; i++)
        if (m->candidates[i].reason)
            reason = m->candidates[i].reason;
    return error_set(
        err, STRATA_EUNSUPPORTED,
        "layer '%s': the engine runs impl %s of %s (%s), row %d, which "
        "cannot run here: %s; build the engine again on this machine",
        n->layer->name, d->impl ? d->impl : "(none)", n->layer->type->full_name,
        d->module ? module_info(d->module).path : "no plugin", d->row, reason);
}

/* The defining module's impls as it lists them, then others by module and name: the
 * order of a search path must not decide between equals. */
static int compare_impls(const void *a, const void *b)
{
    const struct registry_impl *x = *(const struct registry_impl *const *)a;
    const struct registry_impl *y = *(const struct registry_impl *const *)b;
    struct module_info mx = module_info(x->module), my = module_info(y->module);
    int order = strcmp(mx.ns, my.ns);
    if (order == 0)
        order = strcmp(x->impl.name, y->impl.name);
    if (order == 0)
        order = strcmp(mx.build_id, my.build_id);
    return order != 0 ? order : (x > y) - (x < y);
}

static const struct registry_impl **ordered_impls(const struct registry_layer *type,
                                                  strata_error *err)
{
    size_t own = 0, n = type->n_impls;
    const struct registry_impl **impls = zalloc(n, sizeof *impls, "impls", err);
    for (size_t i = 0; impls && i < n; i++)
        impls[i] = &type->impls[i];
    while (impls && own < n && impls[own]->module == type->module)
        own++;
    if (impls)
        qsort(impls + own, n - own, sizeof *impls, compare_impls);
    return impls;
}

/* All impls of a node's layer, or of a group of it. */
static int find_runs(struct planner *planner, struct planner_model *m, int node,
                     enum candidate_kind kind, const struct record_decision *only,
                     strata_error *err)
{
    struct expansion x = {
        .planner = planner, .m = m, .node = node, .only = only, .kind = kind};
    const struct planner_node *n = expanded(&x);
    const bool made = n != &planner->nodes[node];
    uint64_t precision = only ? ~UINT64_C(0) : planner_precision(planner, n, made);
    bool wished = planner_wish_holds(planner->network, n->layer);
    const struct registry_impl **impls = ordered_impls(n->layer->type, err);
    int status = impls ? STRATA_OK : STRATA_ENOMEM;
    x.wish = wished ? planner->network->build.formats : ~UINT64_C(0);
    for (size_t i = 0; i < n->layer->type->n_impls && status == STRATA_OK; i++) {
        x.impl = impls[i];
        if (is_asked(only, kind, impls[i]))
            status = expand_impl(&x, precision, err);
    }
    free(impls);
    return status;
}

/* The candidates that a decision leaves; NULL: all. */
static int find(struct planner *planner, struct planner_model *m, int node,
                const struct record_decision *only, strata_error *err)
{
    const struct planner_node *n = &planner->nodes[node];
    int status = find_runs(planner, m, node, CANDIDATE_RUN, only, err);
    if (status == STRATA_OK && n->group)
        status = find_runs(planner, m, node, CANDIDATE_GROUP, only, err);
    if (status == STRATA_OK && n->longer)
        status = find_runs(planner, m, node, CANDIDATE_LONGER, only, err);
    if (status == STRATA_OK)
        status = planner_find_free(planner, m, node, only, err);
    m->first[node + 1] = m->n_candidates;
    return status;
}

static bool has_usable(const struct planner_model *m, size_t first)
{
    for (size_t i = first; i < m->n_candidates; i++)
        if (!m->candidates[i].reason)
            return true;
    return false;
}

/* As another plan has it; where that cannot be at this size, another impl with the same
 * formats, and else whatever there is. */
static int find_like(struct planner *planner, struct planner_model *m, int node,
                     strata_error *err)
{
    const size_t first = m->n_candidates;
    struct record_decision d = planner->guide->decisions[node];
    int status = find(planner, m, node, &d, err);
    if (status != STRATA_OK || has_usable(m, first))
        return status;
    d.any_impl = true;
    if (d.kind <= CANDIDATE_LONGER)
        status = find(planner, m, node, &d, err);
    return status != STRATA_OK || has_usable(m, first)
               ? status
               : find(planner, m, node, NULL, err);
}

int planner_find_candidates(struct planner *planner, struct planner_model *m, int node,
                            strata_error *err)
{
    const struct record_decision *only =
        planner->record ? &planner->record->decisions[node] : NULL;
    const size_t first = m->first[node] = m->n_candidates;
    int status = planner->guide ? find_like(planner, m, node, err)
                                : find(planner, m, node, only, err);
    if (status != STRATA_OK || has_usable(m, first))
        return status;
    return only ? decision_refused(m, &planner->nodes[node], only, first, err)
                : planner_refuse_node(planner, m, node, err);
}
