/* SPDX-License-Identifier: Apache-2.0
 *
 * Which ends of a candidate may lie inside other tensors: its impl declares it, and
 * accepts it.
 */
#include "planner/view.h"

#include <stdlib.h>
#include <string.h>

#include "planner/record.h"

/* Of a candidate. */
enum { END_IN = 1, END_OUT = 2, END_RESIDUAL = 4 };

static int format_of(const int formats[PLAN_MAX_PORTS], int port)
{
    return formats[port < PLAN_MAX_PORTS ? port : PLAN_MAX_PORTS - 1];
}

/* What a tensor may lie inside of: its concatenation, or else what it is a slice of. */
static int larger_of(const struct planner *planner, const struct planner_model *m,
                     int tensor, int format)
{
    if (m->pitched[tensor] >> format & 1)
        return planner->nodes[m->home[tensor]].out[0];
    const int producer = planner->network->tensors[tensor].producer;
    return m->cut[tensor] >> format & 1 ? planner->nodes[producer].in[0] : -1;
}

/* A view of a tensor as it lies in a larger one, or dense where `larger` is -1. */
static int view(strata_tensor *out, const struct planner *planner, int tensor, int format,
                int larger, strata_error *err)
{
    strata_desc d, all;
    int status = planner_desc(&d, planner->network, tensor, format, err);
    if (status == STRATA_OK && larger >= 0) {
        status = planner_desc(&all, planner->network, larger, format, err);
        memcpy(d.strides, all.strides, sizeof d.strides);
    }
    if (status == STRATA_OK)
        tensor_view(out, &d, UINT64_C(1) << format, STRATA_PAD_ZERO, NULL);
    return status;
}

/* What an impl has to claim to read a tensor that may lie apart in a format. */
static int32_t claim_for(const struct planner *planner, const struct planner_model *m,
                         int tensor, int format)
{
    const struct network_tensor *t = &planner->network->tensors[tensor];
    if (!planner_may_lie_apart(m, tensor, format))
        return 0;
    if (m->pitched[tensor] >> format & 1)
        return STRATA_PITCHED_IN;
    const struct network_layer *cut = planner->nodes[t->producer].layer;
    return planner_find_alias(planner, cut, t->port, format).rows ? STRATA_STRIDED_IN
                                                                  : STRATA_PITCHED_IN;
}

/* Whether an impl claims all that its inputs that may lie apart are. */
static bool reads_apart(const struct planner *planner, const struct planner_model *m,
                        const struct planner_candidate *c)
{
    const struct planner_node *n = planner_run_node(planner, c);
    int32_t claims = 0;
    for (int i = 0; i < n->n_in; i++)
        claims |= claim_for(planner, m, n->in[i], format_of(c->in_formats, i));
    return claims && (c->impl->impl.flags & claims) == claims;
}

/* Whether an impl claims it of a residual that may lie apart. Plans on record from before
 * have it dense; along rows nobody claims it. */
static bool adds_apart(const struct planner *planner, const struct planner_model *m,
                       const struct planner_candidate *c)
{
    return c->impl->impl.flags & STRATA_PITCHED_RESIDUAL && planner_adds(planner, c) &&
           (!planner->record || planner->record->residuals) &&
           claim_for(planner, m, planner_run_node(planner, c)->residual,
                     c->out_formats[0]) == STRATA_PITCHED_IN;
}

/* Whether a candidate can be written home at all. */
static bool has_home(const struct planner *planner, const struct planner_model *m,
                     const struct planner_candidate *c)
{
    const struct planner_node *n = planner_run_node(planner, c);
    if (n->n_out != 1)
        return false;
    const int tensor = planner_output(planner, n, c->fused, 0);
    return m->pitched[tensor] >> c->out_formats[0] & 1 &&
           planner_port_pad(m, planner->network, tensor, c->out_formats[0],
                            &c->impl->impl, true) == STRATA_PAD_ZERO;
}

static int make_views(struct node_view *v, const struct planner *planner,
                      const struct planner_model *m, const struct planner_candidate *c,
                      int ends, strata_error *err)
{
    const struct planner_node *n = planner_run_node(planner, c);
    int status = planner_weights(planner, n, &c->impl->impl, c->fused,
                                 (strata_tensor *)v->weight, err);
    for (int i = 0; i < n->n_in && status == STRATA_OK; i++) {
        const int f = format_of(c->in_formats, i);
        status = view(&v->in[planner_port(n, i)], planner, n->in[i], f,
                      ends & END_IN ? larger_of(planner, m, n->in[i], f) : -1, err);
    }
    for (int i = 0; i < n->n_out && status == STRATA_OK; i++) {
        const int f = format_of(c->out_formats, i);
        const int tensor = planner_output(planner, n, c->fused, i);
        status = view(&v->out[i], planner, tensor, f,
                      ends & END_OUT ? planner->nodes[m->home[tensor]].out[0] : -1, err);
    }
    if (planner_adds(planner, c) && status == STRATA_OK)
        status = view(&v->residual, planner, n->residual, c->out_formats[0],
                      ends & END_RESIDUAL
                          ? larger_of(planner, m, n->residual, c->out_formats[0])
                          : -1,
                      err);
    return status;
}

/* *accepted: with those ends inside others. */
static int ask(bool *accepted, const struct planner *planner,
               const struct planner_model *m, const struct planner_candidate *c, int ends,
               strata_error *err)
{
    const struct planner_node *n = planner_run_node(planner, c);
    const size_t ports = (size_t)(n->n_ports + n->n_out);
    strata_error why;
    struct node_view v = {0};
    *accepted = true;
    if (!c->impl->impl.accept)
        return STRATA_OK;
    v.in = zalloc(ports + n->layer->type->n_weights, sizeof *v.in, "a candidate", err);
    if (!v.in)
        return STRATA_ENOMEM;
    v.out = v.in + n->n_ports;
    v.weight = v.in + ports;
    int status = make_views(&v, planner, m, c, ends, err);
    error_clear(&why);
    if (status == STRATA_OK) {
        planner_view(&v, planner, n, c->fused, c->row, &why);
        const int said = c->impl->impl.accept(&v.node);
        *accepted = said == STRATA_OK;
        if (said == STRATA_ENOMEM)
            status = planner_lacks_memory(n, &c->impl->impl, &why, err);
    }
    free(v.in);
    return status;
}

/* The same, whichever of the others that it takes so lie inside others beside. */
static int ask_beside(bool *accepted, const struct planner *planner,
                      const struct planner_model *m, const struct planner_candidate *c,
                      int end, int others, strata_error *err)
{
    int status = STRATA_OK;
    for (int ends = 0; ends <= others && *accepted && status == STRATA_OK; ends++)
        if ((ends & ~others) == 0)
            status = ask(accepted, planner, m, c, ends | end, err);
    return status;
}

int planner_look_inside(const struct planner *planner, const struct planner_model *m,
                        struct planner_candidate *c, bool *homed, strata_error *err)
{
    const int32_t flags = c->impl->impl.flags;
    int taken = 0;
    c->anywhere = reads_apart(planner, m, c);
    int status = ask_beside(&c->anywhere, planner, m, c, END_IN, taken, err);
    taken |= c->anywhere ? END_IN : 0;
    *homed = flags & STRATA_PITCHED_OUT && has_home(planner, m, c);
    if (status == STRATA_OK)
        status = ask_beside(homed, planner, m, c, END_OUT, taken, err);
    taken |= *homed ? END_OUT : 0;
    c->adds_anywhere = adds_apart(planner, m, c);
    if (status == STRATA_OK)
        status = ask_beside(&c->adds_anywhere, planner, m, c, END_RESIDUAL, taken, err);
    return status;
}
